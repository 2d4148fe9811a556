"""A private PostgreSQL cluster: Debian's server on a Unix socket, in a folder that is deleted
afterwards. What is committed is on disk (fsync and synchronous_commit are on).

    with Postgres(find_programs(), "/var/tmp") as server:
        server.address          # a connection string
"""

import contextlib
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "beanstalk"))

from servers import fail  # noqa: E402

SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",  # a checkpoint every 5 minutes, not more often
    "wal_compression": "on",
    "jit": "off",
    "autovacuum_naptime": "10s",
}
COUNTERS = """
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, (SELECT wal_sync FROM
  pg_stat_wal), xact_commit, tup_inserted + tup_updated + tup_deleted
FROM pg_stat_database WHERE datname = 'postgres'
"""


def find_programs() -> str:
    """The folder with the newest server, or "" if no server is installed."""
    versions = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    newest = max(versions, key=lambda path: int(path.split("/")[4]), default="")
    found = newest or shutil.which("postgres") or ""
    return os.path.dirname(found)


class Postgres:
    def __init__(self, programs: str, directory: str) -> None:
        self.programs = programs
        self.directory = tempfile.mkdtemp(prefix="carillon-bench-", dir=directory)
        self.process = None
        self.user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = "postgres" if has_user("postgres") else "nobody"
            shutil.chown(self.directory, self.user)
        self.address = f"host={self.directory} dbname=postgres user=bench"

    def __enter__(self) -> "Postgres":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self) -> None:
        data = os.path.join(self.directory, "data")
        initdb = [f"{self.programs}/initdb", "-D", data, "-U", "bench", "-A", "trust"]
        made = subprocess.run(
            initdb + ["--no-instructions", "--locale=C", "-E", "UTF8"],
            cwd=self.directory,
            user=self.user,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            fail(f"initdb: {made.stdout}{made.stderr}")
        settings = {**SETTINGS, "unix_socket_directories": self.directory}
        with open(os.path.join(self.directory, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [f"{self.programs}/postgres", "-D", data]
                + [word for key, value in settings.items() for word in ("-c", f"{key}={value}")],
                cwd=self.directory,
                user=self.user,
                stdout=log,
                stderr=log,
            )
        self.wait_until_ready()

    def __exit__(self, *_) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # a fast shutdown
            self.process.wait()
        shutil.rmtree(self.directory)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.ask("SELECT 1")
                return
            time.sleep(0.05)
        with open(os.path.join(self.directory, "log"), encoding="utf-8") as log:
            fail(f"PostgreSQL did not start:\n{log.read()}")

    def ask(self, sql: str) -> list:
        command = [f"{self.programs}/psql", "-XAtq", "-F", " ", "-d", self.address, "-c", sql]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return run.stdout.split()

    def counters(self) -> dict:
        """Bytes and syncs of the write-ahead log, commits and changed rows, since the start."""
        names = ("wal_bytes", "wal_syncs", "commits", "rows_changed")
        return dict(zip(names, map(int, self.ask(COUNTERS))))

    def version(self) -> str:
        said = subprocess.run(
            [f"{self.programs}/postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return re.search(r"\d+\.\d+", said).group()


def has_user(name: str) -> bool:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name) is not None
    return False
