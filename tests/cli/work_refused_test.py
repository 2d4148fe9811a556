"""`carillon work` when a server that lives refuses what it asks: the result of a job (the disk is full), or all it says."""

import os
import resource
import signal
import tempfile
import time
import unittest
from pathlib import Path

import work_test
from cli_case import CliCase, daemon

NO_LIMIT = resource.RLIM_INFINITY


class FullDiskTest(work_test.WorkCase):
    """A limit on the size of files takes the place of a full disk: it needs no rights, and can be lifted."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.data = Path(directory.name) / "data"
        # A write beyond the limit is to be an error, as on a full disk, and not the end. Without a
        # journal the limit is near.
        cls.server = cls.enterClassContext(
            daemon.Server(
                lambda port: [
                    "env",
                    "--ignore-signal=XFSZ",
                    daemon.carillon_path(),
                    "serve",
                    "--data",
                    str(cls.data),
                    "--listen",
                    f"{daemon.HOST}:{port}",
                    "--sync",
                    "os",
                ]
            )
        )

    def setUp(self):
        super().setUp()
        self.addCleanup(self.make_room)
        self.begun, self.go_on, self.runs = (
            self.directory / name for name in ("begun", "go_on", "runs")
        )

    def make_room(self):
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))

    def fill_the_disk(self):
        """From now on every change is refused: a large put at first, then also a small one, then a delete."""
        longest = max(path.stat().st_size for path in self.data.iterdir())
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (longest, NO_LIMIT))
        with self.server.connect() as connection:
            connection.call(b"use " + self.tube.encode())
            ids = []
            for size in (60_000, 3_000, 100, 1):
                while (
                    reply := connection.call(b"put 0 3600 60 %d" % size, b"x" * size)
                ).word == b"INSERTED":
                    ids.append(reply.number())
                self.assertEqual(reply.word, b"INTERNAL_ERROR")
            while connection.call(b"delete %d" % ids.pop()).word == b"DELETED":
                pass

    def start_with_a_full_disk(self, code, *arguments):
        """A worker whose command ends with `code` once the disk is full; returns it after its first line."""
        script = f"echo x >> {self.runs}; touch {self.begun}; while [ ! -e {self.go_on} ]; do sleep 0.01; done; exit {code}"
        worker = self.start_worker(*arguments, "--", "sh", "-c", script)
        self.wait_until(self.begun.exists, "the command runs")
        self.fill_the_disk()
        self.go_on.touch()
        return worker

    def assert_line(self, worker, pattern):
        self.assertRegex(worker.stderr.readline().decode(), f"^{pattern}\n$")

    def ends_after_room_appears(self, code, options, ttr, refused, done, full_for=1.0):
        """The worker keeps the job of `ttr` while the disk is full, says `refused`, and `done` once there is room."""
        job_id = self.put("--ttr", ttr, "x")
        worker = self.start_with_a_full_disk(code, "--once", *options)
        name = rf"job {job_id} from tube {self.tube}, attempt 1: exit {code} after \d\.\d\ds"
        self.assert_line(
            worker,
            rf"{name}, but the server refused to {refused} it \(INTERNAL_ERROR\); trying again until it does",
        )
        time.sleep(full_for)
        job = self.job(job_id)
        self.assertEqual((job["state"], job["reserves"], job["timeouts"]), ("reserved", 1, 0))
        self.make_room()
        self.assert_line(worker, f"{name}, {done}")
        self.assertEqual(worker.wait(30), 0 if code == 0 else 1)
        self.assertEqual(worker.stderr.read(), b"")
        self.assertEqual(self.runs.read_text(), "x\n")
        return job_id

    def test_a_job_is_deleted_once_there_is_room(self):
        self.assertFalse(
            self.has_job(self.ends_after_room_appears(0, [], "60s", "delete", "deleted"))
        )

    def test_the_job_is_touched_meanwhile(self):
        self.assertFalse(
            self.has_job(
                self.ends_after_room_appears(0, [], "3s", "delete", "deleted", full_for=4.5)
            )
        )

    def test_a_job_is_released_once_there_is_room(self):
        job_id = self.ends_after_room_appears(
            3, ["--backoff", "1h"], "60s", "release", r"released for \d+m\d\ds"
        )
        self.assertEqual(self.job(job_id)["state"], "delayed")

    def test_a_job_is_buried_once_there_is_room(self):
        job_id = self.ends_after_room_appears(3, ["--max-attempts", "1"], "60s", "bury", "buried")
        self.assertEqual(self.job(job_id)["state"], "buried")

    def test_a_signal_ends_it(self):
        job_id = self.put("x")
        worker = self.start_with_a_full_disk(0)
        self.assert_line(worker, r"job .*; trying again until it does")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(30), 1)
        self.assert_lines(
            sorted(worker.stderr.read().decode().splitlines()),  # two threads say them
            "carillon work: stopping",
            rf"job {job_id} from tube {self.tube}, attempt 1: exit 0 after \d\.\d\ds, "
            r"but the server refused to delete it \(INTERNAL_ERROR\), and the worker stops: it may run again",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job is given back")

    def test_a_lost_connection_is_said(self):
        job_id = self.put("x")
        worker = self.start_with_a_full_disk(0)
        self.assert_line(worker, r"job .*; trying again until it does")
        self.kill_server()
        self.assert_line(
            worker,
            rf"job {job_id} from tube {self.tube}, attempt 1: exit 0 after \d\.\d\ds, connection lost: it may run again",
        )
        self.assert_line(
            worker, "carillon work: lost the connection to .*; trying again until it is back"
        )
        self.server.start()


class CrowdedServerTest(CliCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        data = os.path.join(directory.name, "data")
        cls.server = cls.enterClassContext(daemon.carillon_serve(data, "--max-connections", "1"))

    def test_connections_that_come_to_nothing_become_rare(self):
        # A server whose connections are all taken lets one more connect, and refuses what that says
        # first.
        self.wait_until(
            lambda: self.server.connect().call(b"stats").word == b"OK",
            "the only connection is this one",
        )
        worker = self.start("work", "--", "true")
        time.sleep(3)
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        times = worker.stderr.read().count(b"carillon work: connected to ")
        self.assertGreaterEqual(times, 1)
        self.assertLessEqual(
            times, 6
        )  # after 0.1, 0.3, 0.7, 1.5 and 3.1 s, but for up to a quarter of each


if __name__ == "__main__":
    unittest.main()
