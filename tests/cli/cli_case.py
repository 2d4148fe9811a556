"""Base class for tests of the command line: runs `carillon` against a real server."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

import daemon  # noqa: E402  (found through the line above)

# How late a reply may be, in seconds: the machine may be busy with other tests. Earliness has no
# tolerance.
SLACK = 5.0


class CliCase(unittest.TestCase):
    """Gives each test class a server of its own, and each test a tube of its own: `self.tube`."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.server = cls.enterClassContext(
            daemon.carillon_serve(os.path.join(directory.name, "data"))
        )

    def setUp(self):
        self.tube = self.id().split(".")[-1].replace("test_", "")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def kill_server(self):
        """Kills the server with SIGKILL. self.server.start() starts it again, on another port."""
        self.server.__exit__(None, None, None)

    def environment(self, **more):
        """Returns this process's environment, with CARILLON_SERVER set to the server under test."""
        return {**os.environ, "CARILLON_SERVER": f"{daemon.HOST}:{self.server.port}", **more}

    def start(self, *arguments, **popen):
        """Starts carillon. If it still runs at the end of the test, it is killed."""
        process = subprocess.Popen(
            [daemon.carillon_path(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
            preexec_fn=_default_signals,
            **popen,
        )
        self.addCleanup(_end, process)
        return process

    def run_carillon(self, *arguments, body=b"", env=None, stdout=subprocess.PIPE):
        """Runs carillon to its end. Returns its returncode, stdout and stderr (bytes)."""
        return subprocess.run(
            [daemon.carillon_path(), *arguments],
            input=body,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=env or self.environment(),
            timeout=60,
            check=False,
        )

    def carillon(self, *arguments, body=b""):
        """Runs carillon, which must succeed. Returns its standard output as text."""
        done = self.run_carillon(*arguments, body=body)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def fails(self, line, *arguments, body=b"", env=None, code=1):
        """Runs carillon. It must print only this line, to standard error, and exit with `code`."""
        done = self.run_carillon(*arguments, body=body, env=env)
        self.assertEqual(done.stderr.decode(), line + "\n")
        self.assertEqual(done.returncode, code)
        self.assertEqual(done.stdout, b"")

    @staticmethod
    def no_such_tube(tube):
        why = "it has no jobs and no settings, and nobody uses or watches it"
        return f"tube {tube} does not exist: {why}"

    def put(self, *arguments, body=b""):
        """Puts a job into this test's tube. Returns its id as text."""
        return self.carillon("put", "--tube", self.tube, *arguments, body=body).rstrip("\n")

    def stats(self, *arguments):
        return json.loads(self.carillon("stats", "--json", *arguments))

    def job(self, job_id):
        return self.stats("--job", job_id)

    def has_job(self, job_id):
        return self.run_carillon("stats", "--job", job_id).returncode == 0

    def wait_until(self, condition, what, seconds=30.0):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"not within {seconds} s: {what}")
            time.sleep(0.01)


def _default_signals():
    """Restores SIGINT and SIGHUP. They may be ignored, and a child process inherits that: a shell
    starts background processes with SIGINT ignored, nohup with SIGHUP ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()
