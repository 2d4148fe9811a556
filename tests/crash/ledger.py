"""A ledger of one client's jobs: the states that they may be in, by the server's answers alone,
over crashes. It raises Violation when the server shows another state.

For each job the ledger keeps the set of states that it may be in:
- A command that was sent adds the state that it leads to, and keeps the old ones.
- The answer leaves only the states that agree with it.
- Reading the job (stats-job or peek) leaves only the state that was seen.
If the server shows a state that is not in the set, it has lost, invented or resurrected a job, or
handed it out early.

Only one connection works on a job, so there are no races. Times are wall clock nanoseconds.

Thread safety: one Ledger per client thread; the Ids that they share have a lock.
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
class TrackedJob:
    token: bytes
    body: bytes
    states: set
    id: Optional[int] = None  # None until an answer has told it
    pending: Optional[State] = None  # the state that the command in flight leads to
    before: set = field(default_factory=set)  # the states that were possible when it was sent
    history: list = field(default_factory=list)

    def __str__(self) -> str:
        return f"job {self.id} ({self.token.decode()}): {', '.join(self.history[-8:])}"


class Ids:
    """All ids that any client has ever seen: none may be given to two jobs."""

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
        self.jobs = {}  # token -> TrackedJob
        self.by_id = {}  # id -> TrackedJob, for jobs whose id is known

    # Commands. The client calls one method when it sends a command, another when it has the answer.

    def put_sent(self, token: bytes, body: bytes, due_ns: int) -> TrackedJob:
        """`due_ns` is the time before the command was sent, plus the delay."""
        job = TrackedJob(token, body, {GONE, waiting_until(due_ns)}, pending=waiting_until(due_ns))
        job.history.append(f"put, due {due_ns}")
        self.jobs[token] = job
        return job

    def put_acknowledged(self, job: TrackedJob, job_id: int) -> None:
        self._learn_id(job, job_id)
        self._settle(job, {job.pending})

    def sent(self, job: TrackedJob, command: str, leads_to: State) -> None:
        """A delete, release, bury or kick-job is on its way."""
        job.history.append(command)
        job.pending = leads_to
        job.before = job.states
        job.states = job.states | {leads_to}

    def acknowledged(self, job: TrackedJob) -> None:
        """The command was answered with success."""
        self._settle(job, {job.pending})

    def refused(self, job: TrackedJob, command: str, now_ns: int) -> None:
        """The command was answered with NOT_FOUND."""
        before = job.before if job.pending else job.states
        if command == "kick-job":
            # The job is neither buried nor delayed: it is ready, if it is due by now, or gone.
            possible = {
                s for s in before if s == GONE or (s.name == "waiting" and s.not_before <= now_ns)
            }
        elif command == "delete":
            possible = before & {GONE}
        else:  # release, bury, touch: the client does not hold the job
            possible = before - {RESERVED}
        if not possible:
            raise Violation(f"{command} found nothing, but {job} is {_names(before)}")
        self._settle(job, possible)

    # What the server shows.

    def delivered(self, job_id: int, body: bytes, now_ns: int) -> TrackedJob:
        """A reserve was answered with this job at `now_ns`."""
        job = self._recognise(job_id, body)
        candidates = [s for s in job.states if s.name == "waiting"]
        if not candidates:
            raise Violation(f"handed out although {_names(job.states)}: {job}")
        earliest = min(s.not_before for s in candidates)
        if now_ns < earliest:
            raise Violation(f"handed out {(earliest - now_ns) / 1e6:.3f} ms early: {job}")
        job.history.append("reserved")
        self._settle(job, {RESERVED})
        return job

    def seen(self, job: TrackedJob, state: str, body: Optional[bytes], now_ns: int) -> None:
        """stats-job said `state` ("gone" for NOT_FOUND), and peek gave `body`. To be called only
        after a restart, before the client has sent anything else."""
        if body is not None and body != job.body:
            raise Violation(f"the body is {body[:60]!r}, not {job.body[:60]!r}: {job}")
        if state == "gone":
            possible = job.states & {GONE}
        elif state == "buried":
            possible = job.states & {BURIED}
        elif state == "ready":
            possible = {s for s in job.states if s.name == "waiting" and s.not_before <= now_ns}
        elif state == "delayed":
            possible = {s for s in job.states if s.name == "waiting" and s.not_before > 0}
        else:
            possible = set()  # no client has reserved any job since the restart
        job.history.append(f"seen {state}")
        if not possible:
            raise Violation(f"{state} where it must be {_names(job.states)}: {job}")
        self._settle(job, possible)

    def crashed(self) -> None:
        """The server died. The commands in flight may have had their effect or not, and no job is
        reserved any more."""
        for job in self.jobs.values():
            job.pending = None
            if RESERVED in job.states:
                job.states = job.states - {RESERVED} | {READY}
            if job.states != {GONE}:
                job.history.append("crash")

    def missing(self, now_ns: int) -> list:
        """Returns the jobs that the server should have handed out by now: surely neither deleted,
        reserved nor buried, and due."""
        return [
            r
            for r in self.jobs.values()
            if r.states and all(s.name == "waiting" and s.not_before <= now_ns for s in r.states)
        ]

    # Private.

    @staticmethod
    def _settle(job: TrackedJob, states: set) -> None:
        job.states = set(states)
        job.pending = None

    def _learn_id(self, job: TrackedJob, job_id: int) -> None:
        if job.id not in (None, job_id):
            raise Violation(f"shown as id {job_id}: {job}")
        self._ids.claim(job_id, job.token)
        job.id = job_id
        self.by_id[job_id] = job

    def _recognise(self, job_id: int, body: bytes) -> TrackedJob:
        """Returns the job that was handed out. A body begins with the token of its job."""
        token = body.split(b" ", 1)[0]
        job = self.jobs.get(token) or self.by_id.get(job_id)
        if job is None:
            raise Violation(f"job {job_id} was never put by this client: {body[:60]!r}")
        if body != job.body:
            sizes = f"{len(body)} bytes, not {len(job.body)}"
            raise Violation(f"the body is {body[:60]!r}, not {job.body[:60]!r} ({sizes}): {job}")
        self._learn_id(job, job_id)
        return job


def _names(states: set) -> str:
    return " or ".join(
        sorted(f"waiting until {s.not_before}" if s.name == "waiting" else s.name for s in states)
    )
