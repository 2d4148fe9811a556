"""System tests of `carillon release`, `bury` and `patch`, for jobs that nobody works on."""

import datetime
import json
import unittest

from cli_case import CliCase


class WaitingJobsTest(CliCase):
    def test_release_makes_delayed_and_buried_jobs_ready(self):
        delayed, buried, ready = self.put("--delay", "1h", "x"), self.put("y"), self.put("z")
        self.assertEqual(self.carillon("bury", buried), f"buried job {buried}\n")
        out = self.carillon("release", delayed, buried, ready)
        self.assertEqual(
            out, "".join(f"released job {job}: ready\n" for job in (delayed, buried, ready))
        )
        for job in (delayed, buried, ready):
            stats = self.job(job)
            self.assertEqual((stats["state"], stats["reserves"]), ("ready", 0))

    def test_release_for_later_by_key(self):
        job_id = self.put("--key", "k", "x")
        named = ("--key", "k", "--tube", self.tube)
        out = self.carillon("release", *named, "--at", "2030-01-01T09:00:00+02:00")
        self.assertEqual(
            out,
            f"released job with key k in tube {self.tube}: due 2030-01-01T07:00:00.000Z\n",
        )
        line = json.loads(self.carillon("release", *named, "--delay", "1h", "--pri", "7", "--json"))
        self.assertEqual(
            (line["id"], line["tube"], line["state"], line["key"], line["pri"]),
            (int(job_id), self.tube, "delayed", "k", 7),
        )
        due = datetime.datetime.fromisoformat(line["due"])
        self.assertEqual(due.timestamp() * 1000, line["due_ms"])
        left = due.timestamp() - datetime.datetime.now().timestamp()
        self.assertTrue(3500 < left <= 3600, left)

    def test_a_dead_job_gets_its_attempts_again(self):
        job_id = self.put("--max-attempts", "1", "x")
        self.run_carillon("work", "--tube", self.tube, "--once", "--", "false")
        self.assertEqual(self.job(job_id)["dead"], "attempts")
        self.carillon("release", job_id)
        job = self.job(job_id)
        self.assertEqual((job["state"], job["dead"], job["attempts"]), ("ready", "no", 0))

    def test_bury_keeps_a_job_from_workers(self):
        job_id = self.put("--delay", "1h", "--key", "k", "x")
        line = json.loads(
            self.carillon("bury", "--key", "k", "--tube", self.tube, "--pri", "3", "--json")
        )
        self.assertEqual((line["id"], line["state"], line["pri"]), (int(job_id), "buried", 3))
        self.assertIn("due", line)
        self.assertEqual(self.carillon("kick", "--tube", self.tube), "1\n")

    def test_bury_and_release_keep_the_attempts(self):
        job_id = self.put("--max-attempts", "5", "--backoff", "1h", "x")
        self.run_carillon("work", "--tube", self.tube, "--once", "--", "false")
        self.carillon("bury", job_id)
        self.carillon("release", job_id)
        self.assertEqual(self.job(job_id)["attempts"], 1)

    def test_patch_changes_what_is_named_and_nothing_else(self):
        job_id = self.put("--key", "k", "--delay", "5h", "--ttr", "2m", "--pri", "7", "old")
        named = ("--key", "k", "--tube", self.tube)
        self.assertEqual(
            self.carillon("patch", *named, "--pri", "1"),
            f"changed job with key k in tube {self.tube}\n",
        )
        job = self.job(job_id)
        self.assertEqual((job["pri"], job["ttr"], job["state"]), (1, 120, "delayed"))
        self.assertGreater(job["time-left"], 17_900)
        self.carillon("patch", job_id, "--ttr", "10m", "--body", "new\n")
        self.assertEqual(self.carillon("peek", job_id), "new\n")
        self.assertEqual(self.job(job_id)["ttr"], 600)
        self.carillon("patch", job_id, "--body", "-", body=b"from a pipe")
        self.assertEqual(self.carillon("peek", job_id), "from a pipe")
        line = json.loads(self.carillon("patch", job_id, "--delay", "0s", "--json"))
        self.assertEqual((line["id"], line["state"]), (int(job_id), "ready"))

    def test_patch_refuses_what_it_cannot_do(self):
        job_id = self.put("x")
        self.fails(
            "carillon patch: say what to change, e.g. --pri 0, --ttr 10m or --body TEXT",
            *("patch", job_id),
            code=2,
        )
        self.fails(
            'carillon patch: --ttr "1": a number without a unit; write 1ms, 1s, 1m, 1h or 1d',
            *("patch", job_id, "--ttr", "1"),
            code=2,
        )
        self.fails("carillon patch: job 999999 does not exist", "patch", "999999", "--pri", "1")

    def test_a_job_that_a_worker_holds_is_left_alone(self):
        held, other = self.put("x"), self.put("y")
        worker = self.server.connect()
        self.assertEqual(worker.call(f"reserve-job {held}".encode()).word, b"RESERVED")
        for command, done in (("bury", f"buried job {other}\n"), ("release", None)):
            ended = self.run_carillon(command, held, other, "999999")
            self.assertEqual(ended.returncode, 1)
            self.assertEqual(ended.stdout.decode(), done or f"released job {other}: ready\n")
            self.assertEqual(
                ended.stderr.decode(),
                f"carillon {command}: a worker holds job {held}\n"
                f"carillon {command}: job 999999 does not exist\n",
            )

    def test_a_priority_beyond_32_bits_is_refused(self):
        job_id = self.put("x")
        for command in ("release", "bury", "patch"):
            for priority in ("4294967296", "18446744073709551616", "-1", "low"):
                shown = priority if priority == "4294967296" else f'"{priority}"'
                self.fails(
                    f"carillon {command}: --pri {shown}: not a whole number from 0 to 4294967295",
                    *(command, job_id, "--pri", priority),
                    code=2,
                )
        self.assertEqual((self.job(job_id)["pri"], self.job(job_id)["state"]), (65536, "ready"))

    def test_wrong_arguments(self):
        for command in ("release", "bury", "patch"):
            self.fails(
                f"carillon {command}: give the jobs' IDs, or the --key of one", command, code=2
            )


if __name__ == "__main__":
    unittest.main()
