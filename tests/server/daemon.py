"""Real servers as child processes, each on a free port: Carillon (in memory or durable) and
Debian's beanstalkd."""

import contextlib
import fcntl
import http.client
import json
import os
import re
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from typing import Optional

from wire import Connection

HOST = "127.0.0.1"
_START_SECONDS = 20.0  # generous: a sanitizer build on a busy machine
_STOP_SECONDS = 20.0


class StartFailed(Exception):
    """The server ended, or did not listen in time. The message contains what it printed."""


def carillon_path() -> str:
    path = os.environ.get("CARILLON_BIN")
    if not path:
        raise RuntimeError("CARILLON_BIN is not set; it must name the carillon program under test")
    return path


def run_carillon(*words: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs a command until it ends, with these variables besides those that are there."""
    return subprocess.run(
        [carillon_path(), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


def beanstalkd_path() -> str:
    """Debian's beanstalkd, the reference. BEANSTALKD_PATH names another one."""
    search = os.environ.get("PATH", "") + os.pathsep + "/usr/bin"
    path = os.environ.get("BEANSTALKD_PATH") or shutil.which("beanstalkd", path=search)
    if not path:
        raise RuntimeError(
            "beanstalkd is not installed; these tests compare with it: `apt-get install beanstalkd`"
        )
    return path


def carillon_serve(data: str, *extra: str, environment: Optional[dict] = None) -> "Server":
    """The durable server on `data`; nothing is acknowledged before it is on disk."""
    return Server(
        lambda port: [
            carillon_path(),
            "serve",
            "--data",
            data,
            "--listen",
            f"{HOST}:{port}",
            *extra,
        ],
        environment=environment,
    )


def carillon_beanstalkd(*extra: str) -> "Server":
    """`carillon beanstalkd`, in memory unless `-b DIR` is among `extra`."""
    return Server(lambda port: [carillon_path(), "beanstalkd", "-l", HOST, "-p", str(port), *extra])


def beanstalkd(*extra: str) -> "Server":
    return Server(lambda port: [beanstalkd_path(), "-l", HOST, "-p", str(port), *extra])


def _claim(port: int) -> bool:
    """Returns true if no other test has claimed the port. A claim ends with this process. Two that
    start servers on one port at the same moment would both talk to the first server."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0carillon-test-port-{port}")
    except OSError:
        claim.close()
        return False
    claim.detach()
    return True


# How much higher the port is at which a server answers HTTP, unless it is told otherwise.
HTTP_BESIDE = 80


def free_port() -> int:
    """A port that nobody has now, and that the kernel gives to no outgoing connection. If it did,
    another test could take the port before the server does, or this one's connect() reach itself.
    So is the port for HTTP beside it."""
    while True:
        port = random.randrange(16_000, 32_000)
        beside = port + HTTP_BESIDE
        with contextlib.suppress(OSError), socket.socket() as probe, socket.socket() as other:
            probe.bind((HOST, port))
            other.bind((HOST, beside))
            if _claim(port) and _claim(beside):
                return port


class Server:
    """One server process. As a context manager it is started on entry and killed on exit.

    with carillon_serve(directory) as server:
        server.connect().call(b"stats")
    """

    def __init__(self, command_line, cwd: Optional[str] = None, environment: Optional[dict] = None):
        """`command_line` is called with a port number and returns the program and its arguments.
        `environment` has variables that the process gets beside this one's own."""
        self.command_line = command_line
        self._cwd = cwd
        self._environment = environment or {}
        self._log = None
        self._connections = []
        self.port = 0
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        for connection in self._connections:
            connection.close()
        if self.process and self.process.poll() is None:
            self.kill()
        if self._log:
            self._log.close()

    @property
    def address(self):
        return (HOST, self.port)

    def start(self) -> "Server":
        """Starts the process on a free port and returns once it listens."""
        self._log = tempfile.TemporaryFile()
        # The child shares the file offset, and log() seeks; appending keeps the output whole.
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
        for attempt in range(5):
            self.port = free_port()
            try:
                self._start_once()
                return self
            except StartFailed:
                # Another process may have taken the port since it was found free.
                if attempt == 4 or not _is_taken(self.port):
                    raise
        raise AssertionError("unreachable")

    def start_again(self) -> None:
        """Starts it again on the port that it had."""
        self._start_once()

    def _start_once(self) -> None:
        self.process = subprocess.Popen(
            self.command_line(self.port),
            cwd=self._cwd,
            env={**os.environ, **self._environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise StartFailed(
                    f"exit code {self.process.returncode} at start; it printed:\n{self.log()}"
                )
            try:
                Connection(self.address).close()
            except OSError:
                time.sleep(0.002)
                continue
            if self.process.poll() is None:
                return
        self.process.kill()
        self.process.wait()
        raise StartFailed(f"not listening after {_START_SECONDS} s; it printed:\n{self.log()}")

    def connect(self, timeout: float = 20.0, **options) -> Connection:
        """A new connection. It is closed at the latest when the server is."""
        connection = Connection(self.address, timeout, **options)
        self._connections.append(connection)
        return connection

    def terminate(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """Sends SIGKILL: the process can do nothing more."""
        self.process.kill()
        self.process.wait()

    def http_port(self) -> int:
        """The first port for HTTP."""
        for _ in range(1_000):
            if found := re.search(r"listening on \S+:(\d+) \(HTTP", self.log()):
                return int(found[1])
            time.sleep(0.01)
        raise AssertionError(f"the server has no port for HTTP: {self.log()}")

    def http(self, timeout: float = 20.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(HOST, self.http_port(), timeout=timeout)

    def ask(self, method: str, path: str, fields: Optional[dict] = None):
        """Asks the HTTP API, and returns the status and the answer's JSON."""
        with contextlib.closing(self.http()) as connection:
            connection.request(method, path, None if fields is None else json.dumps(fields))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null")

    def log(self) -> str:
        """The last 4000 bytes of the output."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 4000))
        text = self._log.read().decode(errors="replace")
        return text


class DataCase(unittest.TestCase):
    """A test with a folder and a data directory of its own, and servers that end with it."""

    flags = ()  # for each server
    environment = None  # variables of each server

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="carillon-test.")
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        self.data = os.path.join(self.folder, "data")

    def start(self, *flags: str) -> Server:
        """A server on self.data that has read its data."""
        server = carillon_serve(self.data, *self.flags, *flags, environment=self.environment)
        self.addCleanup(server.__exit__)
        with server.start().connect() as client:
            client.stats()
        return server

    def wait_until(self, condition, told=lambda: "", seconds: float = 20.0):
        """Waits until `condition` returns something true, and returns that. `told` says more if
        that takes too long."""
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            if time.monotonic() > deadline:
                self.fail(f"not within {seconds} s; {told()}")
            time.sleep(0.005)
        return result

    def wait_for_line(self, server: Server, text: str) -> None:
        self.wait_until(lambda: text in server.log(), server.log)


def _is_taken(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1.0).close()
        return True
    except OSError:
        return False
