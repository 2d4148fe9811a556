"""System tests of `carillon work`: the command's input, the job's end, and attempts."""

import json
import re
import signal

from cli_case import SLACK
from work_case import WorkCase

import side_by_side  # noqa: E402  (cli_case has made it known)


class JobTest(WorkCase):
    def test_success_deletes_the_job(self):
        job_id = self.put("hello")
        script = 'echo "$CARILLON_JOB_ID $CARILLON_TUBE $CARILLON_ATTEMPT $(cat)"'
        code, out, lines = self.work("--until-empty", "--", "sh", "-c", script)
        self.assertEqual((code, out), (0, f"{job_id} {self.tube} 1 hello\n"))
        self.assert_lines(
            lines,
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"exit status 0 after \d\.\d\ds, deleted",
        )
        self.assertFalse(self.has_job(job_id))

    def test_until_empty_waits_for_jobs_that_a_limit_holds_back(self):
        self.carillon("tube", "set", self.tube, "--rate", "1/700ms")
        for body in "abc":
            self.put(body)
        code, out, _ = self.work("--until-empty", "--", "cat")
        self.assertEqual((code, out), (0, "abc"))

    def test_until_empty_waits_while_a_tube_is_paused(self):
        self.put("x")
        self.carillon("pause", self.tube, "10m")
        worker = self.start_worker("--until-empty", "--", "cat")
        self.assertEqual(
            worker.stderr.readline(),
            b"carillon work: waits for ready jobs that a pause or a limit holds back\n",
        )
        self.carillon("resume", self.tube)
        self.assertEqual(worker.wait(30), 0)
        self.assertEqual(worker.stdout.read(), b"x")
        # It also ends if the jobs are gone.
        job_id = self.put("y")
        self.carillon("pause", self.tube, "10m")
        worker = self.start_worker("--until-empty", "--", "cat")
        worker.stderr.readline()
        self.carillon("delete", job_id)
        self.assertEqual(worker.wait(30), 0)

    def test_until_empty_does_not_wait_for_somebody_to_resume_a_tube(self):
        job_id = self.put("x")
        self.carillon("pause", self.tube)
        code, out, lines = self.work("--until-empty", "--jobs", "2", "--", "cat")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(
            lines,
            [
                f"carillon work: tube {self.tube} has ready jobs, and is paused until carillon "
                f"resume {self.tube}"
            ],
        )
        self.carillon("resume", self.tube)
        self.assertEqual(self.work("--until-empty", "--", "cat")[:2], (0, "x"))
        self.assertFalse(self.has_job(job_id))

    def test_a_backoff_that_no_server_takes_is_refused(self):
        for option in ("--backoff", "--backoff-max"):
            self.fails(
                f'carillon work: {option} "99999999d": the longest is 36500d',
                *("work", option, "99999999d", "--", "true"),
                code=2,
            )

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
            *"--backoff 300ms --max-attempts 4 -- sh -c".split(),
            f"date +%s.%N >> {log}; exit 3",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "four attempts")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        failed = r"exit status 3 after \d\.\d\ds"
        released = r"again in (\d\.\d\d)s"
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: {failed}, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 2: {failed}, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 3: {failed}, {released}",
            rf"job {job_id} from tube {self.tube}, attempt 4: {failed}, dead: it is buried",
            r"carillon work: stopping",
        )
        times = [float(line) for line in log.read_text().split()]
        for earlier, later, delay in zip(times, times[1:], (0.3, 0.6, 1.2)):
            # A random part shortens the delay by up to a quarter.
            self.assertGreaterEqual(later - earlier, 0.75 * delay)
            self.assertLess(later - earlier, delay + SLACK)
        job = self.job(job_id)
        self.assertEqual((job["pri"], job["reserves"], job["releases"]), (7, 4, 0))

    def test_a_delay_stops_growing_at_its_limit(self):
        job_id = self.put("x")
        worker = self.start_worker(
            "--backoff", "100ms", "--backoff-max", "150ms", "--max-attempts", "5", "--", "false"
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "five attempts")
        worker.terminate()
        worker.wait(30)
        delays = re.findall(r"again in (\S+)s", worker.stderr.read().decode())
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
            r"killed by signal 9 \(SIGKILL\) after \d\.\d\ds, dead: it is buried",
        )
        self.assertEqual(self.job(job_id)["state"], "buried")

    def test_a_command_that_runs_longer_than_the_ttr_keeps_its_job(self):
        job_id = self.put("--ttr", "1s", "x")
        code, _, lines = self.work("--once", "--", "sleep", "2.5")
        self.assertEqual(code, 0)
        self.assert_lines(
            lines,
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"exit status 0 after 2\.\d\ds, deleted",
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
            rf"job {first} from tube {self.tube}, attempt 1: "
            r"exit status 0 after \d\.\d\ds, deleted",
            rf'job {second} from tube {self.tube}, attempt 1: cannot run "{program}": '
            r"no such file or directory after \d\.\d\ds, again in \d+m\d\ds",
        )

    def test_several_tubes(self):
        self.put("a")
        self.carillon("put", "--tube", self.tube + "2", "b")
        done = self.run_carillon(
            *f"work --tube {self.tube} --tube".split(),
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
            rf"job {job_id} from tube {self.tube}, attempt 1: exit status 0 after \d\.\d\ds, "
            "too late: its ttr had run out",
        )


class AttemptTest(WorkCase):
    """Attempts are counted by the server."""

    def assert_dead_at(self, job_id, attempts, *arguments):
        """Lets every attempt fail until the job is dead. Their numbers must be `attempts`.

        Returns the delays before the job came again, in seconds.
        """
        worker = self.start_worker(*arguments, "--", "sh", "-c", "echo $CARILLON_ATTEMPT; exit 1")
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "it is buried")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        # The server buries the job before the worker says so: it may be told to stop in between.
        lines = worker.stderr.read().decode().splitlines()
        lines.remove("carillon work: stopping")
        name, failed = f"job {job_id} from tube {self.tube}", r"exit status 1 after \d\.\d\ds"
        patterns = [
            rf"{name}, attempt {attempt}: {failed}, again in (\S+)s" for attempt in attempts
        ]
        patterns[-1] = rf"{name}, attempt {attempts[-1]}: {failed}, dead: it is buried"
        self.assert_lines(lines, *patterns)
        self.assertEqual(
            worker.stdout.read().decode().split(), [str(attempt) for attempt in attempts]
        )
        return [
            float(re.fullmatch(pattern, line)[1]) for pattern, line in zip(patterns[:-1], lines)
        ]

    def test_the_policy_of_the_job_comes_before_that_of_the_worker(self):
        job_id = self.put("--max-attempts", "2", "--backoff", "300ms", "x")
        delays = self.assert_dead_at(job_id, [1, 2], "--max-attempts", "9", "--backoff", "1h")
        self.assertEqual(delays, [0.3])

    def test_the_policy_of_the_tube_counts_too(self):
        self.carillon("tube", "set", self.tube, "--max-attempts", "2")
        job_id = self.put("x")
        # It leaves the back-off open.
        delays = self.assert_dead_at(job_id, [1, 2], "--max-attempts", "9", "--backoff", "200ms")
        self.assertLessEqual(delays[0], 0.2)

    def test_the_story_has_the_exit_status_and_the_last_line_of_standard_error(self):
        job_id = self.put("--max-attempts", "1", "x")
        script = r"""echo first >&2; printf 'disk "full" 100%%\n\n' >&2; exit 3"""
        code, _, lines = self.work("--once", "--", "sh", "-c", script)
        self.assertEqual(code, 1)
        self.assertEqual(lines[:3], ["first", 'disk "full" 100%', ""])  # passed on
        peeked = json.loads(self.carillon("peek", "--json", job_id))
        self.assertEqual((peeked["attempts"], peeked["dead"]), (1, "attempts"))
        (attempt,) = peeked["story"]
        self.assertEqual(attempt["error"], 'exit status 3: disk "full" 100%')
        self.assertRegex(attempt["worker"], r"^\S+:\d+$")
        self.assertEqual(attempt["ending"], "failed")

    def test_the_last_line_is_that_of_the_attempt_and_bounded(self):
        first = self.put("--max-attempts", "1", "--pri", "0", "x")
        second = self.put("--max-attempts", "1", "--pri", "1", "x")
        script = (
            f"if [ $CARILLON_JOB_ID = {first} ]; then "
            "head -c 20000 /dev/zero | tr '\\0' a >&2; fi; "
            "kill -KILL $$"
        )
        worker = self.start_worker("--", "sh", "-c", script)
        self.wait_until(lambda: self.job(second)["state"] == "buried", "both have failed")
        worker.terminate()
        self.assertEqual(len(re.findall(b"a{20000}", worker.communicate()[1])), 1)
        killed = "killed by signal 9 (SIGKILL)"
        errors = [
            json.loads(self.carillon("peek", "--json", job))["story"][0]["error"]
            for job in (first, second)
        ]
        self.assertEqual(errors, [f"{killed}: {'a' * 900}", killed])

    def test_a_command_over_its_time_limit_has_failed(self):
        job_id = self.put("--max-attempts", "1", "x")
        code, _, lines = self.work(
            "--once", "--time-limit", "500ms", "--", "sh", "-c", "echo busy >&2; sleep 60"
        )
        self.assertEqual(code, 1)
        self.assert_lines(
            lines[1:],
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"over its time limit of 0\.50s after \d\.\d\ds, dead: it is buried",
        )
        error = json.loads(self.carillon("peek", "--json", job_id))["story"][0]["error"]
        self.assertEqual(error, "over its time limit of 0.50s: busy")


if __name__ == "__main__":
    side_by_side.main()
