"""System tests of `carillon delete`, `kick`, `peek` and `stats`."""

import json
import unittest

from cli_case import CliCase


class JobsTest(CliCase):
    def bury(self, job_id):
        """Buries a job over a connection of its own: of carillon's commands only work can bury."""
        connection = self.server.connect()
        self.assertEqual(connection.call(f"reserve-job {job_id}".encode()).word, b"RESERVED")
        self.assertEqual(connection.call(f"bury {job_id} 5".encode()).word, b"BURIED")

    def test_delete_continues_after_a_job_that_does_not_exist(self):
        first, last = self.put("x"), self.put("--delay", "1h", "y")
        done = self.run_carillon("delete", first, "999999", last)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.decode(), f"deleted {first}\ndeleted {last}\n")
        self.assertEqual(done.stderr, b"carillon delete: job 999999 does not exist\n")
        self.fails(f"carillon stats: job {first} does not exist", "stats", "--job", first)

    def test_cancel_by_id_and_by_key(self):
        first, second = self.put("x"), self.put("--key", "k", "y")
        done = self.run_carillon("cancel", first, "999999")
        self.assertEqual((done.returncode, done.stdout.decode()), (1, f"cancelled job {first}\n"))
        self.assertEqual(done.stderr, b"carillon cancel: job 999999 does not exist\n")
        named = f"job with key k in tube {self.tube}"
        arguments = ("cancel", "--key", "k", "--tube", self.tube)
        self.assertEqual(self.carillon(*arguments), f"cancelled {named}\n")
        self.fails(f"carillon cancel: {named} does not exist", *arguments)
        self.fails(f"carillon stats: job {second} does not exist", "stats", "--job", second)

    def test_cancel_of_a_job_that_a_worker_holds(self):
        job_id = self.put("x")
        worker = self.server.connect()
        self.assertEqual(worker.call(f"reserve-job {job_id}".encode()).word, b"RESERVED")
        self.fails(f"carillon cancel: a worker holds job {job_id}; see --ask", "cancel", job_id)
        self.assertEqual(self.carillon("cancel", "--ask", job_id), f"asked for job {job_id}\n")
        self.assertEqual(worker.call(f"touch-job {job_id}".encode()).word, b"CANCEL_ASKED")
        self.assertEqual(worker.call(f"release {job_id} 0 0".encode()).word, b"RELEASED")
        self.fails(f"carillon stats: job {job_id} does not exist", "stats", "--job", job_id)

    def test_kick_delayed_jobs(self):
        for delay in ("3h", "1h", "2h"):
            self.put("--delay", delay, delay)
        self.assertEqual(self.carillon("kick", "--tube", self.tube), "1\n")
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "1h")
        self.assertEqual(self.carillon("kick", "10", "--tube", self.tube), "2\n")
        self.assertEqual(self.carillon("kick", "10", "--tube", self.tube), "0\n")

    def test_kick_one_job(self):
        job_id = self.put("--delay", "1h", "x")
        self.assertEqual(self.carillon("kick", "--job", job_id), "1\n")
        self.assertEqual(self.job(job_id)["state"], "ready")
        why = f"job {job_id} is ready, neither buried nor delayed"
        self.fails(f"carillon kick: {why}", "kick", "--job", job_id)
        self.fails("carillon kick: job 999999 does not exist", "kick", "--job", "999999")

    def test_kick_of_a_tube_without_jobs_to_kick(self):
        self.put("x")
        self.assertEqual(self.carillon("kick", "--tube", self.tube), "0\n")
        why = self.no_such_tube("nowhere")
        self.fails(f"carillon kick: {why}", "kick", "--tube", "nowhere")

    def test_peek_by_id_and_by_state(self):
        ready = self.put("is ready")
        delayed = self.put("--delay", "90s", "is delayed")
        buried = self.put("is buried")
        self.bury(buried)
        for arguments, job_id, state in (
            (["--ready", "--tube", self.tube], ready, "ready"),
            (["--delayed", "--tube", self.tube], delayed, "delayed"),
            (["--buried", "--tube", self.tube], buried, "buried"),
            ([ready], ready, "ready"),
            ([delayed], delayed, "delayed"),
            ([buried], buried, "buried"),
        ):
            done = self.run_carillon("peek", *arguments)
            self.assertEqual((done.returncode, done.stdout.decode()), (0, f"is {state}"))
            when = "in 1m\\d\\ds" if state == "delayed" else ".*s ago"
            due = rf", due \d{{4}}-\d\d-\d\dT.*\.\d{{3}}Z, {when}, ttr 60s"
            self.assertRegex(
                done.stderr.decode(), rf"^job {job_id} in tube {self.tube}: {state}{due}\n$"
            )
            line = json.loads(self.carillon("peek", "--json", *arguments))
            for name in ("due", "due_ms", "created"):
                line.pop(name)
            moved = {"reserves": 1, "buries": 1} if state == "buried" else {}
            self.assertEqual(
                line,
                {
                    "id": int(job_id),
                    "tube": self.tube,
                    "state": state,
                    "pri": 5 if state == "buried" else 65536,
                    "ttr": "60000ms",
                    "body_bytes": len(f"is {state}"),
                    "body": f"is {state}",
                    **moved,
                },
            )

    def test_peek_by_key_shows_the_worker_and_failed_attempts(self):
        job_id = self.put("--key", "k", "--max-attempts", "2", "x")
        with self.server.connect() as worker:
            worker.call(b"name-client mill-3")
            worker.call(f"reserve-job {job_id}".encode())
            arguments = ("peek", "--key", "k", "--tube", self.tube)
            name = f"job {job_id} in tube {self.tube}"
            self.assertRegex(
                self.run_carillon(*arguments).stderr.decode(),
                rf"^{name}: reserved by mill-3, \d+ s left, due \S+, \S+ ago, ttr 60s, key k\n$",
            )
            for error in (b"no", b"disk \x1bfull"):
                worker.call(f"reserve-job {job_id}".encode())
                worker.call(b"fail-job %s %d" % (job_id.encode(), len(error)), error)
        at = r"\d{4}-\d\d-\d\dT\S+Z"
        self.assertRegex(
            self.run_carillon(*arguments).stderr.decode(),
            rf"^{name}: buried, due \S+, \S+ ago, ttr 60s, key k, failed attempts: 2, "
            r"dead: attempts\n"
            rf"  {at} failed, mill-3: no\n  {at} failed, mill-3: disk \\x1Bfull\n$",
        )
        self.fails(
            f"carillon peek: job with key l in tube {self.tube} does not exist",
            *("peek", "--key", "l", "--tube", self.tube),
        )

    def test_peek_shows_a_cancel_that_is_asked_for_and_what_the_job_carries(self):
        kept = {"metadata": {"a": 7}}
        options = ("--expires-in", "1h", "--attributes", json.dumps(kept), "--ttr", "90s")
        job_id = self.put(*options, "x")
        with self.server.connect() as worker:
            worker.call(f"reserve-job {job_id}".encode())
            self.carillon("cancel", "--ask", job_id)
            line = json.loads(self.carillon("peek", job_id, "--json"))
            self.assertEqual((line["cancel_asked"], line["attributes"]), (True, kept))
            self.assertEqual((line["ttr"], line["at_expiry"]), ("90000ms", "drop"))
            self.assertIn("expires_at", line)
            self.assertIn("lease_ends", line)
            self.assertRegex(
                self.run_carillon("peek", job_id).stderr.decode(),
                r", expires \S+, its cancel is asked for, ttr 90s, attributes \{.*\}\n$",
            )

    def test_peek_finds_nothing(self):
        self.fails("carillon peek: job 999999 does not exist", "peek", "999999")
        for state in ("ready", "delayed", "buried"):
            self.fails(
                f"carillon peek: no {state} job in tube {self.tube}",
                "peek",
                f"--{state}",
                "--tube",
                self.tube,
            )

    def test_stats_for_people(self):
        job_id = self.put("x")
        for arguments in ([], ["--tube", self.tube], ["--job", job_id]):
            lines = self.carillon("stats", *arguments).splitlines()
            column = max(len(line.split()[0]) for line in lines) + 2
            for line in lines:
                self.assertRegex(line, rf"^[a-z0-9-]+ +(?<=^.{{{column}}})\S")
                self.assertLessEqual(len(line), 80)
        self.assertIn(f"tube       {self.tube}\n", self.carillon("stats", "--job", job_id))

    def test_stats_for_machines(self):
        job_id = self.put("--pri", "7", "x")
        server = self.stats()
        self.assertEqual((type(server["cmd-put"]), type(server["rusage-utime"])), (int, float))
        self.assertEqual(
            (server["draining"], type(server["id"]), type(server["version"])), (False, str, str)
        )
        tube = self.stats("--tube", self.tube)
        self.assertEqual(
            (tube["name"], tube["current-jobs-ready"], tube["current-jobs-urgent"]),
            (self.tube, 1, 1),
        )
        job = self.job(job_id)
        self.assertEqual((job["id"], job["state"], job["pri"]), (int(job_id), "ready", 7))

    def test_a_tube_named_like_a_number(self):
        self.carillon("put", "--tube", "123", "x")
        self.assertEqual(self.stats("--tube", "123")["name"], "123")

    def test_stats_of_nothing(self):
        self.fails("carillon stats: job 999999 does not exist", "stats", "--job", "999999")
        why = self.no_such_tube("nowhere")
        self.fails(f"carillon stats: {why}", "stats", "--tube", "nowhere")


if __name__ == "__main__":
    unittest.main()
