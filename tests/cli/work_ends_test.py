"""System tests of `carillon work`: commands that end with their worker, and jobs whose cancel is
asked for while they run."""

import os
import signal
from pathlib import Path

from cli_case import SLACK
from work_case import WorkCase, is_gone

import side_by_side  # noqa: E402  (cli_case has made it known)


class KilledWorkerTest(WorkCase):
    def start_family(self, *arguments):
        """Starts a worker with a command that has a child. Returns it and the pids of both."""
        pids = self.directory / "pids"
        script = f"sleep 60 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
        worker = self.start_worker(*arguments, "--", "sh", "-c", script)
        self.wait_until(pids.exists, "the command runs")
        return worker, [int(pid) for pid in pids.read_text().split()]

    def test_a_killed_worker_takes_its_command_and_the_commands_children_with_it(self):
        job_id = self.put("x")
        worker, pids = self.start_family()
        self.assertFalse(any(is_gone(pid) for pid in pids))
        worker.kill()
        for pid in pids:
            self.wait_until(lambda pid=pid: is_gone(pid), f"process {pid} is gone", SLACK)
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job is given back")
        # Nothing keeps the worker's output open, so this ends.
        worker.communicate(timeout=30)

    def test_the_guard_leaves_alone_what_a_command_has_left_behind(self):
        self.put("x")
        left = self.directory / "left"
        script = f"setsid sleep 60 >/dev/null 2>&1 & echo $! > {left}"
        code, _, lines = self.work("--once", "--", "sh", "-c", script)
        self.assertEqual(code, 0, lines)
        pid = int(left.read_text())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        command = Path(f"/proc/{pid}/cmdline")
        self.wait_until(lambda: command.read_bytes() == b"sleep\x0060\x00", "it sleeps")


class CancelTest(WorkCase):
    def start_and_cancel(self, script, *arguments):
        begun = self.directory / "begun"
        job_id = self.put("--ttr", "2s", "x")
        worker = self.start_worker(
            "--once", *arguments, "--", "sh", "-c", script.format(begun=begun)
        )
        self.wait_until(begun.exists, "the command runs")
        self.carillon("cancel", "--ask", job_id)
        return job_id, worker

    def test_the_command_gets_sigterm_and_the_job_is_gone(self):
        job_id, worker = self.start_and_cancel("touch {begun}; sleep 60")
        self.assertEqual(worker.wait(30), 1)
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"killed by signal 15 \(SIGTERM\) after \d\.\d\ds, cancelled",
        )
        self.assertFalse(self.has_job(job_id))

    def test_a_command_that_ignores_it_is_killed_after_its_grace(self):
        job_id, worker = self.start_and_cancel(
            "trap '' TERM; touch {begun}; while :; do sleep 0.1; done", "--grace", "3s"
        )
        self.assertEqual(worker.wait(30), 1)
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"job {job_id} from tube {self.tube}, attempt 1: "
            r"killed by signal 9 \(SIGKILL\) after [3-9]\.\d\ds, cancelled",
        )
        self.assertFalse(self.has_job(job_id))
        self.assertEqual(self.stats()["job-timeouts"], 0)

    def test_a_command_that_comes_to_its_end_has_succeeded(self):
        job_id, worker = self.start_and_cancel(
            "trap 'exit 0' TERM; touch {begun}; while :; do sleep 0.1; done"
        )
        self.assertEqual(worker.wait(30), 0)
        self.assertIn(b"exit status 0", worker.stderr.read())
        self.assertFalse(self.has_job(job_id))


if __name__ == "__main__":
    side_by_side.main()
