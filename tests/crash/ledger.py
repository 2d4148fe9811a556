"""What a client may believe of its jobs, by acknowledgements alone, across crashes; objects to a
server that differs.

Each job has the set of states it may be in. A command that was sent and not answered adds the state
it leads to and keeps the old one; an answer leaves one of the two; a look at the job (by stats-job
or peek) leaves what was seen. A server that shows a state that is not in the set has lost,
invented, hastened or resurrected something, and the ledger raises Violation.

A job is touched by the commands of one connection only, so its history has no races. Times are wall
clock nanoseconds.

Thread safety: one Ledger per client thread; the Ids that they share lock themselves.
"""

import threading
from dataclasses import dataclass, field
from typing import NamedTuple, Optional


class Violation(AssertionError):
    """The server broke a promise."""


class State(NamedTuple):
    name: str  # "gone", "waiting" (delayed or ready), "reserved", "buried"
    not_before: int = 0  # waiting: the earliest time at which it may be handed out


GONE = State("gone")
RESERVED = State("reserved")
BURIED = State("buried")
READY = State("waiting")


def waiting_until(time_ns: int) -> State:
    return State("waiting", time_ns)


@dataclass(eq=False)
class JobRecord:
    token: bytes
    body: bytes
    states: set
    id: Optional[int] = None  # None until the server has told it
    pending: Optional[State] = None  # what the command in flight leads to
    before: set = field(default_factory=set)  # the states that were possible when it was sent
    history: list = field(default_factory=list)

    def __str__(self) -> str:
        return f"job {self.id} ({self.token.decode()}): {', '.join(self.history[-8:])}"


class Ids:
    """Every id that was ever seen, by whichever client: none may be given to two jobs."""

    def __init__(self):
        self._lock = threading.Lock()
        self._tokens = {}

    def claim(self, job_id: int, token: bytes) -> None:
        with self._lock:
            owner = self._tokens.setdefault(job_id, token)
        if owner != token:
            raise Violation(f"id {job_id} was given to {owner.decode()} and to {token.decode()}")

    def __len__(self) -> int:
        return len(self._tokens)


class Ledger:
    def __init__(self, ids: Ids):
        self._ids = ids
        self.jobs = {}  # token -> JobRecord
        self.by_id = {}  # id -> JobRecord, for jobs whose id is known

    # Commands. Each is told when it is sent, and again when it is answered.

    def put_sent(self, token: bytes, body: bytes, due_ns: int) -> JobRecord:
        """`due_ns`: the time before the command was sent, plus its delay."""
        record = JobRecord(
            token, body, {GONE, waiting_until(due_ns)}, pending=waiting_until(due_ns)
        )
        record.history.append(f"put, due {due_ns}")
        self.jobs[token] = record
        return record

    def put_acknowledged(self, record: JobRecord, job_id: int) -> None:
        self._learn_id(record, job_id)
        self._settle(record, {record.pending})

    def sent(self, record: JobRecord, command: str, leads_to: State) -> None:
        """A delete, release, bury or kick-job is on its way."""
        record.history.append(command)
        record.pending = leads_to
        record.before = record.states
        record.states = record.states | {leads_to}

    def acknowledged(self, record: JobRecord) -> None:
        """It was answered with success."""
        self._settle(record, {record.pending})

    def refused(self, record: JobRecord, command: str, now_ns: int) -> None:
        """It was answered with NOT_FOUND."""
        before = record.before if record.pending else record.states
        if command == "kick-job":
            # Neither buried nor delayed: it was ready, if it came due in time, or it is gone.
            possible = {
                s for s in before if s == GONE or (s.name == "waiting" and s.not_before <= now_ns)
            }
        elif command == "delete":
            possible = before & {GONE}
        else:  # release, bury, touch: only of what this client holds
            possible = before - {RESERVED}
        if not possible:
            raise Violation(f"{command} found nothing, but {record} is {_names(before)}")
        self._settle(record, possible)

    # What the server shows.

    def delivered(self, job_id: int, body: bytes, now_ns: int) -> JobRecord:
        """A reserve was answered with this job at this time."""
        record = self._recognise(job_id, body)
        candidates = [s for s in record.states if s.name == "waiting"]
        if not candidates:
            raise Violation(f"handed out although {_names(record.states)}: {record}")
        earliest = min(s.not_before for s in candidates)
        if now_ns < earliest:
            raise Violation(f"handed out {(earliest - now_ns) / 1e6:.3f} ms early: {record}")
        record.history.append("reserved")
        self._settle(record, {RESERVED})
        return record

    def seen(self, record: JobRecord, state: str, body: Optional[bytes], now_ns: int) -> None:
        """After a restart and before anything else: stats-job said `state` ("gone": NOT_FOUND), peek gave `body`."""
        if body is not None and body != record.body:
            raise Violation(f"the body is {body[:60]!r}, not {record.body[:60]!r}: {record}")
        if state == "gone":
            possible = record.states & {GONE}
        elif state == "buried":
            possible = record.states & {BURIED}
        elif state == "ready":
            possible = {s for s in record.states if s.name == "waiting" and s.not_before <= now_ns}
        elif state == "delayed":
            possible = {s for s in record.states if s.name == "waiting" and s.not_before > 0}
        else:
            possible = set()  # nobody can have reserved it
        record.history.append(f"seen {state}")
        if not possible:
            raise Violation(f"{state} where it must be {_names(record.states)}: {record}")
        self._settle(record, possible)

    def crashed(self) -> None:
        """The server died: what was in flight may have happened or not, and what was reserved is nobody's."""
        for record in self.jobs.values():
            record.pending = None
            if RESERVED in record.states:
                record.states = record.states - {RESERVED} | {READY}
            if record.states != {GONE}:
                record.history.append("crash")

    def missing(self, now_ns: int) -> list:
        """Jobs that must still be handed out by now: acknowledged, not possibly deleted, not buried, and due."""
        return [
            r
            for r in self.jobs.values()
            if r.states and all(s.name == "waiting" and s.not_before <= now_ns for s in r.states)
        ]

    # The inside.

    @staticmethod
    def _settle(record: JobRecord, states: set) -> None:
        record.states = set(states)
        record.pending = None

    def _learn_id(self, record: JobRecord, job_id: int) -> None:
        if record.id not in (None, job_id):
            raise Violation(f"shown as id {job_id}: {record}")
        self._ids.claim(job_id, record.token)
        record.id = job_id
        self.by_id[job_id] = record

    def _recognise(self, job_id: int, body: bytes) -> JobRecord:
        """The record of what was handed out: bodies begin with their token."""
        token = body.split(b" ", 1)[0]
        record = self.jobs.get(token) or self.by_id.get(job_id)
        if record is None:
            raise Violation(f"job {job_id} was never put by this client: {body[:60]!r}")
        if body != record.body:
            sizes = f"{len(body)} bytes, not {len(record.body)}"
            raise Violation(
                f"the body is {body[:60]!r}, not {record.body[:60]!r} ({sizes}): {record}"
            )
        self._learn_id(record, job_id)
        return record


def _names(states: set) -> str:
    return " or ".join(
        sorted(f"waiting until {s.not_before}" if s.name == "waiting" else s.name for s in states)
    )
