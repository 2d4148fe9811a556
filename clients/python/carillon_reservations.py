"""Holds many reserved jobs of Carillon in the background: part of carillon_kombu.py.

Only the connection that has reserved a job may end it, and a connection that waits for a job can do
nothing else. So each job that is held has a connection of its own. One thread waits for jobs, and
another one keeps those that came: it touches them before their ttr is over, and takes them back
when the server has restarted. So whoever works on a job does not notice that.
"""

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import carillon


class Queue(NamedTuple):
    """What is made of the jobs of a tube."""

    name: str
    no_ack: bool  # jobs are deleted when they are taken, and not held


class Taken(NamedTuple):
    """A job that was taken. `tag` is for end(); None if the job is not held."""

    queue: str
    message: Any
    tag: Optional[str]


class Client(carillon.Client):
    """A client that says which tubes it uses and watches only if that changes."""

    used: Optional[str] = None
    watched: Tuple[str, ...] = ()

    def use_now(self, tube: str) -> None:
        if self.used != tube:
            self.use(tube)
            self.used = tube

    def watch_now(self, *tubes: str) -> None:
        if self.watched != tubes:
            self.watch(*tubes)
            self.watched = tubes


class _Held:
    def __init__(self, client: Client, job_id: int, touch_every: float):
        self.client = client
        self.id = job_id
        self.touch_every = touch_every  # seconds
        self.next_touch = time.monotonic() + touch_every
        self.ending: Optional[str] = None  # as in end(), which did not reach the server
        self.lost = False  # another client has it, as far as is known
        self.lock = threading.Lock()  # guards all above


class Reservations:
    """The jobs that a channel holds. Any thread may call any method.

    `connect` makes a client. `read` makes a message of a job and what stats-job says about it; a
    job for which it raises ValueError is buried. `deliver` is called by the thread that gets jobs,
    and `idle` by the same about every `wait` seconds. `pause`: that long nothing is taken after the
    server was lost, so that all workers have time to take back what they hold."""

    def __init__(
        self,
        connect: Callable[[], Client],
        read: Callable[[carillon.Job, Dict[str, Any]], Any],
        deliver: Callable[[Taken], None],
        idle: Callable[[], None],
        log: Any,
        *,
        most: int,
        pause: float,
        wait: float,
    ):
        self._connect = connect
        self._read = read
        self._deliver = deliver
        self._on_idle = idle
        self._log = log
        self._most = most
        self._pause = pause
        self._wait = wait
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()  # guards all below; notified at each change
        self._held: Dict[str, _Held] = {}  # by tag
        self._free: List[Client] = []  # connections that hold no job
        self._waiting: Optional[Client] = None  # the one that waits for a job
        self._queues: Dict[str, Queue] = {}  # by tube
        self._threads: Dict[str, threading.Thread] = {}
        self._closed = False
        # Deletes go side by side: the server makes them durable with one sync.
        self._deleters = ThreadPoolExecutor(8, "carillon-delete")

    # --- What a channel wants.

    def consume(self, tube: str, queue: Queue) -> None:
        """Jobs of this tube are delivered from now on, too."""
        with self._changed:
            self._queues[tube] = queue
            self._start("fetch", self._fetch)
            self._interrupt()

    def cancel(self, tube: str) -> None:
        with self._changed:
            if self._queues.pop(tube, None):
                self._interrupt()

    def set_most(self, most: int) -> None:
        """Delivers no job while this many are held."""
        with self._changed:
            self._most = most
            self._changed.notify_all()

    def get(self, tube: str, queue: Queue) -> Optional[Taken]:
        """Takes a job that is ready now."""
        client = self._a_client()
        client.watch_now(tube)
        job = client.reserve(0)
        taken = self._take(client, job, {tube: queue}) if job else None
        self._put_back(client)
        return taken

    def end(self, tag: str, ending: str) -> None:
        """Ends a reservation by "delete", "release" or "bury"; later, if the server cannot be
        reached. Does not wait for a delete."""
        with self._changed:
            held = self._held.get(tag)
            if not held:
                return
            held.ending = held.ending or ending
        if ending == "delete":
            try:
                self._deleters.submit(self._end_now, tag, held)
                return
            except RuntimeError:
                pass  # it is being closed
        self._end_now(tag, held)

    def _end_now(self, tag: str, held: _Held) -> None:
        with held.lock:
            try:
                if tag in self._held:
                    self._finish(tag, held)
            except carillon.ConnectionLost:
                held.next_touch = 0

    def release_all(self) -> None:
        with self._changed:
            tags = list(self._held)
        for tag in tags:
            self.end(tag, "release")
            if tag in self._held:
                return  # there is no server to tell it to

    def close(self) -> None:
        """Gives all jobs back, and ends the threads."""
        with self._changed:
            if self._closed:
                return
            self._queues.clear()
            self._interrupt()
        self._deleters.shutdown(wait=True)
        self.release_all()
        with self._changed:
            self._closed = True
            for held in self._held.values():
                held.client.interrupt()
            for client in self._free:
                client.close()
            self._held.clear()
            self._free.clear()
            self._interrupt()

    def forget(self) -> None:
        """In the child of a fork: leaves all to the parent. Takes no lock, since threads that the
        child does not have may hold them."""
        clients = [held.client for held in self._held.values()] + self._free
        for client in clients + ([self._waiting] if self._waiting else []):
            client.forget()
        self._reset()
        self._closed = True

    # --- The thread that gets jobs.

    def _start(self, name: str, run: Callable[[], None]) -> None:
        if name not in self._threads and not self._closed:
            thread = threading.Thread(target=run, name=f"carillon-{name}", daemon=True)
            self._threads[name] = thread
            thread.start()

    def _interrupt(self) -> None:
        if self._waiting:
            self._waiting.interrupt()
        self._changed.notify_all()

    def _a_client(self) -> Client:
        with self._changed:
            return self._free.pop() if self._free else self._connect()

    def _put_back(self, client: Client) -> None:
        """Keeps a connection for the next job, unless it holds one."""
        with self._changed:
            if client in self._free or any(held.client is client for held in self._held.values()):
                return
            if client.interrupted or self._closed:
                client.close()
            else:
                self._free.append(client)

    def _fetch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or (self._queues and len(self._held) < self._most)
                )
                if self._closed:
                    return
                queues = dict(self._queues)
                client = self._waiting = self._a_client()
            try:
                client.watch_now(*sorted(queues))
                job = client.reserve(self._wait)
                taken = self._take(client, job, queues) if job else None
                if taken:
                    self._deliver(taken)
                self._on_idle()
            except carillon.CarillonError as error:
                client.close()
                if not client.interrupted:
                    self._outlast(error)
            with self._changed:
                self._waiting = None
            self._put_back(client)

    def _take(self, client: Client, job: carillon.Job, queues: Dict[str, Queue]) -> Optional[Taken]:
        if self._adopt(client, job):
            return None
        facts = client.stats_job(job.id)
        queue = queues[facts["tube"]]
        try:
            message = self._read(job, facts)
        except ValueError as error:
            self._log.error("job %d of tube %s: %s; it is buried", job.id, facts["tube"], error)
            client.bury(job.id)
            return None
        if queue.no_ack:
            client.delete(job.id)
            return Taken(queue.name, message, None)
        tag = f"{job.id}.{uuid.uuid4().hex}"
        with self._changed:
            if client.interrupted:
                raise carillon.ConnectionLost("interrupted", False)
            self._waiting = None
            self._held[tag] = _Held(client, job.id, max(0.3, int(facts["ttr"]) / 3))
            self._start("keep", self._keep)
            self._changed.notify_all()
        return Taken(queue.name, message, tag)

    def _adopt(self, client: Client, job: carillon.Job) -> bool:
        """Returns whether the job is one that is worked on here. It was lost, and came here again:
        the work goes on under the new reservation."""
        with self._changed:
            found = [(tag, held) for tag, held in self._held.items() if held.id == job.id]
            if found and client.interrupted:
                raise carillon.ConnectionLost("interrupted", False)
            if found:
                self._waiting = None
        for tag, held in found:
            with held.lock:
                held.client.close()
                held.client = client
                held.lost = False
                held.next_touch = time.monotonic() + held.touch_every
                if held.ending:
                    self._finish(tag, held)
        return bool(found)

    def _outlast(self, error: Exception) -> None:
        """Waits until the server is back, and until all workers have taken their jobs back."""
        self._log.warning("lost the server, and try again: %s", error)
        probe = self._connect()
        while not self._closed:
            try:
                probe.stats()
                break
            except carillon.CarillonError:
                time.sleep(0.25)
        probe.close()
        with self._changed:
            self._changed.wait_for(lambda: self._closed, self._pause)
        self._log.warning("the server is back")

    # --- The thread that keeps jobs.

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._held)
            time.sleep(0.25)  # much less than the pause
            with self._changed:
                if self._closed:
                    return
                all_held = list(self._held.items())
            for tag, held in all_held:
                with held.lock:
                    due = held.client.is_cut() or held.next_touch <= time.monotonic()
                    if due and not held.lost and tag in self._held:
                        self._attend(tag, held)

    def _attend(self, tag: str, held: _Held) -> None:
        held.next_touch = 0  # at once again, if the server cannot be reached
        try:
            if held.ending:
                self._finish(tag, held)
                return
            try:
                held.client.touch(held.id)
            except carillon.NotFound:
                # The connection was lost, or the ttr is over. The job is ready, if nobody has it.
                held.client.reserve_job(held.id)
            held.next_touch = time.monotonic() + held.touch_every
        except carillon.ConnectionLost:
            pass
        except carillon.Refused as error:
            held.lost = True
            self._log.warning("job %d is lost, it may be run twice: %s", held.id, error)

    def _finish(self, tag: str, held: _Held) -> None:
        """Ends a job as was asked for. A job that has become ready meanwhile is still deleted. It
        is released already. To bury it, it is reserved again."""
        try:
            if held.ending == "delete":
                held.client.delete(held.id)
            elif held.ending == "release":
                held.client.release(held.id)
            else:
                try:
                    held.client.bury(held.id)
                except carillon.NotFound:
                    held.client.reserve_job(held.id)
                    held.client.bury(held.id)
        except carillon.Refused as error:
            if held.ending != "release":
                self._log.warning("job %d was lost before it ended: %s", held.id, error)
        with self._changed:
            self._held.pop(tag, None)
        self._put_back(held.client)
        with self._changed:
            self._changed.notify_all()
