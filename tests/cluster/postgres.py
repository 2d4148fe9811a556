"""Real PostgreSQL servers for tests: each in a temporary directory of its own, on loopback.

    with postgres.Postgres() as server:
        url = server.new_database()            # postgresql://postgres@127.0.0.1:20123/carillon_1
        server.sql("select 1", "carillon_1")   # "1"
        with server.standby("b") as standby:
            server.wait_for_standbys("b")      # commits now wait for it
            server.kill()
            standby.promote()
        server.start()                         # again, on the same port

They are Debian's own programs (the package `postgresql`), and nothing outside the directory is
touched: a server of the machine that is running goes on. If the tests run as root, the servers run
as the user postgres, or nobody, because PostgreSQL refuses to run as root.

A test class of a machine without PostgreSQL is skipped:

    @unittest.skipIf(postgres.MISSING, postgres.MISSING)
"""

import ctypes
import glob
import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

import daemon  # noqa: E402  (found through the line above)

HOST = daemon.HOST
_START_SECONDS = 60.0  # generous: a busy machine, and a recovery after a kill
_STOP_SECONDS = 60.0

# What every server gets, so that several of them are small and quick to start.
_SETTINGS = {
    "listen_addresses": HOST,
    "shared_buffers": "16MB",
    "max_connections": "40",
    "wal_keep_size": "64MB",
    "log_line_prefix": "%m [%p] ",
}

_PR_SET_PDEATHSIG = 1


def _programs() -> Optional[str]:
    """Returns the directory of the newest server's programs, or None."""
    folders = glob.glob("/usr/lib/postgresql/*/bin") + os.environ.get("PATH", "").split(os.pathsep)
    for folder in sorted(folders, key=_version_of, reverse=True):
        if all(
            shutil.which(program, path=folder)
            for program in ("initdb", "postgres", "pg_basebackup", "psql")
        ):
            return folder
    return None


def _version_of(folder: str) -> int:
    match = re.fullmatch(r"/usr/lib/postgresql/(\d+)/bin", folder)
    return int(match[1]) if match else 0


def _user() -> Optional[str]:
    """Returns the user to become; None: stay who we are."""
    if os.geteuid() != 0:
        return None
    names = [entry.pw_name for entry in pwd.getpwall()]
    return "postgres" if "postgres" in names else "nobody"


BIN = _programs()
# Why these tests cannot run here, or an empty string.
MISSING = "" if BIN else "PostgreSQL's server is not installed: `apt-get install postgresql`"


def url_of(*servers: "Postgres", database: str = "postgres", options: str = "") -> str:
    """One URL with several servers. `options`: "target_session_attrs=read-write"."""
    hosts = ",".join(f"{HOST}:{server.port}" for server in servers)
    return f"postgresql://postgres@{hosts}/{database}{'?' if options else ''}{options}"


class StartFailed(Exception):
    """A server did not start, or not in time. The message contains its log."""


class Postgres:
    """One server. As a context manager it is made and started on entry, and killed and removed on
    exit.

    `settings` are those of postgresql.conf, such as fsync="off".
    """

    def __init__(self, **settings: str):
        self.settings = {**_SETTINGS, **settings}
        self.port = daemon.free_port()
        self.process: Optional[subprocess.Popen] = None
        self.directory = ""
        self._databases = itertools.count(1)
        self._of: Optional[Postgres] = None
        self._name = ""

    # --- Life

    def __enter__(self) -> "Postgres":
        self.directory = tempfile.mkdtemp(prefix="carillon-postgres-")
        if user := _user():
            shutil.chown(self.directory, user)
        try:
            self._make()
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def standby(self, name: str) -> "Postgres":
        """Returns a standby of this server. It is made and started on entry, as any server."""
        standby = Postgres(**self.settings)
        standby._of = self
        standby._name = name
        return standby

    def start(self) -> "Postgres":
        """Starts it, again after stop() or kill(), and waits until it takes connections."""
        words = [f"-c{name}={value}" for name, value in self.settings.items()]
        with open(self._path("log"), "ab") as log:
            self.process = subprocess.Popen(
                [f"{BIN}/postgres", "-D", self._path("data"), "-k", self.directory]
                + ["-p", str(self.port), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=end_with_parent,
                **_as_user(),
            )
        self.wait_until_up()
        return self

    def wait_until_up(self):
        """Waits until it takes connections."""
        deadline = time.monotonic() + _START_SECONDS
        while self.run_sql("select 1").returncode != 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise StartFailed(self.log())
            time.sleep(0.05)

    def stop(self, how: int = signal.SIGINT):
        """Ends it in order. SIGINT breaks off all sessions (a "fast" stop); SIGTERM waits for
        them; SIGQUIT writes nothing more."""
        self.process.send_signal(how)
        self.process.wait(_STOP_SECONDS)

    def kill(self):
        """Kills all of its processes, as a machine that loses its power. What it has synced stays.
        start() starts it again."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)  # so that it makes no further ones
        processes = self.processes()
        for process in processes:
            _signal(process, signal.SIGKILL)
        self.process.wait(_STOP_SECONDS)
        self.process = None
        # As long as one is there, it holds the shared memory, and the server does not start.
        deadline = time.monotonic() + _STOP_SECONDS
        while any(map(_is_running, processes)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def restart(self, **settings: str) -> "Postgres":
        """Stops it in order and starts it with these settings besides those that it has."""
        self.stop()
        self.settings.update(settings)
        return self.start()

    def pause(self):
        """Stops all of its processes (SIGSTOP): it answers nothing, and its sockets stay open."""
        for process in self.processes():
            _signal(process, signal.SIGSTOP)

    def resume(self):
        for process in reversed(self.processes()):
            _signal(process, signal.SIGCONT)

    def processes(self) -> list[int]:
        """The ids of its processes, the server's own first."""
        if self.process is None:
            return []
        children = []
        for status in glob.glob("/proc/[0-9]*/stat"):
            try:
                fields = Path(status).read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid:
                children.append(int(status.split("/")[2]))
        return [self.process.pid, *children]

    # --- Standbys

    def wait_for_standbys(self, *names: str):
        """Makes commits wait for all of these standbys (without a name: for no standby), and
        returns when each is there."""
        value = f"{len(names)} ({', '.join(names)})" if names else ""
        self.set("synchronous_standby_names", value)
        wanted = ",".join(sorted(names))
        self.wait_for_sql(
            "select coalesce(string_agg(application_name, ',' order by application_name), '') "
            f"from pg_stat_replication where sync_state = 'sync' and '{wanted}' <> ''",
            wanted,
        )

    def promote(self):
        """Makes a server of its own out of a standby."""
        self.sql("select pg_promote(true, 60)")

    def set(self, name: str, value: str):
        """Sets what a running server can be set to, and waits until it counts."""
        self.sql(f"alter system set {name} = '{value}'")
        self.sql("select pg_reload_conf()")
        shown = self.sql(f"select count(*) from pg_file_settings where name = '{name}' and applied")
        assert shown == "1", f"{name} = {value} does not count"
        self.wait_for_sql(f"show {name}", value)

    # --- Use

    def url(self, database: str = "postgres", options: str = "") -> str:
        return url_of(self, database=database, options=options)

    def new_database(self) -> str:
        """Makes an empty database and returns its URL. Its name is the last word of the URL."""
        name = f"carillon_{next(self._databases)}"
        self.sql(f"create database {name}")
        return self.url(name)

    def run_sql(self, command: str, database: str = "postgres") -> subprocess.CompletedProcess:
        return subprocess.run(
            [f"{BIN}/psql", "-XAtq", "-vON_ERROR_STOP=1", "-c", command, self.url(database)],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PGCONNECT_TIMEOUT": "10"},
        )

    def sql(self, command: str, database: str = "postgres") -> str:
        """Runs a command, which must succeed. Returns its rows: columns with | between them."""
        done = self.run_sql(command, database)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def wait_for_sql(self, command: str, wanted: str, database: str = "postgres", seconds=60.0):
        """Waits until the command returns `wanted`."""
        deadline = time.monotonic() + seconds
        while (last := self.sql(command, database)) != wanted:
            assert time.monotonic() < deadline, f"{command}: {last}, not {wanted}"
            time.sleep(0.02)

    def log(self) -> str:
        return Path(self._path("log")).read_text(encoding="utf-8", errors="replace")

    # ---

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _make(self):
        if self._of is None:
            words = [f"{BIN}/initdb", "--no-sync", "-E", "UTF8", "--locale=C", "-U", "postgres"]
            words += ["-A", "trust", "-D", self._path("data")]
        else:
            source = f"host={HOST} port={self._of.port} user=postgres application_name={self._name}"
            words = [f"{BIN}/pg_basebackup", "--no-sync", "-R", "-X", "stream", "-c", "fast"]
            words += ["-d", source, "-D", self._path("data")]
        done = subprocess.run(
            words,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_START_SECONDS,
            cwd="/",
            **_as_user(),
        )
        if done.returncode != 0:
            raise StartFailed(done.stdout.decode(errors="replace"))


def _as_user() -> dict:
    name = _user()
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def end_with_parent():
    """A test that is killed leaves no server behind. Its processes end when the first one does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _signal(process: int, number: int):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
