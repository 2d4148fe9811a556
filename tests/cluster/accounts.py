"""What clients know about the jobs of a cluster, by its answers alone. Violation is raised when an
answer contradicts them: a job is lost, back from the dead, early, there twice, or with two workers.

Each job has a token of its own as its body. A command without an answer may have done its work or
not, and may do it later. All times are of this machine's wall clock, in seconds, as are those of
the nodes: so none is early by their skew.

    accounts = Accounts()
    job = accounts.put_sent("7", due=time.time() + 0.5)
    accounts.put_done(job, id=12)
    accounts.handed_out(12, "7", asked=…, now=…, lease=…, lease_ends=…)
    accounts.end_sent(job, "delete")
    accounts.end_done(job, "deletes")             # a delete, an :ack or a cancel was confirmed

Thread safety: all methods.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Optional

# The server counts in milliseconds.
ROUNDING = 0.002
# A reserve waits for half a second. An answer that comes after this was held up.
LATE = 0.8


class Violation(AssertionError):
    """The cluster broke a promise."""


@dataclass(eq=False)
class Job:
    token: str
    due: float  # it is handed out no earlier
    id: Optional[int] = None
    put_done: Optional[float] = None  # when the put was confirmed
    ends: int = 0  # how many commands were sent that end it, without those that were refused
    end_done: Optional[float] = None  # when that was confirmed
    lease: str = ""  # the last one that is known; "": none, or its worker has given it back
    lease_ends: float = 0.0
    was_handed_out: bool = False
    history: str = ""

    def note(self, text: str):
        self.history += f" {time.time() % 1000:.3f} {text};"

    def __str__(self) -> str:
        return f"job {self.id} ({self.token}):{self.history[-1500:]}"


class Accounts:
    def __init__(self):
        self._lock = threading.RLock()
        self._by_token = {}
        self._tokens = {}  # by id
        self._owed = set()  # jobs that must be there
        self.counts = Counter()
        self.last_answer = time.monotonic()
        self.longest_gap = 0.0

    def _answered(self, what: str):
        now = time.monotonic()
        self.longest_gap = max(self.longest_gap, now - self.last_answer)
        self.last_answer = now
        self.counts[what] += 1

    def _learn_id(self, job: Job, job_id: int):
        if job.id not in (None, job_id):
            raise Violation(f"there twice, also as job {job_id}: {job}")
        if self._tokens.setdefault(job_id, job.token) != job.token:
            raise Violation(f"job {job_id} is also {self._tokens[job_id]}: {job}")
        job.id = job_id

    def owed(self) -> int:
        """How many jobs must be there."""
        return len(self._owed)

    # --- Commands.

    def put_sent(self, token: str, due: float) -> Job:
        with self._lock:
            job = self._by_token[token] = Job(token, due)
            job.note(f"put, due {due % 1000:.3f}")
            return job

    def put_done(self, job: Job, job_id: int):
        with self._lock:
            self._answered("puts")
            job.note(f"put as {job_id}")
            self._learn_id(job, job_id)
            job.put_done = time.time()
            if job.ends == 0:
                self._owed.add(job)

    def end_sent(self, job: Job, how: str):
        with self._lock:
            job.note(how)
            job.ends += 1
            self._owed.discard(job)

    def end_refused(self, job: Job, why: str):
        """The last such command has certainly done nothing."""
        with self._lock:
            job.note(why)
            job.ends -= 1
            if job.ends == 0 and job.put_done is not None:
                self._owed.add(job)

    def end_done(self, job: Job, what: str):
        with self._lock:
            self._answered(what)
            job.note("done")
            job.end_done = job.end_done or time.time()

    def giving_back(self, job: Job):
        """A release or a nack is on its way: somebody may get the job at any time."""
        with self._lock:
            job.note("given back")
            job.lease = ""
            job.due = 0.0

    def given_back(self, job: Job, due: float):
        """It was confirmed."""
        with self._lock:
            self._answered("given back")
            job.note(f"due {due % 1000:.3f}")
            job.due = due

    def missing(self, job: Job, how: str, sent_before: bool = False):
        """The cluster says that the job is not there, when it should end. `sent_before`: the same
        command was sent before, and not answered."""
        with self._lock:
            job.note(how)
            self.counts["not there"] += 1
            if job.ends == 1 and not sent_before:
                raise Violation(f"lost: {job}")

    # --- What the cluster shows.

    def handed_out(self, job_id, token, asked, lease="", lease_ends=0.0) -> Job:
        """`asked`: when the reserve was sent."""
        now = time.time()
        with self._lock:
            self._answered("hand-outs")
            job = self._seen(
                job_id, token, asked, f"handed out {lease} until {lease_ends % 1000:.3f}"
            )
            if job.was_handed_out and (lease_ends < now if lease else now - asked > LATE):
                # An answer that was held up, such as by a node that was stopped when it had the
                # right to answer: others may have had the job meanwhile.
                self.counts["late hand-outs"] += 1
                return job
            job.was_handed_out = True
            if now < job.due - ROUNDING:
                raise Violation(f"{job.due - now:.3f} s early: {job}")
            if job.lease and job.lease_ends > now + ROUNDING:
                raise Violation(f"two workers have it for {job.lease_ends - now:.3f} s: {job}")
            job.lease = lease
            job.lease_ends = lease_ends
            job.due = 0.0
            return job

    def extended(self, job: Job, lease: str, lease_ends: float):
        with self._lock:
            self._answered("extends")
            job.note(f"extended until {lease_ends % 1000:.3f}")
            if job.lease == lease:
                job.lease_ends = lease_ends

    def refused(self, job: Job, lease: str, before: bool):
        """An operation of a lease was refused, because the lease is over. `before`: it was sent
        before, and not answered."""
        now = time.time()
        with self._lock:
            job.note("lease over")
            self.counts["leases over"] += 1
            if job.lease == lease and now < job.lease_ends - ROUNDING and not before:
                raise Violation(f"a lease ended {job.lease_ends - now:.3f} s early: {job}")

    def listed(self, jobs, asked: float, is_whole: bool):
        """A list, of (id, token), that was asked for at `asked`. `is_whole`: it has all jobs."""
        with self._lock:
            self._answered("lists")
            there = {self._seen(*one, asked, "listed").token for one in jobs}
            # A job that moves on may be in two pages.
            if not is_whole:
                return
            if len(there) != len(jobs):
                raise Violation("a job is in a list twice")
            for job in self._owed:
                if job.token not in there and job.put_done < asked:
                    raise Violation(f"lost: it is in no list: {job}")

    def _seen(self, job_id: int, token: str, asked: float, how: str) -> Job:
        job = self._by_token.get(token)
        if job is None:
            raise Violation(f"nobody has put job {job_id} ({token})")
        if how != "listed":
            job.note(how)
        self._learn_id(job, job_id)
        if job.end_done is not None and job.end_done < asked:
            raise Violation(f"back from the dead ({how}): {job}")
        return job
