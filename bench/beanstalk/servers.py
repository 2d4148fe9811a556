"""The servers that the benchmarks load, as child processes on a real disk: Carillon, Debian's
beanstalkd and Redis. All answer a put and a delete once the change is on disk.

    with Server("carillon", "build/carillon", "/var/tmp") as server:
        seconds = server.start()        # until the first reply
        server.stop(signal.SIGKILL)
        seconds = server.start()        # on the same data
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PACKAGES = {"beanstalkd": "beanstalkd", "redis": "redis-server"}


def find(program: str) -> str:
    """The path of a Debian program, which need not be there."""
    return shutil.which(program) or f"/usr/bin/{program}"


def fail(text: str) -> None:
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def refuse_memory_disk(directory: str) -> None:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True
    ).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        fail(
            f"{directory} is in memory ({kind}), where an fsync costs nothing; "
            "name another directory with --dir"
        )


def processor_time(pid: int) -> float:
    """CPU time of the process so far, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Server:
    """`kind` is carillon, beanstalkd or redis; `sync` is for carillon. The data is removed at the
    end of the `with`."""

    def __init__(self, kind: str, program: str, directory: str, sync: str = "always") -> None:
        self.kind = kind
        self.sync = sync
        self.program = program
        self.directory = tempfile.mkdtemp(prefix="carillon-bench-", dir=directory)
        self.data = os.path.join(self.directory, "data")
        os.mkdir(self.data)
        self.process = None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        if self.process:
            self.stop()
        shutil.rmtree(self.directory)

    def start(self) -> float:
        """Returns the seconds until the server has told about its jobs."""
        self.port, self.http_port = free_port(), free_port()
        with open(os.path.join(self.directory, "log"), "ab") as log:
            began = time.monotonic()
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        request = b"ZCARD q\r\n" if self.kind == "redis" else b"peek-delayed\r\n"
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                if not self.ask(request).startswith(b"-LOADING"):
                    return time.monotonic() - began
            time.sleep(0.002)
        fail(f"{' '.join(self.command())} did not start:\n{self.last_words()}")

    def command(self) -> list:
        if self.kind == "carillon":
            listen = f"127.0.0.1:{self.port}"
            arguments = ["serve", "--sync", self.sync, "--data", self.data, "--listen", listen]
            if knows_http(self.program):
                arguments += ["--http", f"127.0.0.1:{self.http_port}"]
        elif self.kind == "beanstalkd":
            arguments = ["-b", self.data, "-f0", "-l", "127.0.0.1", "-p", str(self.port)]
        else:
            arguments = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.data]
            arguments += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        return [self.program, *arguments]

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait()
        self.process = None

    def ask(self, request: bytes) -> bytes:
        """Sends one command and returns what the server sends first."""
        with socket.create_connection(("127.0.0.1", self.port), 600) as client:
            client.sendall(request)
            reply = client.recv(65536)
            if not reply:
                raise ConnectionError("closed")
            return reply

    def pending(self) -> int:
        """The number of jobs that wait for their time."""
        if self.kind == "redis":
            return int(self.ask(b"ZCARD q\r\n")[1:])
        return int(re.search(rb"current-jobs-delayed: (\d+)", self.ask(b"stats\r\n")).group(1))

    def memory(self) -> dict:
        """Resident memory in bytes, now and at most since the start."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            lines = dict(line.split(":", 1) for line in status)
        return {key: int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM")}

    def disk(self) -> int:
        """The bytes that the data takes on disk."""
        total = 0
        for directory, _, names in os.walk(self.data):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(directory, name)).st_blocks * 512
        return total

    def last_words(self) -> str:
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-20:])


def knows_http(program: str) -> bool:
    """False for builds that are older than HTTP."""
    command = [program, "serve", "--help"]
    return "--http" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
