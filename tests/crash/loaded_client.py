"""A client that loads the server: it pipelines commands on the jobs of its own tube, and enters
every answer into its ledger."""

import random
import time
from collections import Counter
from typing import Callable, NamedTuple, Optional

from ledger import BURIED, GONE, READY, Ids, Ledger, TrackedJob, Violation, waiting_until
from wire import Closed, Connection, Reply

_FORTY_DAYS_S = 40 * 24 * 3600
_LONGEST_NEAR_DELAY_MS = 2000
_VERIFIED_AT_ONCE = 500
_KEPT_LOOKED_AT = 2000  # after each crash; at the end the client reads all jobs
_OLD_DELETES_LOOKED_AT = 300


class Verbs(NamedTuple):
    """How times are written: Carillon's verbs take milliseconds, beanstalkd's take seconds."""

    put: bytes
    release: bytes
    reserve: bytes
    milliseconds_per_unit: int


IN_MILLISECONDS = Verbs(b"put-ms", b"release-ms", b"reserve-with-timeout-ms", 1)
IN_SECONDS = Verbs(b"put", b"release", b"reserve-with-timeout", 1000)


class _Sent(NamedTuple):
    """A command on its way, and what to do with its answer."""

    data: bytes
    answered: Callable[[Reply], None]


class LoadedClient:
    def __init__(self, name: str, seed: int, verbs: Verbs, ids: Ids):
        self.ledger = Ledger(ids)
        self.counts = Counter()
        self._name = name
        self._rng = random.Random(seed)
        self._verbs = verbs
        self._connection: Optional[Connection] = None
        self._held = []
        # token -> job. These jobs are waiting or buried, as far as the client knows.
        self._idle = {}
        self._deleted = []
        # How many of the deleted jobs were deleted before the last crash.
        self._deleted_before = 0

    # In each life of the server the client connects, checks its jobs, and works until the server
    # dies.

    def connect(self, connection: Connection) -> None:
        self._connection = connection
        for line in (b"use ", b"watch "):
            connection.call(line + self._name.encode())
        connection.call(b"ignore default")

    def work(self) -> None:
        """Sends batch after batch until the connection breaks."""
        try:
            while True:
                self._exchange(
                    self._taking_batch() if self._rng.random() < 0.7 else self._meddling_batch()
                )
        except (Closed, ConnectionError):
            pass

    def crashed(self) -> None:
        self._connection.close()
        self.ledger.crashed()
        self._held = []
        self._idle = {
            r.token: r for r in self.ledger.jobs.values() if r.states != {GONE} and r.id is not None
        }

    def verify(self) -> None:
        """Looks at all jobs deleted since the last look, and at some of those deleted before and of
        those that are kept."""
        recently = self._deleted[self._deleted_before :]
        long_ago = self._some(self._deleted[: self._deleted_before], _OLD_DELETES_LOOKED_AT)
        self._deleted_before = len(self._deleted)
        self._look_at(self._some(list(self._idle.values()), _KEPT_LOOKED_AT) + recently + long_ago)

    def _some(self, jobs: list, most: int) -> list:
        return self._rng.sample(jobs, min(len(jobs), most))

    def verify_everything(self) -> None:
        self._look_at([r for r in self.ledger.jobs.values() if r.id is not None])

    # Batches of commands. A batch that reserves jobs has no other commands on jobs that may be
    # ready.

    def _taking_batch(self) -> list:
        batch = []
        for _ in range(self._rng.choice([1, 5, 20, 60])):
            choice = self._rng.random()
            if choice < 0.4:
                batch.append(self._put())
            elif choice < 0.65 or not self._held:
                batch.append(self._reserve(0))
            else:
                batch.append(self._finish(self._held.pop(self._rng.randrange(len(self._held)))))
        if self._rng.random() < 0.2:
            batch.append(self._reserve(30 if self._verbs is IN_MILLISECONDS else 0))  # waits
        return batch

    def _meddling_batch(self) -> list:
        batch = []
        for job in self._some(list(self._idle.values()), self._rng.choice([1, 10, 30])):
            if self._rng.random() < 0.5:
                batch.append(self._on(job, b"delete %d", GONE, b"DELETED", self._gone))
            else:
                batch.append(self._on(job, b"kick-job %d", READY, b"KICKED", lambda _: None))
            batch.append(self._put())
        return batch

    def _put(self) -> _Sent:
        self.counts["puts sent"] += 1
        token = f"{self._name}-{self.counts['puts sent']}".encode()
        size = (
            self._rng.choice([0, 10, 200, 200, 200, 3000]) if self._rng.random() < 0.99 else 60_000
        )
        body = token + b" " + self._rng.randbytes(size)
        delay = self._delay(self._rng.choice(["none", "none", "near", "near", "far"]))
        pri = self._rng.choice([0, 100, 2000])
        job = self.ledger.put_sent(token, body, self._due(delay))
        ttr = 120_000 // self._verbs.milliseconds_per_unit

        def answered(reply: Reply) -> None:
            if reply.word != b"INSERTED":
                raise Violation(f"put: {reply}")
            self.counts["puts acknowledged"] += 1
            self.ledger.put_acknowledged(job, reply.number())
            self._wait(job)

        return _Sent(
            b"%s %d %d %d %d\r\n%s\r\n" % (self._verbs.put, pri, delay, ttr, len(body), body),
            answered,
        )

    def _reserve(self, wait: int) -> _Sent:
        def answered(reply: Reply) -> None:
            if reply.word == b"TIMED_OUT":
                return
            if reply.word != b"RESERVED":
                raise Violation(f"reserve: {reply}")
            self.counts["reserved"] += 1
            job = self.ledger.delivered(reply.number(), reply.body, time.time_ns())
            self._held.append(job)
            self._idle.pop(job.token, None)

        return _Sent(b"%s %d\r\n" % (self._verbs.reserve, wait), answered)

    def _finish(self, job: TrackedJob) -> _Sent:
        """Returns a command on a job that the client holds, as a worker would send it."""
        kind = self._rng.choices(
            ["delete", "release", "release later", "bury", "touch"], [50, 10, 20, 15, 5]
        )[0]
        if kind == "delete":
            return self._on(job, b"delete %d", GONE, b"DELETED", self._gone)
        if kind == "bury":
            return self._on(job, b"bury %d 50", BURIED, b"BURIED", self._wait)
        if kind == "touch":
            return self._on(job, b"touch %d", None, b"TOUCHED", self._held.append)
        delay = self._delay("near") if kind == "release later" else 0
        line = self._verbs.release + b" %d 50 " + b"%d" % delay
        return self._on(job, line, waiting_until(self._due(delay)), b"RELEASED", self._wait)

    def _on(self, job: TrackedJob, line: bytes, leads_to, success: bytes, then: Callable) -> _Sent:
        """Returns a command on one job. With `leads_to` None the job stays in its state."""
        command = line.split(b" ")[0].decode()
        if leads_to:
            self.ledger.sent(job, command, leads_to)

        def answered(reply: Reply) -> None:
            if reply.line == b"NOT_FOUND":
                self.ledger.refused(job, command.removesuffix("-ms"), time.time_ns())
                return
            if reply.line != success:
                raise Violation(f"{command}: {reply}: {job}")
            self.counts[command.removesuffix("-ms")] += 1
            if leads_to:
                self.ledger.acknowledged(job)
            then(job)

        return _Sent(line % job.id + b"\r\n", answered)

    def _gone(self, job: TrackedJob) -> None:
        self._deleted.append(job)
        self._idle.pop(job.token, None)

    def _wait(self, job: TrackedJob) -> None:
        self._idle[job.token] = job

    def _delay(self, kind: str) -> int:
        """Returns a delay in the unit of the verbs."""
        if kind == "none":
            return 0
        if kind == "far":
            return _FORTY_DAYS_S * 1000 // self._verbs.milliseconds_per_unit
        return self._rng.randrange(_LONGEST_NEAR_DELAY_MS + 1) // self._verbs.milliseconds_per_unit

    def _due(self, delay: int) -> int:
        """Returns the moment before which a job that is sent from now on must not be handed out."""
        return time.time_ns() + delay * self._verbs.milliseconds_per_unit * 1_000_000

    def _exchange(self, batch: list) -> None:
        """Sends the batch at once, and takes the answers in order. If the server crashes, the
        answers that came before count."""
        try:
            self._connection.send(b"".join(sent.data for sent in batch))
        finally:
            for sent in batch:
                sent.answered(self._connection.reply())

    # Looking.

    def _look_at(self, jobs: list) -> None:
        for first in range(0, len(jobs), _VERIFIED_AT_ONCE):
            some = jobs[first : first + _VERIFIED_AT_ONCE]
            self._connection.send(
                b"".join(b"stats-job %d\r\npeek %d\r\n" % (r.id, r.id) for r in some)
            )
            for job in some:
                stats, peek = self._connection.reply(), self._connection.reply()
                now = time.time_ns()
                if (stats.word == b"OK") != (peek.word == b"FOUND"):
                    raise Violation(f"stats-job says {stats.line}, peek {peek.line}: {job}")
                state = "gone" if stats.line == b"NOT_FOUND" else _state(stats.body)
                self.ledger.seen(job, state, peek.body, now)
        self.counts["looked at"] += len(jobs)

    # The end.

    def take_everything(self) -> None:
        """Reserves until no job is ready, and checks that no due job is missing. Then deletes what
        it has reserved."""
        before = time.time_ns()
        while True:
            taken = len(self._held)
            self._exchange([self._reserve(0) for _ in range(100)])
            if len(self._held) == taken:
                break
        missing = self.ledger.missing(before)
        if missing:
            raise Violation(
                f"{len(missing)} jobs are due and were not handed out, such as {missing[0]}"
            )
        held, self._held = self._held, []
        self._exchange([self._on(r, b"delete %d", GONE, b"DELETED", self._gone) for r in held])

    def count_what_is_left(self) -> None:
        """Checks that the tube has no more jobs than it can have, and no fewer than it must."""
        stats = self._connection.stats(b"stats-tube " + self._name.encode())
        for field, state in (
            ("current-jobs-delayed", "waiting"),
            ("current-jobs-buried", "buried"),
        ):
            must = sum(all(s.name == state for s in r.states) for r in self.ledger.jobs.values())
            may = sum(any(s.name == state for s in r.states) for r in self.ledger.jobs.values())
            if not must <= int(stats[field]) <= may:
                raise Violation(
                    f"{self._name}: {field} is {stats[field]}; it must be {must} … {may}"
                )
        if (stats["current-jobs-ready"], stats["current-jobs-reserved"]) != ("0", "0"):
            raise Violation(f"{self._name}: jobs are left over: {stats}")

    def delete_the_rest(self) -> None:
        self._exchange(
            [
                self._on(r, b"delete %d", GONE, b"DELETED", self._gone)
                for r in self._known_to_exist()
            ]
        )

    def _known_to_exist(self) -> list:
        return [r for r in self.ledger.jobs.values() if r.id is not None and GONE not in r.states]


def _state(stats_job: bytes) -> str:
    return next(line[7:].decode() for line in stats_job.split(b"\n") if line.startswith(b"state: "))
