"""System tests of `carillon work` with a server that refuses its commands.

The server refuses the result of a job (its disk is full), or every command (too many connections).
"""

import errno
import os
import signal
import tempfile
import time
import unittest
from pathlib import Path

from cli_case import CliCase, daemon
from work_case import WorkCase

import failing_io  # noqa: E402  (cli_case has made it known)
import side_by_side  # noqa: E402


@unittest.skipUnless(failing_io.library(), "system calls cannot be made to fail in this build")
class FullDiskTest(WorkCase):
    """The server's disk is full: it cannot make a new segment of its log."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.data = Path(directory.name) / "data"
        cls.faults = cls.enterClassContext(failing_io.Faults())
        cls.server = cls.enterClassContext(
            daemon.carillon_serve(str(cls.data), "--sync", "os", environment=cls.faults.environment)
        )

    def setUp(self):
        super().setUp()
        self.full = None
        self.addCleanup(self.make_room)
        self.begun, self.go_on, self.runs = (
            self.directory / name for name in ("begun", "go_on", "runs")
        )

    def make_room(self):
        if self.full is not None:
            self.full.stop()

    def fill_the_disk(self):
        """Fills the log until the server refuses large puts, then small puts, then deletes."""
        self.full = self.faults.fail("create", "*/jobs-*", errno.ENOSPC, times=failing_io.FOR_EVER)
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
        """Starts a worker whose command exits with `code` once the disk is full.

        Returns the worker as soon as its command may exit.
        """
        script = (
            f"echo x >> {self.runs}; touch {self.begun}; "
            f"while [ ! -e {self.go_on} ]; do sleep 0.01; done; exit {code}"
        )
        worker = self.start_worker(*arguments, "--", "sh", "-c", script)
        self.wait_until(self.begun.exists, "the command runs")
        self.fill_the_disk()
        self.go_on.touch()
        return worker

    def assert_line(self, worker, pattern):
        self.assertRegex(worker.stderr.readline().decode(), f"^{pattern}\n$")

    def ends_after_room_appears(self, code, options, ttr, refused, done, full_for=1.0):
        """Checks that the worker keeps its job while the disk is full, and finishes it afterwards.

        The command exits with `code`. `refused` is the verb that the server refuses, `done` the
        worker's text once there is room. The disk is full for `full_for` seconds. Returns the job's
        id.
        """
        job_id = self.put("--ttr", ttr, "x")
        worker = self.start_with_a_full_disk(code, "--once", *options)
        name = rf"job {job_id} from tube {self.tube}, attempt 1: exit status {code} after \d\.\d\ds"
        self.assert_line(
            worker,
            rf"{name}, but the server refused to {refused} it \(INTERNAL_ERROR\); "
            r"trying again until it does",
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
            3, ["--backoff", "1h"], "60s", "fail", r"again in \d+m\d\ds"
        )
        self.assertEqual(self.job(job_id)["state"], "delayed")

    def test_a_job_is_buried_once_there_is_room(self):
        job_id = self.ends_after_room_appears(
            3, ["--max-attempts", "1"], "60s", "fail", "dead: it is buried"
        )
        self.assertEqual(self.job(job_id)["state"], "buried")

    def test_a_signal_ends_the_worker(self):
        job_id = self.put("x")
        worker = self.start_with_a_full_disk(0)
        self.assert_line(worker, r"job .*; trying again until it does")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(30), 1)
        self.assert_lines(
            sorted(worker.stderr.read().decode().splitlines()),  # two threads print, in any order
            "carillon work: stopping",
            rf"job {job_id} from tube {self.tube}, attempt 1: exit status 0 after \d\.\d\ds, "
            r"but the server refused to delete it \(INTERNAL_ERROR\), "
            r"and the worker stops: it may run again",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job is given back")

    def test_a_lost_connection_is_reported(self):
        job_id = self.put("x")
        worker = self.start_with_a_full_disk(0)
        self.assert_line(worker, r"job .*; trying again until it does")
        self.kill_server()
        self.assert_line(
            worker,
            rf"job {job_id} from tube {self.tube}, attempt 1: exit status 0 after \d\.\d\ds, "
            r"connection lost: it may run again",
        )
        self.assert_line(
            worker, "carillon work: lost the connection to .*; trying again until it is back"
        )
        self.make_room()
        self.server.start()


class CrowdedServerTest(CliCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        data = os.path.join(directory.name, "data")
        cls.server = cls.enterClassContext(daemon.carillon_serve(data, "--max-connections", "1"))

    def test_reconnecting_slows_down_if_every_command_is_refused(self):
        # A server at its limit of connections accepts one more, and refuses that connection's first
        # command.
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
        # The tries start after 0.1, 0.3, 0.7, 1.5 and 3.1 s, each delay less up to a quarter.
        self.assertLessEqual(times, 6)


class WorkTokenTest(WorkCase):
    """The token of the worker has the scope `work` alone."""

    def test_a_token_that_may_not_read_runs_commands_and_counts_attempts(self):
        tokens = str(self.directory / "tokens")
        new = ("token", "new", "--file", tokens)
        producer = self.carillon(*new, "--name", "p", "--scope", "put,read").strip()
        worker = self.carillon(*new, "--name", "w", "--scope", "work").strip()
        data = str(self.directory / "data")
        with daemon.carillon_serve(data, "--tokens", tokens) as server:
            address = f"{daemon.HOST}:{server.port}"

            def run(token, *words):
                variables = {"CARILLON_SERVER": address, "CARILLON_TOKEN": token}
                return self.run_carillon(*words, env=self.environment(**variables))

            for body in ("a", "b"):
                run(producer, "put", "--tube", self.tube, body)
            script = ("--", "sh", "-c", "cat; echo $CARILLON_TUBE $CARILLON_ATTEMPT")
            done = run(worker, "work", "--tube", self.tube, "--once", *script)
            self.assertEqual((done.returncode, done.stdout), (0, f"a{self.tube} 1\n".encode()))
            failing = ("work", "--tube", self.tube, "--once", "--backoff", "0s", "--", "false")
            self.assertEqual(run(worker, *failing).returncode, 1)
            done = run(worker, "work", "--tube", self.tube, "--until-empty", *script)
            self.assertEqual((done.returncode, done.stdout), (0, f"b{self.tube} 2\n".encode()))
            # It reads no job that it does not hold.
            run(producer, "put", "--tube", self.tube, "c")
            done = run(worker, "stats", "--job", "3")
            self.assertIn(b'the token "w" lacks the scope read', done.stderr)


if __name__ == "__main__":
    side_by_side.main()
