"""A client of Carillon, the delayed-job server: one file, the standard library alone.

    from carillon import Client

    with Client() as queue:  # 127.0.0.1:11300
        queue.put("hello", delay=3)  # in three seconds
        queue.put("remind", key="invoice-7", delay="1h30m", on_conflict="replace")
        queue.put_many(["a", "b", "c"], once="import-7")
        queue.work("default", lambda job: print(job.text))

Times are seconds, as a number or a timedelta, or texts with a unit ("250ms", "3s", "40d"). What is
finer than a millisecond is rounded up, so that nothing comes early. Further options of the server's
verbs are keyword arguments, with `_` for `-`: `put(body, max_attempts=5, backoff="1s..1h",
attributes={"content_type": "text/csv"})`. The server checks them, so options that are newer than
this file work, too. docs/protocol.md of Carillon says what each verb does and promises.

Producers and workers talk on the port of the beanstalk protocol. What operators ask for (lists,
changes of many jobs, settings, schedules) goes to the server's HTTP API: keyword arguments are the
fields of the request, and what is returned has those of the answer, as docs/http.md names them.

Errors. All are CarillonError. Refused is an answer of the server, with its words in `reply` (by
HTTP: the status and the reason), and nothing was changed unless it says how many jobs were; its
subclasses say which. ConnectionLost is no answer: see `unknown`.

Lost connections. The client connects with the first command, and again when the connection is gone;
tubes and name are set anew. Each request by HTTP has a connection of its own. A command that may be
repeated is sent again once: all that only read or set the same again, a reserve (jobs of the lost
connection come back by themselves), a batch with `once`, and a put with a key and a key_window
whose on_conflict replaces no job: it is "reject", "ignore" or absent. (Let the window be longer
than `timeout`. If somebody cancels the job between the reply that was lost and the repeat, its key
is free, and the repeat makes the job anew. So does a repeat for a job that has expired by then, or
was deleted while it was delayed or buried.) Any other command that was sent raises ConnectionLost
with `unknown` true, as nobody knows whether it was carried out. Jobs that were reserved are not
held any more.

Not thread-safe: each thread needs a Client of its own. Another thread may only interrupt() it. A
child of fork() that goes on to use a Client calls its forget() first.
"""

import base64
import datetime
import http.client
import json
import os
import random
import re
import select
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

__all__ = [
    "Client",
    "Job",
    "Put",
    "Failed",
    "Changed",
    "CarillonError",
    "ConnectionLost",
    "Refused",
    "NotFound",
    "IsReserved",
    "BatchRefused",
]

MAX_BATCH = 1_000  # jobs in one command
MAX_BATCH_BYTES = 1 << 20
_MAX_LINE = 1_022  # bytes of a command
_HTTP_BESIDE = 80  # how much higher the port for HTTP is

Body = Union[str, bytes]
Duration = Union[int, float, str, datetime.timedelta]


class CarillonError(Exception):
    """Any error of this module."""


class ConnectionLost(CarillonError):
    """The server cannot be reached, or the connection ended before the answer came.

    `unknown`: the command was sent. It was carried out, or not.
    """

    def __init__(self, message: str, unknown: bool):
        super().__init__(message)
        self.unknown = unknown


class Refused(CarillonError):
    """The server has answered that it does not do this. `reply` has its words, `word` the first."""

    def __init__(self, command: str, reply: str):
        super().__init__(f"{command}: {reply}")
        self.reply = reply
        self.word = reply.split(" ")[0]


class NotFound(Refused):
    """There is no such job, schedule or tube, or this client does not hold the job."""


class IsReserved(Refused):
    """A worker holds the job."""


class BatchRefused(Refused):
    """Nothing of the batch was put. `index` is that of the job that was in the way; `why` is what
    the server says of it: "EXISTS 7 ready"."""

    def __init__(self, command: str, reply: str):
        super().__init__(command, reply)
        _, number, self.why = reply.split(" ", 2)
        self.index = int(number) - 1


class Put(NamedTuple):
    """What became of a put: "INSERTED", or with a key "REPLACED" or "EXISTS". If a job exists,
    `state` says whether it will run: "delayed", "ready", "reserved"; "buried" and "dead" rest until
    somebody kicks or replaces them; "done": it is gone, and its key_window is not over."""

    id: int
    result: str
    state: Optional[str] = None


def _put_of(words: List[str]) -> Put:
    return Put(int(words[1]), words[0], words[2] if len(words) > 2 else None)


class Failed(NamedTuple):
    """What becomes of a job whose attempt has failed: "AGAIN", "DEAD" or "CANCELLED"."""

    result: str
    attempts: int
    delay: float  # seconds until it comes again


class Changed(NamedTuple):
    """What a change of many jobs did. `left`: reserved jobs, and those whose key is taken there."""

    jobs: int
    left: int


class Job:
    """A job with its body. The methods end or extend the reservation of a reserved job."""

    def __init__(self, client: "Client", job_id: int, body: bytes):
        self.id = job_id
        self.body = body
        self.done = False  # deleted, released, buried or failed by these methods
        self._client = client

    def __repr__(self) -> str:
        return f"Job(id={self.id}, {len(self.body)} bytes)"

    @property
    def text(self) -> str:
        return self.body.decode()

    def delete(self) -> None:
        self._client.delete(self.id)
        self.done = True

    def release(self, pri: Optional[int] = None, delay: Duration = 0) -> None:
        self._client.release(self.id, pri, delay)
        self.done = True

    def bury(self, pri: int = 65536) -> None:
        self._client.bury(self.id, pri)
        self.done = True

    def fail(self, error: Body, **options: Any) -> Failed:
        failed = self._client.fail(self.id, error, **options)
        self.done = True
        return failed

    def touch(self) -> bool:
        """Lets the ttr begin anew. Returns true if somebody has asked for the job's cancel."""
        return self._client.touch(self.id)

    def delay_of_failure(self) -> Optional[float]:
        """Returns None if the job or its tube has a back-off; else 1 s, doubled for each attempt
        that has failed, up to an hour, less up to a quarter at random."""
        try:
            stats = self._client.stats_job(self.id)
        except Refused as refused:
            if refused.word != "FORBIDDEN":
                raise
            return None  # a token that may not read does not hold the job any more
        if "backoff-ms" in stats:
            return None
        return min(2 ** min(stats.get("attempts", 0), 12), 3600) * random.uniform(0.75, 1)


# Options whose numbers are no seconds; and fields of HTTP whose numbers are.
_NUMBERS = {"pri", "max-attempts", "spans"}
_SECONDS = {"every", "spread", "catch_up_window", "ttr", "expires_in", "over", "duration"}
_SECONDS |= {"retention", "per", "initial"}  # and the max of a backoff


def _bytes(body: Body) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)


def _ms(duration: Duration) -> str:
    if isinstance(duration, str):
        return duration
    if isinstance(duration, datetime.timedelta):
        return f"{-(-duration // datetime.timedelta(milliseconds=1))}ms"
    ms = round(duration * 1000)
    return f"{ms + 1 if ms / 1000 < duration else ms}ms"


def _value(name: str, value: Any) -> str:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name}: a datetime needs a time zone")
        up = datetime.timedelta(microseconds=-value.microsecond % 1000)
        return (value + up).isoformat(timespec="milliseconds")
    if isinstance(value, bool):
        return "yes" if value else "no"
    is_number = isinstance(value, (int, float))
    if isinstance(value, datetime.timedelta) or (is_number and name not in _NUMBERS):
        return _ms(value)
    if isinstance(value, dict):
        # Spaces are in its texts only.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.replace(" ", "\\u0020")
    text = str(value)
    if "\r" in text or "\n" in text:
        raise ValueError(f"{name}: {text!r} has the end of a line")
    if " " not in text and not text.startswith('"'):
        return text
    if '"' in text:
        raise ValueError(f"{name}: {text!r} has a quote, and a space or the quote at its begin")
    return f'"{text}"'


def _options(options: Dict[str, Any]) -> str:
    words = []
    for key, value in options.items():
        if value is None:
            continue
        name = key.replace("_", "-")
        words.append(f" {name}={_value(name, value)}")
    return "".join(words)


def _scalar(value: str) -> Union[int, str, bool]:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(
            r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))",
            lambda escape: escape[3] or chr(int(escape[1] or escape[2], 16)),
            value[1:-1],
        )
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isascii() and value.isdigit() else value


def _yaml(text: str) -> Any:
    """Reads the subset of YAML that the server writes: a dict, or a list."""
    items: List[str] = []
    fields: Dict[str, Any] = {}
    for line in text.split("\n")[1:-1]:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            name, _, value = line.partition(": ")
            fields[name] = _scalar(value)
    return fields or items


def _json_of(value: Any, name: str = "") -> Any:
    """Returns what JSON has for the value of this field."""
    if isinstance(value, dict):
        is_own = name in ("metadata", "attributes")
        if name == "backoff" and "max" in value:
            value = {**value, "max": _json_of(value["max"], "initial")}
        return value if is_own else {key: _json_of(one, key) for key, one in value.items()}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, datetime.timedelta) or (is_number and name in _SECONDS):
        return _ms(value)
    return _value(name, value) if isinstance(value, datetime.datetime) else value


def _query(fields: Dict[str, Any]) -> str:
    words = {name: _json_of(value, name) for name, value in fields.items() if value is not None}
    return "?" + urllib.parse.urlencode(words) if words else ""


def _with_bytes(fields: Dict[str, Any]) -> Dict[str, Any]:
    """What is not UTF-8 comes as Base64, and is returned as bytes."""
    for name in [name for name in fields if name.endswith("_base64")]:
        fields[name[: -len("_base64")]] = base64.b64decode(fields.pop(name))
    return fields


def _body_field(body: Body) -> Dict[str, str]:
    try:
        return {"body": _bytes(body).decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(_bytes(body)).decode()}


def _tls_context(tls: Union[bool, str, ssl.SSLContext]) -> Optional[ssl.SSLContext]:
    if isinstance(tls, ssl.SSLContext) or not tls:
        return tls or None
    return ssl.create_default_context(cafile=None if tls is True else tls)


_Address = Union[str, Tuple[str, int]]


class Client:
    """A connection to a server; see the module for what happens when it is lost.

    `path`: of a unix socket, instead of host and port. `http`: where the server answers HTTP, a
    host and a port or the path of a unix socket; without it port + 80, or `path` + ".http", as
    `carillon serve` has it. `timeout`: how long an answer may take, and a connect, in seconds; a
    reserve may take that much longer than asked for.

    `token`: what the server asks for, if it has tokens. `tls`: True, if the server speaks TLS and
    this system trusts its certificate; or the file of those that may sign it (PEM); or an
    ssl.SSLContext. The certificate must be for `host`. A certificate that is not good raises
    ConnectionLost, and a wrong token Refused.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 11300,
        *,
        path: Optional[str] = None,
        http: Union[None, str, Tuple[str, int]] = None,
        tube: str = "default",
        name: Optional[str] = None,
        timeout: float = 30,
        token: Optional[str] = None,
        tls: Union[bool, str, ssl.SSLContext] = False,
    ):
        if token is not None and not re.fullmatch("[!-~]+", token):
            raise ValueError("the token is none: it is one word")
        self._token = token
        self._tls = _tls_context(tls)
        self._address: _Address = path if path else (host, port)
        self._http: _Address = http or (path + ".http" if path else (host, port + _HTTP_BESIDE))
        self._timeout = timeout
        self._tube = tube
        self._watched = ["default"]
        self._name = name
        self._socket: Optional[socket.socket] = None
        self._file: Any = None
        self._asking: Optional[socket.socket] = None  # for the request by HTTP that is under way
        self._deadline_soon = False  # the last reserve was answered so
        self.interrupted = False

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. Jobs that are reserved come back. The next command connects anew."""
        if self._socket:
            self._file.close()
            self._socket.close()
        self._socket = None

    def interrupt(self) -> None:
        """Ends the connection for good, from any thread: the command under way and all later ones
        raise ConnectionLost. So a reserve that waits comes to its end."""
        self.interrupted = True
        for connection in (self._socket, self._asking):
            if not connection:
                continue
            try:
                # As that of a plain socket: TLS would change what the other thread works with.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended already

    def forget(self) -> None:
        """In the child of a fork: leaves the connection to the parent. The next command connects
        anew."""
        if self._socket:
            os.close(self._socket.detach())
        self._socket = None

    def is_cut(self) -> bool:
        """Whether the server has ended the connection since the last command. Does not wait."""
        if not self._socket:
            return False
        if self._tls:
            return self._is_cut_by_tls()
        if not hasattr(select, "poll"):  # Windows
            return bool(select.select([self._socket], [], [], 0)[0])
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def _is_cut_by_tls(self) -> bool:
        # TLS itself may have sent something, as a proxy does with the tickets of its sessions.
        assert self._socket
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except ssl.SSLWantReadError:
            return False
        except OSError:
            pass
        return True

    # --- Producers.

    def use(self, tube: str) -> None:
        """Puts, keys, peeks and kicks are of this tube from now on."""
        self._call(f"use {tube}", ["USING"], again=True)
        self._tube = tube

    def put(self, body: Body, **options: Any) -> Put:
        """Puts a job. Options: delay, due (an aware datetime, or "2030-01-01T09:00:00Z"), spread,
        pri, ttr, key, on_conflict, key_window, group, max_attempts, backoff, jitter, lost,
        expires_in, expires_at, at_expiry, attributes (a dict), buried. Raises IsReserved if a
        worker holds the job that it should replace, or holds the job with its key, which waits for
        its cancel. A tube whose rate of puts is used up is waited for, up to the client's
        `timeout`; then Refused is raised, and its `word` is "TOO_FAST"."""
        data = _bytes(body)
        names = {name.replace("_", "-"): value for name, value in options.items()}
        again = bool(names.get("key") and names.get("key-window"))
        # A put that replaces makes a new job if a worker has carried out the first one meanwhile.
        again = again and names.get("on-conflict") in (None, "reject", "ignore")
        words = self._put(
            f"put-job {len(data)}{_options(options)}",
            ["INSERTED", "REPLACED", "EXISTS"],
            data,
            again,
        )
        return _put_of(words)

    def put_many(
        self,
        jobs: Iterable[Union[Body, Tuple[Body, Dict[str, Any]]]],
        *,
        once: Optional[str] = None,
        window: Optional[Duration] = None,
        **options: Any,
    ) -> List[Put]:
        """Puts up to 1 000 jobs, all or none. Each is a body, or a body and its options; `options`
        are of all jobs. With a token `once`, the same batch is never put twice: repeat it until it
        is answered. Raises BatchRefused if a job is in the way. Waits as `put` does."""
        parts = []
        for job in jobs:
            body, own = job if isinstance(job, tuple) else (job, {})
            data = _bytes(body)
            parts.append(b"%d%s\r\n%s\r\n" % (len(data), _options(own).encode(), data))
        data = b"".join(parts)
        options.update(once=once, window=window)
        command = f"put-jobs {len(data)}{_options(options)}"

        def read(words: List[str]) -> List[Put]:
            return [_put_of(self._line().split(" ")) for _ in range(int(words[1]))]

        return self._put(command, ["JOBS", "ALREADY"], data, once is not None, read)

    def _put(
        self,
        command: str,
        good: List[str],
        data: bytes,
        again: bool,
        read: Callable[[List[str]], Any] = lambda words: words,
    ) -> Any:
        """Sends the command until the rate of the tube lets it in."""
        end = time.monotonic() + self._timeout
        while True:
            try:
                return self._call(command, good, data, again=again, read=read)
            except Refused as refused:
                rest = int(refused.reply.split(" ")[1]) / 1000 if refused.word == "TOO_FAST" else 0
                if refused.word != "TOO_FAST" or time.monotonic() + rest > end:
                    raise
                time.sleep(max(rest, 0.001))

    # --- Workers.

    def watch(self, tube: str, *more: str) -> None:
        """Reserves take jobs of these tubes, and of no others, from now on."""
        wanted = [tube, *more]
        for name in wanted:
            self._call(f"watch {name}", ["WATCHING"], again=True)
        for name in self._watched:
            if name not in wanted:
                self._call(f"ignore {name}", ["WATCHING"], again=True)
        self._watched = wanted

    def set_name(self, name: str) -> None:
        """Names this client in the stories of jobs."""
        self._call(f"name-client {name}", ["NAMED"], again=True)
        self._name = name

    def reserve(self, timeout: Optional[float] = None) -> Optional[Job]:
        """Waits for a job, at most `timeout` seconds; for ever if it is None. Returns None when the
        time is up, or a job that this client holds is about to run out of its ttr."""
        jobs = self.reserve_many(1, timeout)
        return jobs[0] if jobs else None

    def reserve_many(self, most: int, timeout: Optional[float] = None) -> List[Job]:
        """Waits for a job as `reserve`, and takes up to `most` that are ready then."""
        command = f"reserve-jobs {most}{_options({'timeout': timeout})}"
        return self._call(
            command,
            ["JOBS", "TIMED_OUT", "DEADLINE_SOON"],
            again=True,
            patience=timeout,
            read=self._read_jobs,
        )

    def reserve_job(self, job_id: int) -> Job:
        """Reserves this job, whether its time has come or not."""
        return self._call(f"reserve-job {job_id}", ["RESERVED"], again=True, read=self._read_job)

    def delete(self, job_id: int) -> None:
        self._call(f"delete {job_id}", ["DELETED"])

    def delete_many(self, ids: Iterable[int]) -> List[bool]:
        """Deletes up to 1 000 jobs. Returns for each whether it was deleted."""
        return self._each("delete-jobs", ids, "", "DELETED")

    def release(self, job_id: int, pri: Optional[int] = None, delay: Duration = 0) -> None:
        """Gives a reserved job back. Without `pri` it keeps its priority."""
        if not self.release_many([job_id], pri, delay)[0]:
            raise NotFound(f"release {job_id}", "NOT_FOUND")

    def release_many(
        self, ids: Iterable[int], pri: Optional[int] = None, delay: Duration = 0
    ) -> List[bool]:
        """Gives up to 1 000 reserved jobs back. Returns for each whether this client held it."""
        options = _options({"pri": pri, "delay": _ms(delay)})
        return self._each("release-jobs", ids, options, "RELEASED")

    def bury(self, job_id: int, pri: int = 65536) -> None:
        self._call(f"bury {job_id} {pri}", ["BURIED"])

    def touch(self, job_id: int) -> bool:
        """Lets the ttr begin anew. Returns true if somebody has asked for the job's cancel."""
        return self._call(f"touch-job {job_id}", ["TOUCHED", "CANCEL_ASKED"])[0] != "TOUCHED"

    def fail(self, job_id: int, error: Body, **options: Any) -> Failed:
        """Ends an attempt that has failed. The job comes again, or is dead, as its policy says.
        Options: pri; delay instead of the back-off, and max_attempts instead of the policy's."""
        data = _bytes(error)[:65_536]
        words = self._call(
            f"fail-job {job_id} {len(data)}{_options(options)}",
            ["AGAIN", "DEAD", "CANCELLED"],
            data,
        )
        attempts = 0 if words[0] == "CANCELLED" else int(words[1])
        return Failed(words[0], attempts, int(words[2]) / 1000 if len(words) > 2 else 0)

    def work(
        self,
        tubes: Union[str, Iterable[str]],
        handler: Callable[[Job], Any],
        *,
        stop: Optional[threading.Event] = None,
        poll: float = 1,
    ) -> None:
        """Calls handler(job) for each job of the tubes until `stop` is set, which is checked every
        `poll` seconds. If the handler returns, the job is deleted; if it raises anything, the job
        has failed, with the exception's text. It comes again after the back-off of the job or its
        tube, and without one after 1 s, 2 s, 4 s, ... up to an hour. A handler may also end the
        job itself (job.delete(), job.release(), ...); a long one calls job.touch() now and then, as
        the ttr goes on.

        If the connection is lost, connects again for ever; the job that was under way comes again.
        If the server's disk or memory is full, asks again. interrupt() ends it with ConnectionLost,
        and whatever else the server refuses with Refused."""
        self.watch(*([tubes] if isinstance(tubes, str) else tubes))
        pause = 0.1
        while not (stop and stop.is_set()):
            try:
                job = self.reserve(poll)
                if job:
                    self._carry_out(job, handler, stop)
                elif self._deadline_soon:
                    _rest(0.1, stop)  # until then, the server answers at once
                pause = 0.1
            except (ConnectionLost, Refused) as error:
                if self.interrupted or not _will_pass(error):
                    raise
                _rest(pause, stop)
                pause = min(2 * pause, 5)

    @staticmethod
    def _carry_out(
        job: Job, handler: Callable[[Job], Any], stop: Optional[threading.Event]
    ) -> None:
        error = None
        try:
            handler(job)
        except Exception as exception:  # pylint: disable=broad-except
            error = f"{type(exception).__name__}: {exception}".encode("utf-8", "replace")
        pause = 0.1
        options: Dict[str, Any] = {}
        while not job.done:
            try:
                if error is None:
                    job.delete()
                else:
                    options = options or {"delay": job.delay_of_failure()}
                    job.fail(error, **options)
            except NotFound:
                return  # its ttr was over: another worker has it
            except Refused as refused:
                if not _will_pass(refused) or (stop and stop.is_set()):
                    raise
                _rest(pause, stop)
                pause = min(2 * pause, 5)

    # --- Anyone. `job` is an id, or the key of a job of the tube in use.

    def peek(self, job: Union[int, str]) -> Optional[Job]:
        return self._found(f"peek-job {_job(job)}")

    def peek_ready(self) -> Optional[Job]:
        return self._found("peek-ready")

    def peek_delayed(self) -> Optional[Job]:
        return self._found("peek-delayed")

    def peek_buried(self) -> Optional[Job]:
        return self._found("peek-buried")

    def cancel(self, job: Union[int, str], *, ask: bool = False) -> bool:
        """Deletes a job that nobody has reserved, and returns true. With `ask`, a job that is
        reserved is deleted when its reservation ends; returns false then. Else raises
        IsReserved."""
        command = f"cancel-job {_job(job)}{' reserved=ask' if ask else ''}"
        return self._call(command, ["CANCELLED", "CANCEL_ASKED"])[0] == "CANCELLED"

    def patch(self, job: Union[int, str], body: Optional[Body] = None, **options: Any) -> int:
        """Changes a job that nobody has reserved: its body, pri, ttr, delay or due, expires_in,
        expires_at, at_expiry, attributes. Returns its id."""
        data = None if body is None else _bytes(body)
        size = "" if data is None else f" body={len(data)}"
        command = f"patch-job {_job(job)}{size}{_options(options)}"
        return int(self._call(command, ["PATCHED"], data)[1])

    def bury_job(self, job: Union[int, str], priority: Optional[int] = None) -> int:
        """Buries a job that nobody has reserved. Without `priority` it keeps its own. Returns its
        id."""
        job_id = job if isinstance(job, int) else self.show(job)["id"]
        fields = {} if priority is None else {"priority": priority}
        self._ask("POST", f"/v1/jobs/{job_id}:bury", fields, again=True)
        return job_id

    def kick(self, most: int) -> int:
        """Makes up to `most` buried jobs of the tube in use ready, or else delayed ones."""
        return int(self._call(f"kick {most}", ["KICKED"])[1])

    def kick_job(self, job_id: int) -> None:
        self._call(f"kick-job {job_id}", ["KICKED"])

    def story(self, job_id: int) -> List[Dict[str, Any]]:
        """The last failed attempts of a job: at, ended, worker, error."""
        return self.show(job_id)["attempts"]

    def stats(self) -> Dict[str, Any]:
        return self._told("stats")

    def stats_job(self, job_id: int) -> Dict[str, Any]:
        return self._told(f"stats-job {job_id}")

    def show(self, job: Union[int, str]) -> Dict[str, Any]:
        """The job with its body, its state, and when it is due and was put."""
        by_key = f"/v1/tubes/{_quoted(self._tube)}/keys/"
        path = f"/v1/jobs/{job}" if isinstance(job, int) else by_key + _quoted(job)
        return self._ask("GET", path, again=True)

    def stats_tube(self, tube: str) -> Dict[str, Any]:
        return self._told(f"stats-tube {tube}")

    def stats_group(self, tube: str, group: str) -> Dict[str, Any]:
        return self._ask("GET", f"/v1/tubes/{_quoted(tube)}/groups/{_quoted(group)}", again=True)

    def tubes(self) -> List[str]:
        return list(self._told("list-tubes"))

    def pause_tube(self, tube: str, seconds: int) -> None:
        self._call(f"pause-tube {tube} {seconds}", ["PAUSED"])

    def set_tube(self, tube: str, **fields: Any) -> Dict[str, Any]:
        """Changes the settings of a tube: limits={"max_running": 10, "rate": {"jobs": 100,
        "per": 60}}, retry, retention, draining. What is not named stays, and None takes it away.
        """
        return self._ask("PATCH", f"/v1/tubes/{_quoted(tube)}", fields, again=True)

    def set_group(self, tube: str, group: str, **fields: Any) -> None:
        """The same for a group of a tube: its weight, and limits."""
        path = f"/v1/tubes/{_quoted(tube)}/groups/{_quoted(group)}"
        self._ask("PATCH", path, fields, again=True)

    # --- Many jobs of a tube. Filters say which: state ("delayed", "ready", "reserved", "buried",
    # "dead", or several: "ready,delayed"), group, key_prefix, due_after, due_before.

    def list_jobs(
        self, tube: str, *, bodies: bool = False, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """Yields the jobs by their due times, then the buried ones. Asks for them page by page, of
        `page_size`. A job that moves meanwhile may come twice; `id` tells. With `bodies` each has
        its body, or `body_error` if that is damaged."""
        fields = {**filters, "bodies": "true" if bodies else None}
        for job in self._list(f"/v1/tubes/{_quoted(tube)}/jobs", "jobs", fields):
            if bodies and "body" not in job and "body_error" not in job:  # a large one
                found = self.peek(job["id"])
                if not found:
                    continue
                job.update(_with_bytes(_body_field(found.body)))
            yield job

    def list_groups(self, tube: str) -> Iterator[Dict[str, Any]]:
        """Yields the groups of a tube: how many jobs they have, and what is set for them."""
        return self._list(f"/v1/tubes/{_quoted(tube)}/groups", "groups", {})

    def _list(self, path: str, of: str, fields: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        fields = {"page_size": 1_000, **fields}
        while True:
            try:
                page = self._ask("GET", path + _query(fields), again=True)
            except NotFound:
                if of != "jobs":
                    raise
                return  # a tube that is not there has no jobs
            yield from page[of]
            if not page["next_page_token"]:
                return
            fields["page_token"] = page["next_page_token"]

    def cancel_jobs(self, tube: str, **filters: Any) -> Changed:
        """Deletes jobs. With dry_run=True the four changes only count, and change nothing. If the
        connection is lost half-way, call them again: they go on with the rest."""
        return self._change("cancel", tube, filters)

    def retry_jobs(self, tube: str, **filters: Any) -> Changed:
        """Makes buried and dead jobs ready; their attempts begin anew."""
        return self._change("retry", tube, filters)

    def move_jobs(self, tube: str, to: str, **filters: Any) -> Changed:
        """Puts jobs into another tube, as they are."""
        return self._change("move", tube, filters, to=to)

    def spread_jobs(self, tube: str, over: Duration, **filters: Any) -> Changed:
        """Deals the delayed jobs that are due from due_after to due_before out evenly over a
        longer time, which begins at due_after."""
        return self._change("spread", tube, filters, over=over)

    def _change(self, verb: str, tube: str, filters: Dict[str, Any], **fields: Any) -> Changed:
        filters = {"tube": tube, **filters}
        for name in ("dry_run", "max"):
            if name in filters:
                fields[name] = filters.pop(name)
        done = self._ask("POST", f"/v1/jobs:{verb}", {"filter": filters, **fields})
        while done.get("state") == "running":  # it takes long
            time.sleep(0.1)
            done = self._ask("GET", f"/v1/operations/{done['id']}", again=True)
        if "error" in done:
            raise Refused(f"{verb} after {done['changed']} jobs", f"500 {done['error']}")
        return Changed(done["changed"], done["left"])

    def due_counts(self, tube: str, **options: Any) -> Dict[str, Any]:
        """Returns how many jobs are due when, in `spans`, and of all jobs. Options: by="minute",
        "hour" or "day", and how many spans."""
        return self._ask("GET", f"/v1/tubes/{_quoted(tube)}/due{_query(options)}", again=True)

    # --- Schedules.

    def set_schedule(self, name: str, body: Body, **fields: Any) -> None:
        """Makes or replaces a schedule. Fields: cron and time_zone, or every and start; gap,
        catch_up, catch_up_window, overlap, spread; and of its jobs tube, priority, ttr, group,
        retry, expires_in, at_expiry, content_type, metadata."""
        job = {"tube": self._tube, **_body_field(body)}
        for field in [field for field in fields if field not in _OF_SCHEDULE]:
            job[field] = fields.pop(field)
        self._ask("PUT", f"/v1/schedules/{_quoted(name)}", {**fields, "job": job}, again=True)

    def delete_schedule(self, name: str) -> None:
        self._ask("DELETE", f"/v1/schedules/{_quoted(name)}")

    def pause_schedule(self, name: str) -> None:
        self._ask("POST", f"/v1/schedules/{_quoted(name)}:pause", again=True)

    def resume_schedule(self, name: str) -> None:
        self._ask("POST", f"/v1/schedules/{_quoted(name)}:resume", again=True)

    def trigger_schedule(self, name: str) -> int:
        """Puts the schedule's job now. Returns its id."""
        return self._ask("POST", f"/v1/schedules/{_quoted(name)}:trigger")["id"]

    def show_schedule(self, name: str) -> Dict[str, Any]:
        """Returns what is set, what it has done, and its next times."""
        return self._ask("GET", f"/v1/schedules/{_quoted(name)}", again=True)

    def list_schedules(self) -> Iterator[Dict[str, Any]]:
        """Yields all schedules by name, without the bodies of their jobs."""
        return self._list("/v1/schedules", "schedules", {})

    # --- Requests to the HTTP API.

    def _ask(
        self, method: str, path: str, fields: Optional[Dict[str, Any]] = None, again: bool = False
    ) -> Any:
        """Returns what the JSON of the answer has. `again`: it may be sent twice."""
        body = None if fields is None else json.dumps(_json_of(fields)).encode()
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        while True:
            sent = False
            connection = http.client.HTTPConnection("localhost")
            try:
                connection.sock = self._asking = self._open(self._http)
                sent = True
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                if not sent or not again or self.interrupted:
                    raise ConnectionLost(f"{method} {path}: {error}", sent and not again) from error
                again = False
            finally:
                self._asking = None
                connection.close()
        told = json.loads(text, object_hook=_with_bytes) if text.startswith(b"{") else None
        if answer.status < 300:
            return told
        kind = {404: NotFound, 409: IsReserved}.get(answer.status, Refused)
        why = told["detail"] if told else text.decode("utf-8", "replace").strip() or answer.reason
        raise kind(f"{method} {path}", f"{answer.status} {why}")

    # --- Commands and replies.

    def _call(
        self,
        command: str,
        good: List[str],
        data: Optional[bytes] = None,
        *,
        again: bool = False,
        patience: Optional[float] = 0,
        read: Callable[[List[str]], Any] = lambda words: words,
    ) -> Any:
        """Sends a command and returns read(words of the reply). `again`: it may be sent twice."""
        # The server would refuse the line alone, and carry out the data as commands.
        if any(sign in command for sign in "\r\n\0"):
            raise ValueError(f"{command!r} has the end of a line, or a NUL")
        if len(command.encode()) > _MAX_LINE:
            raise ValueError(f"{command[:40]!r}... has more than {_MAX_LINE} bytes")
        message = command.encode() + b"\r\n" + (b"" if data is None else data + b"\r\n")
        while True:
            sent = False
            try:
                self._connect()
                sent = True
                return self._exchange(command, message, good, patience, read)
            except (OSError, EOFError) as error:
                self.close()
                if not sent or not again or self.interrupted:
                    unknown = sent and not again
                    raise ConnectionLost(f"{command.split(' ')[0]}: {error}", unknown) from error
                again = False
            except Refused:
                raise
            except BaseException:
                self.close()  # the reply was not read, or not to its end: what follows is not known
                raise

    def _exchange(
        self,
        command: str,
        message: bytes,
        good: List[str],
        patience: Optional[float],
        read: Callable[[List[str]], Any],
    ) -> Any:
        assert self._socket
        self._socket.settimeout(None if patience is None else self._timeout + patience)
        self._socket.sendall(message)
        reply = self._line()
        words = reply.split(" ")
        if words[0] in good:
            return read(words)
        kinds = {"NOT_FOUND": NotFound, "IS_RESERVED": IsReserved, "REFUSED": BatchRefused}
        raise kinds.get(words[0], Refused)(command.split(" ")[0], reply)

    def _connect(self) -> None:
        # Bytes that nobody has asked for: the end of the connection.
        if self.is_cut():
            self.close()
        if self._socket:
            return
        self._socket = self._open(self._address)
        self._file = self._socket.makefile("rb")
        lines = [] if self._tube == "default" else [f"use {self._tube}"]
        lines += [f"watch {tube}" for tube in self._watched if tube != "default"]
        lines += [] if "default" in self._watched else ["ignore default"]
        lines += [f"name-client {self._name}"] if self._name else []
        try:
            if self._token:
                message = f"auth {self._token}\r\n".encode()
                self._exchange("auth", message, ["AUTHENTICATED"], 0, list)
            for line in lines:
                good = ["USING", "WATCHING", "NAMED"]
                self._exchange(line, f"{line}\r\n".encode(), good, 0, list)
        except Refused:
            self.close()  # else the next command would work on another tube
            raise

    def _open(self, address: _Address) -> socket.socket:
        if isinstance(address, tuple):
            connection = socket.create_connection(address, self._timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_hostname=address[0])
        else:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(self._timeout)
            connection.connect(address)
        if self.interrupted:
            connection.close()
            raise OSError("interrupted")
        return connection

    def _line(self) -> str:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server has ended the connection")
        return line[:-2].decode("utf-8", "replace")

    def _data(self, size: int) -> bytes:
        data = self._file.read(size + 2)
        if len(data) < size + 2:
            raise EOFError("the server has ended the connection")
        return data[:-2]

    def _read_job(self, words: List[str]) -> Job:
        return Job(self, int(words[1]), self._data(int(words[2])))

    def _read_jobs(self, words: List[str]) -> List[Job]:
        self._deadline_soon = words[0] == "DEADLINE_SOON"
        if words[0] != "JOBS":
            return []
        return [self._read_job(self._line().split(" ")) for _ in range(int(words[1]))]

    def _found(self, command: str) -> Optional[Job]:
        try:
            return self._call(command, ["FOUND"], again=True, read=self._read_job)
        except NotFound:
            return None

    def _told(self, command: str) -> Any:
        def read(words: List[str]) -> Any:
            return _yaml(self._data(int(words[1])).decode("utf-8", "replace"))

        return self._call(command, ["OK"], again=True, read=read)

    def _each(self, verb: str, ids: Iterable[int], options: str, good: str) -> List[bool]:
        data = " ".join(map(str, ids)).encode()

        def read(words: List[str]) -> List[str]:
            return [self._line() for _ in range(int(words[1]))]

        lines = self._call(f"{verb} {len(data)}{options}", ["JOBS"], data, read=read)
        failed = [line for line in lines if line.startswith("INTERNAL_ERROR")]
        if failed:
            raise Refused(verb, f"{failed[0]}: {len(failed)} of {len(lines)} jobs are as they were")
        return [line.startswith(good) for line in lines]


# What a server answers that may do the same later.
_PASSING = ("INTERNAL_ERROR", "OUT_OF_MEMORY", "TOO_FAST")


def _will_pass(error: CarillonError) -> bool:
    """Whether the same command may be answered well later."""
    return not isinstance(error, Refused) or error.word in _PASSING


def _rest(seconds: float, stop: Optional[threading.Event]) -> None:
    if stop:
        stop.wait(seconds)
    else:
        time.sleep(seconds)


def _word(text: str) -> str:
    if not text or " " in text:
        raise ValueError(f"{text!r} is empty, or has a space")
    return text


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


# The fields that are a schedule's own; the others are those of its jobs.
_OF_SCHEDULE = ("cron", "time_zone", "gap", "every", "start", "catch_up", "catch_up_window")
_OF_SCHEDULE += ("overlap", "spread")


def _job(job: Union[int, str]) -> str:
    return str(job) if isinstance(job, int) else f"key={_word(job)}"
