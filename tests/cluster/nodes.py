"""Nodes of a cluster for tests: real processes of `carillon serve --cluster`, on loopback.

    with nodes.Cluster(folder, server.new_database(), "a", "b") as cluster:
        owner = cluster.wait_for_owner()
        with cluster.connect() as client:           # to a node that serves
            client.put(b"hello")
        owner.kill()
        cluster.wait_for_owner(but=owner)
        cluster.ask("GET", "/v1/tubes/default")     # (200, {...})
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Optional

import postgres
from postgres import daemon
from wire import Closed, Connection, NoReply

_STOP_SECONDS = 20.0
# Settings of a PostgreSQL server that is quick and has no standby.
WEAK = ("synchronous_standby_names", "fsync", "full_page_writes", "synchronous_commit")
# How long a node may take that serves; one that is stopped answers nothing.
_ANSWER_SECONDS = 1.0
LOST = (OSError, http.client.HTTPException, Closed, NoReply)


class Node:
    """One process. Its ports, its data directory and its log stay the same when it starts again."""

    def __init__(self, name: str, folder: str, url: str, flags=(), environment=None):
        self.name = name
        self.url = url
        self.data = os.path.join(folder, name)
        self.flags = list(flags)
        self.environment = environment or {}
        self.port = daemon.free_port()
        self.process: Optional[subprocess.Popen] = None
        self._log = os.path.join(folder, name + ".log")

    @property
    def address(self) -> str:
        return f"{daemon.HOST}:{self.port}"

    def start(self) -> "Node":
        weak = [word for setting in WEAK for word in ("--allow-weak-cluster", setting)]
        with open(self._log, "ab") as log:
            self.process = subprocess.Popen(
                [daemon.carillon_path(), "serve", "--data", self.data, "--listen", self.address]
                + ["--cluster", self.url, *weak, *self.flags],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=postgres.end_with_parent,
            )
        return self

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    def wait_for_end(self, seconds: float) -> int:
        """Waits until it ends by itself, and returns the exit code."""
        return self.process.wait(seconds)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def connect(self, timeout: float = 20.0) -> Connection:
        return Connection((daemon.HOST, self.port), timeout)

    def ask(self, method: str, path: str, fields=None, timeout: float = 20.0, headers=None):
        """Asks this node's HTTP API. Returns the status, the answer's JSON and its headers."""
        port = self.port + daemon.HTTP_BESIDE
        client = http.client.HTTPConnection(daemon.HOST, port, timeout=timeout)
        with contextlib.closing(client) as connection:
            all_headers = {"Content-Type": "application/json", **(headers or {})}
            body = None if fields is None else json.dumps(fields)
            connection.request(method, path, body, all_headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or "null"), answer.headers

    def log(self) -> str:
        """All that its processes have printed."""
        return Path(self._log).read_text(encoding="utf-8", errors="replace")

    def lines(self) -> list:
        """The warnings and errors in its log, without their times."""
        found = [line.split(" ", 3) for line in self.log().splitlines()]
        return [
            f"{line[2]} {line[3]}"
            for line in found
            if len(line) == 4 and line[2] in ("warning", "error", "critical")
        ]


class Cluster:
    """Some nodes on one log. As a context manager it makes the tables and starts the nodes on
    entry, and kills them on exit."""

    def __init__(self, folder: str, url: str, *names: str, flags=()):
        self.url = url
        self.nodes = [Node(name, folder, url, flags) for name in names]

    def __enter__(self) -> "Cluster":
        done = daemon.run_carillon("cluster", "init", self.url)
        assert done.returncode == 0, done.stderr
        for node in self.nodes:
            node.start()
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            if node.is_running():
                node.kill()

    def log(self) -> str:
        return "\n".join(f"{node.name}: {line}" for node in self.nodes for line in node.lines())

    def status(self) -> Optional[dict]:
        """None: the database cannot be asked."""
        done = daemon.run_carillon("cluster", "status", self.url, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def owner(self) -> Optional[Node]:
        """The node that owns the jobs by the log. None: no node that runs."""
        address = (self.status() or {}).get("owner")
        for node in self.nodes:
            if node.address == address and node.is_running():
                return node
        return None

    def wait_for_owner(self, but: Optional[Node] = None, seconds: float = 20.0) -> Node:
        """Waits until another node than `but` owns the jobs and serves, and returns it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            node = self.owner()
            if node is not None and node is not but and _serves(node):
                return node
            time.sleep(0.02)
        raise AssertionError(f"nobody serves after {seconds} s:\n{self.log()}")

    def connect(self, seconds: float = 20.0) -> Connection:
        """A connection to the first node that answers. Close it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for node in filter(_serves, self.nodes):
                with contextlib.suppress(OSError):
                    return node.connect()
            time.sleep(0.005)
        raise AssertionError(f"nobody serves after {seconds} s:\n{self.log()}")

    def ask(self, method: str, path: str, fields=None, seconds: float = 20.0):
        """Asks the first node that serves. Returns the status and the answer's JSON."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for node in filter(_serves, self.nodes):
                with contextlib.suppress(ConnectionRefusedError):
                    status, answer, _ = node.ask(method, path, fields)
                    if status != 503:
                        return status, answer
            time.sleep(0.005)
        raise AssertionError(f"nobody serves after {seconds} s:\n{self.log()}")

    def export(self) -> list:
        """The lines of `carillon export` from the owner, without the first, which has its time."""
        node = self.wait_for_owner()
        done = daemon.run_carillon("export", "--server", node.address)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[1:]


def _serves(node: Node) -> bool:
    if not node.is_running():
        return False
    try:
        with node.connect(_ANSWER_SECONDS) as client:
            return client.call(b"list-tube-used").word == b"USING"
    except LOST:
        return False
