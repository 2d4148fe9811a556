"""System tests of `carillon work`: the command's input, the job's end, signals and restarts."""

import os
import re
import signal
import unittest
from unittest import mock

from cli_case import SLACK, CliCase, daemon


class WorkCase(CliCase):
    def work(self, *arguments):
        """Runs a worker on this test's tube to its end.

        Returns (exit code, standard output, lines of standard error).
        """
        done = self.run_carillon("work", "--tube", self.tube, *arguments)
        return done.returncode, done.stdout.decode(), done.stderr.decode().splitlines()

    def start_worker(self, *arguments):
        return self.start("work", "--tube", self.tube, *arguments)

    def assert_lines(self, lines, *patterns):
        self.assertEqual(len(lines), len(patterns), lines)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line, f"^{pattern}$")

    def count(self, state):
        return self.stats("--tube", self.tube)[f"current-jobs-{state}"]


class JobTest(WorkCase):
    def test_success_deletes_the_job(self):
        job_id = self.put("hello")
        script = 'echo "$CARILLON_JOB_ID $CARILLON_TUBE $CARILLON_ATTEMPT $(cat)"'
        code, out, lines = self.work("--until-empty", "--", "sh", "-c", script)
        self.assertEqual((code, out), (0, f"{job_id} {self.tube} 1 hello\n"))
        self.assert_lines(
            lines,
            rf"job {job_id} from tube {self.tube}, attempt 1: exit 0 after \d\.\d\ds, deleted",
        )
        self.assertFalse(self.has_job(job_id))

    def test_the_body_arrives_byte_for_byte(self):
        body = bytes(range(256)) * 200
        self.put(body=body)
        done = self.run_carillon("work", "--tube", self.tube, "--until-empty", "--", "cat")
        self.assertEqual(done.stdout, body)

    def test_the_command_gets_its_arguments_unchanged(self):
        self.put("x")
        words = ["[1,2]", "--jobs", "-h", "", "%%", "--", "two words"]
        _, out, _ = self.work("--until-empty", "--", "printf", "%s|", *words)
        self.assertEqual(out, "".join(word + "|" for word in words))
        self.put("x")
        _, out, _ = self.work("--until-empty", "printf", "%s|", *words)  # the -- is optional
        self.assertEqual(out, "".join(word + "|" for word in words))

    def test_failure_releases_the_job_with_a_growing_delay(self):
        log = self.directory / "attempts"
        job_id = self.put("--pri", "7", "x")
        worker = self.start_worker(
            "--backoff",
            "300ms",
            "--max-attempts",
            "4",
            "--",
            "sh",
            "-c",
            f"date +%s.%N >> {log}; exit 3",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "four attempts")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        released = r"released for (\d\.\d\d)s"
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: exit 3 after \d\.\d\ds, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 2: exit 3 after \d\.\d\ds, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 3: exit 3 after \d\.\d\ds, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 4: exit 3 after \d\.\d\ds, buried",
            r"carillon work: stopping",
        )
        times = [float(line) for line in log.read_text().split()]
        for earlier, later, delay in zip(times, times[1:], (0.3, 0.6, 1.2)):
            # A random part shortens the delay by up to a quarter.
            self.assertGreaterEqual(later - earlier, 0.75 * delay)
            self.assertLess(later - earlier, delay + SLACK)
        job = self.job(job_id)
        self.assertEqual((job["pri"], job["reserves"], job["releases"]), (7, 4, 3))

    def test_a_delay_stops_growing_at_its_limit(self):
        job_id = self.put("x")
        worker = self.start_worker(
            "--backoff", "100ms", "--backoff-max", "150ms", "--max-attempts", "5", "--", "false"
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "five attempts")
        worker.terminate()
        worker.wait(30)
        delays = re.findall(r"released for (\S+)s", worker.stderr.read().decode())
        self.assertEqual(len(delays), 4)
        self.assertLessEqual(max(float(delay) for delay in delays), 0.15)

    def test_a_command_killed_by_a_signal_has_failed(self):
        job_id = self.put("x")
        code, _, lines = self.work(
            "--once", "--max-attempts", "1", "--", "sh", "-c", "kill -KILL $$"
        )
        self.assertEqual(code, 1)
        self.assert_lines(
            lines,
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"signal 9 \(killed\) after \d\.\d\ds, buried",
        )
        self.assertEqual(self.job(job_id)["state"], "buried")

    def test_a_command_that_runs_longer_than_the_ttr_keeps_its_job(self):
        job_id = self.put("--ttr", "1s", "x")
        code, _, lines = self.work("--once", "--", "sleep", "2.5")
        self.assertEqual(code, 0)
        self.assert_lines(
            lines, rf"job {job_id} from tube {self.tube}, attempt 1: exit 0 after 2\.\d\ds, deleted"
        )
        self.assertEqual(self.stats()["job-timeouts"], 0)

    def test_a_command_that_vanishes_is_a_failed_attempt(self):
        program = self.directory / "program"
        program.write_text('#!/bin/sh\nrm "$0"\n')
        program.chmod(0o755)
        first, second = self.put("x"), self.put("y")
        code, _, lines = self.work("--until-empty", "--backoff", "1h", "--", str(program))
        self.assertEqual(code, 0)
        self.assert_lines(
            lines,
            rf"job {first} from tube {self.tube}, attempt 1: exit 0 after \d\.\d\ds, deleted",
            rf'job {second} from tube {self.tube}, attempt 1: cannot run "{program}": '
            r"no such file or directory after \d\.\d\ds, released for \d+m\d\ds",
        )

    def test_several_tubes(self):
        self.put("a")
        self.carillon("put", "--tube", self.tube + "2", "b")
        done = self.run_carillon(
            "work",
            "--tube",
            self.tube,
            "--tube",
            self.tube + "2",
            "--until-empty",
            "--",
            "sh",
            "-c",
            "echo $CARILLON_TUBE",
        )
        self.assertEqual(done.stdout.decode(), f"{self.tube}\n{self.tube}2\n")

    def test_once_takes_one_job_and_reports_its_end(self):
        first, second = self.put("x"), self.put("y")
        self.assertEqual(self.work("--once", "--", "true")[0], 0)
        self.assertEqual(self.work("--once", "--backoff", "1h", "--", "false")[0], 1)
        self.assertFalse(self.has_job(first))
        self.assertEqual(self.job(second)["state"], "delayed")

    def test_jobs_run_at_a_time(self):
        # Each command waits until all three have started.
        for _ in range(3):
            self.put("x")
        script = (
            f"touch {self.directory}/$CARILLON_JOB_ID; "
            f"while [ $(ls {self.directory} | wc -l) -lt 3 ]; do sleep 0.01; done"
        )
        code, _, lines = self.work("--jobs", "3", "--until-empty", "--", "sh", "-c", script)
        self.assertEqual(code, 0)
        self.assertEqual(len([line for line in lines if line.endswith(", deleted")]), 3, lines)

    def test_a_job_that_was_deleted_meanwhile_is_too_late(self):
        job_id = self.put("--ttr", "1s", "x")
        stolen = self.start_worker("--once", "--backoff", "1h", "--", "sleep", "3")
        self.wait_until(lambda: self.job(job_id)["state"] == "reserved", "it runs")
        stolen.send_signal(signal.SIGSTOP)  # it cannot touch the job, so the ttr runs out
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the ttr has run out")
        self.carillon("delete", job_id)
        stolen.send_signal(signal.SIGCONT)
        self.assertEqual(stolen.wait(30), 0)
        self.assert_lines(
            stolen.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            "its ttr ran out before it was touched; another worker may run it too",
            rf"job {job_id} from tube {self.tube}, attempt 1: exit 0 after \d\.\d\ds, "
            "too late: its ttr had run out",
        )


class AttemptTest(WorkCase):
    """Attempts are counted by the server's counters of the job."""

    def assert_buried_at(self, job_id, attempts, *arguments):
        """Lets every attempt fail until the job is buried. Their numbers must be `attempts`.

        Returns the delays before the job was released, in seconds.
        """
        worker = self.start_worker(*arguments, "--", "sh", "-c", "echo $CARILLON_ATTEMPT; exit 1")
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "it is buried")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        lines = worker.stderr.read().decode().splitlines()[:-1]
        name, failed = f"job {job_id} from tube {self.tube}", r"exit 1 after \d\.\d\ds"
        patterns = [
            rf"{name}, attempt {attempt}: {failed}, released for (\S+)s" for attempt in attempts
        ]
        patterns[-1] = rf"{name}, attempt {attempts[-1]}: {failed}, buried"
        self.assert_lines(lines, *patterns)
        self.assertEqual(
            worker.stdout.read().decode().split(), [str(attempt) for attempt in attempts]
        )
        return [
            float(re.fullmatch(pattern, line)[1]) for pattern, line in zip(patterns[:-1], lines)
        ]

    def test_a_job_that_was_reserved_and_given_back_has_not_failed(self):
        job_id = self.put("x")
        for _ in range(5):
            # The end of its connection gives the job back.
            self.carillon("reserve", "--tube", self.tube)
            self.wait_until(lambda: self.job(job_id)["state"] == "ready", "it is given back")
        self.assert_buried_at(job_id, [1, 2, 3], "--max-attempts", "3", "--backoff", "10ms")

    def test_a_kicked_job_has_all_its_attempts_again(self):
        job_id = self.put("x")
        for first in (1, 4, 7):
            delays = self.assert_buried_at(
                job_id, [first, first + 1, first + 2], "--max-attempts", "3", "--backoff", "200ms"
            )
            for delay, most in zip(delays, (0.2, 0.4)):
                self.assertGreaterEqual(
                    delay, 0.7 * most
                )  # at least 0.75, and rounded when printed
                self.assertLessEqual(delay, most)
            self.carillon("kick", "--tube", self.tube)
        self.assertEqual(self.job(job_id)["buries"], 3)

    def test_a_ttr_that_ran_out_is_an_attempt(self):
        job_id = self.put("--ttr", "1s", "x")
        with self.server.connect() as connection:
            connection.call(b"watch " + self.tube.encode())
            connection.call(b"reserve")
            self.wait_until(lambda: self.job(job_id)["timeouts"] == 1, "its ttr has run out")
            self.assert_buried_at(job_id, [2], "--max-attempts", "2")

    def test_a_release_by_anybody_is_an_attempt(self):
        job_id = self.put("x")
        with self.server.connect() as connection:
            connection.call(b"watch " + self.tube.encode())
            for _ in range(2):
                connection.call(b"reserve")
                connection.call(f"release {job_id} 0 0".encode())
        self.assert_buried_at(job_id, [3, 4], "--max-attempts", "4", "--backoff", "10ms")


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
            "work",
            "--tube",
            self.tube,
            "--",
            "sh",
            "-c",
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
            self.wait_until(lambda pid=pid: _is_gone(int(pid)), f"process {pid} is gone")
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
        self.assertRegex(worker.stderr.readline().decode(), rf"^job {job_id} .*, deleted\n$")
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
            rf"^job {job_id} from tube {self.tube}, attempt \d+: exit 0 after \d\.\d\ds, "
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


def _is_gone(pid):
    """Returns true if the process has ended; it may still be a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


if __name__ == "__main__":
    unittest.main()
