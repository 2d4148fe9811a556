"""System tests of `carillon work`: signals, and restarts of the server."""

import os
import re
import signal
import unittest
from unittest import mock

from cli_case import daemon
from work_case import WorkCase, is_gone


class SignalTest(WorkCase):
    def test_the_first_signal_lets_the_job_finish_and_takes_no_other(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            first, second = self.put("x"), self.put("y")
            begun, go_on = self.directory / f"begun{number}", self.directory / f"go_on{number}"
            worker = self.start_worker(
                "--", "sh", "-c", f"touch {begun}; while [ ! -e {go_on} ]; do sleep 0.01; done"
            )
            self.wait_until(begun.exists, "the command runs")
            worker.send_signal(number)
            self.assertEqual(
                worker.stderr.readline(),
                b"carillon work: stopping when 1 running job is done; a second signal kills it\n",
            )
            go_on.touch()
            self.assertEqual(worker.wait(30), 0)
            self.assert_lines(
                worker.stderr.read().decode().splitlines(), rf"job {first} .*, deleted"
            )
            self.assertEqual(self.job(second)["reserves"], 0)
            self.carillon("delete", second)

    def test_an_idle_worker_stops_at_once(self):
        worker = self.start_worker("--jobs", "4", "--", "true")
        self.wait_until(lambda: self.stats()["current-waiting"] == 4, "it waits")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        self.assertEqual(worker.stderr.read(), b"carillon work: stopping\n")

    def test_ctrl_c_does_not_reach_the_command(self):
        # For Ctrl-C a terminal sends SIGINT to the whole foreground process group.
        job_id = self.put("x")
        begun, go_on = self.directory / "begun", self.directory / "go_on"
        worker = self.start(
            *f"work --tube {self.tube} -- sh -c".split(),
            f"touch {begun}; while [ ! -e {go_on} ]; do sleep 0.01; done",
            start_new_session=True,
        )
        self.wait_until(begun.exists, "the command runs")
        os.killpg(worker.pid, signal.SIGINT)
        worker.stderr.readline()
        go_on.touch()
        self.assertEqual(worker.wait(30), 0)
        self.assertFalse(self.has_job(job_id))

    def test_the_second_signal_kills_the_command_and_gives_the_job_back(self):
        job_id = self.put("x")
        pids = self.directory / "pids"
        worker = self.start_worker(
            "--", "sh", "-c", f"sleep 60 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
        )
        self.wait_until(pids.exists, "the command runs")
        worker.terminate()
        worker.stderr.readline()
        worker.terminate()
        self.assertEqual(worker.wait(30), 1)
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: killed after \d\.\d\ds, given back",
        )
        for pid in pids.read_text().split():
            self.wait_until(lambda pid=pid: is_gone(int(pid)), f"process {pid} is gone")
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job is ready again")


class RestartTest(WorkCase):
    def test_a_worker_outlives_its_server(self):
        worker = self.start_worker("--jobs", "2", "--", "cat")
        self.wait_until(lambda: self.stats()["current-waiting"] == 2, "it waits")
        port = self.server.port
        self.kill_server()
        address = f"127.0.0.1:{port}"
        lost = worker.stderr.readline().decode()
        self.assertRegex(
            lost,
            rf"^carillon work: lost the connection to {address}: .*; "
            r"trying again until it is back\n$",
        )
        self.restart_on(port)
        self.assertEqual(
            worker.stderr.readline().decode(), f"carillon work: connected to {address} again\n"
        )
        job_id = self.put("hello")
        line = worker.stderr.readline().decode()
        # The second of its connections may learn of the end later than the first.
        while re.search(rf"^carillon work: (lost the connection|connected) to {address}", line):
            line = worker.stderr.readline().decode()
        self.assertRegex(line, rf"^job {job_id} .*, deleted\n$")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        self.assertEqual(worker.stdout.read(), b"hello")

    def test_a_job_whose_connection_was_lost_runs_again(self):
        job_id = self.put("x")
        begun, go_on = self.directory / "begun", self.directory / "go_on"
        worker = self.start_worker(
            "--", "sh", "-c", f"touch {begun}; while [ ! -e {go_on} ]; do sleep 0.01; done"
        )
        self.wait_until(begun.exists, "the command runs")
        port = self.server.port
        self.kill_server()
        go_on.touch()
        lost = (
            rf"^job {job_id} from tube {self.tube}, attempt \d+: exit status 0 after \d\.\d\ds, "
            r"connection lost: it may run again\n$"
        )
        self.assertRegex(worker.stderr.readline().decode(), lost)
        self.assertIn(b"trying again until it is back", worker.stderr.readline())
        self.restart_on(port)
        self.assertIn(b"again", worker.stderr.readline())
        self.assertRegex(worker.stderr.readline().decode(), rf"^job {job_id} .*, deleted\n$")
        self.assertFalse(self.has_job(job_id))

    def test_a_worker_without_a_server_stops_at_a_signal(self):
        worker = self.start_worker("--", "true")
        self.wait_until(lambda: self.stats()["current-waiting"] == 1, "it waits")
        port = self.server.port
        self.kill_server()
        worker.stderr.readline()
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        self.restart_on(port)

    def restart_on(self, port):
        """Starts the server again on the same port."""
        with mock.patch.object(daemon, "free_port", return_value=port):
            self.server.start()


if __name__ == "__main__":
    unittest.main()
