"""What tests of clients/python/carillon_kombu.py have in common. To be imported first.

The first argument of a test is the folder of the clients. It runs with Debian's python3 if the one
at hand has no Celery; its exit code is 77 if none has.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    import celery  # noqa: F401
except ImportError:
    debians = "/usr/bin/python3"
    if subprocess.run(
        [debians, "-c", "import celery"], capture_output=True, check=False
    ).returncode:
        print("Celery is not installed; run: scripts/install-packages test")
        sys.exit(77)
    os.execv(debians, [debians, *sys.argv])

HERE = Path(__file__).resolve().parent
FOLDER = os.environ["TEST_CLIENTS"] = os.path.abspath(sys.argv.pop(1))
sys.path[:0] = [FOLDER, str(HERE), str(HERE.parent / "server")]
os.environ["TEST_BROKER"] = "carillon://127.0.0.1:1"

import carillon  # noqa: E402
import carillon_kombu  # noqa: E402
import celery_app  # noqa: E402
import daemon  # noqa: E402
import kombu  # noqa: E402
import kombu.exceptions  # noqa: E402
import kombu.pools  # noqa: E402

PATIENCE = 60  # seconds; generous: a sanitizer build on a busy machine


def until(check, what):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        result = check()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


class Worker:
    """A Celery worker process with two children."""

    def __init__(self, case, *extra, **environment):
        self._case = case
        self.log = Path(case.folder) / f"worker-{time.monotonic()}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--loglevel=INFO"]
                + ["--concurrency=2", f"--hostname=w{time.monotonic_ns()}@test", *extra],
                cwd=HERE,
                env={**os.environ, **case.environment, **environment, "PYTHONPATH": str(HERE)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        case.addCleanup(self.kill)
        until(self.is_ready, "the worker is ready")

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the worker has ended:\n{self.log.read_text()}")
        return " ready." in self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.server = daemon.carillon_serve(f"{self.folder}/data")
        self.server.start()
        self.addCleanup(self.server.__exit__)
        self.notes_file = Path(self.folder) / "notes"
        self.url = f"carillon://{daemon.HOST}:{self.server.port}"
        self.environment = {"TEST_BROKER": self.url, "TEST_NOTES": str(self.notes_file)}
        self.app = celery_app.app
        self.app.conf.broker_url = self.url
        # Else the app goes on with the connections to the server of the test before.
        kombu.pools.reset()
        self.app._pool = self.app.amqp._producer_pool = None
        self.client = carillon.Client(daemon.HOST, self.server.port)
        self.addCleanup(self.client.close)

    def notes(self, prefix=""):
        """What the tasks have written: [text, time, process]."""
        if not self.notes_file.exists():
            return []
        lines = [line.split() for line in self.notes_file.read_text().splitlines()]
        return [line for line in lines if line[0].startswith(prefix)]

    def wait_for(self, text, count=1):
        return until(
            lambda: len(self.notes(text)) >= count and self.notes(text), f"{count} notes of {text}"
        )

    def jobs(self, **options):
        return list(self.client.list_jobs("celery", **options))

    def wait_until_empty(self):
        until(lambda: not self.jobs(), "no job is left")
