"""System tests of `carillon schedule`."""

import json
import unittest

from cli_case import CliCase


class ScheduleTest(CliCase):
    def schedule(self, *arguments, body=b""):
        return self.carillon("schedule", *arguments, body=body)

    def shown(self, name):
        return json.loads(self.schedule("show", name, "--json"))

    def test_a_schedule_fires_and_a_worker_gets_its_job(self):
        self.schedule("set", "tick", "--every", "1s", "--tube", self.tube, "--ttr", "90s", "hello")
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "hello")
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "hello")
        self.assertGreaterEqual(self.shown("tick")["fired"], 2)
        self.schedule("delete", "tick")
        self.fails("carillon schedule: schedule tick does not exist", "schedule", "show", "tick")

    def test_a_schedule_outlives_its_server(self):
        self.schedule("set", "lives", "--every", "1s", "--tube", self.tube, "-", body=b"again")
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "again")
        self.kill_server()
        self.server.start()
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "again")
        self.schedule("delete", "lives")

    def test_show_tells_the_next_five_times_in_the_zone(self):
        self.schedule("set", "noon", "--cron", "0 12 * * *", "--zone", "Asia/Tokyo", "x")
        shown = self.shown("noon")
        self.assertEqual((shown["cron"], shown["zone"]), ("0 12 * * *", "Asia/Tokyo"))
        for number in range(1, 6):
            self.assertRegex(shown[f"next-{number}"], r"^\d{4}-\d\d-\d\dT12:00:00\+09:00$")
        self.assertNotIn("next-6", shown)
        self.assertIn("catch-up", self.schedule("show", "noon"))
        self.assertIn("noon", self.schedule("list").split("\n"))
        self.assertIn("noon", json.loads(self.schedule("list", "--json")))
        self.schedule("delete", "noon")

    def test_jobs_have_what_the_options_say(self):
        self.schedule(
            "set", "bill", "--cron", "@yearly", "--tube", self.tube, "--group", "acme",
            "--max-attempts", "5", "--backoff", "1m..1h", "--jitter", "10%", "--lost", "fails",
            "--expires-in", "12h", "--at-expiry", "dead",
            "--attributes", '{"metadata": {"n": "a b"}}', "x",
        )  # fmt: skip
        shown = self.shown("bill")
        self.assertEqual((shown["group"], shown["max-attempts"]), ("acme", 5))
        self.schedule("trigger", "bill")
        job = json.loads(self.carillon("list", self.tube, "--json"))
        self.assertEqual((job["group"], job["max_attempts"], job["backoff"]),
                         ("acme", 5, "60000ms..3600000ms"))  # fmt: skip
        self.assertEqual(
            (job["at_expiry"], job["attributes"]), ("dead", {"metadata": {"n": "a b"}})
        )
        self.schedule("delete", "bill")

    def test_pause_trigger_and_resume(self):
        self.schedule("set", "yearly", "--cron", "@yearly", "--tube", self.tube, "now")
        self.schedule("pause", "yearly")
        self.assertIs(self.shown("yearly")["paused"], True)
        job_id = self.schedule("trigger", "yearly").rstrip("\n")
        self.assertEqual(self.job(job_id)["state"], "ready")
        self.schedule("resume", "yearly")
        self.assertIs(self.shown("yearly")["paused"], False)
        self.schedule("delete", "yearly")

    def test_each_change_is_reported_in_a_line(self):
        set_it = ("set", "told", "--cron", "@yearly", "--tube", self.tube, "x")
        for arguments, done in (
            (set_it, "set"),
            (set_it, "set"),
            (("pause", "told"), "paused"),
            (("resume", "told"), "resumed"),
            (("delete", "told"), "deleted"),
        ):
            self.assertEqual(self.schedule(*arguments), f"{done} schedule told\n")
        for arguments, done in ((set_it, "set"), (("pause", "told"), "paused")):
            line = json.loads(self.schedule(*arguments, "--json"))
            self.assertEqual(line, {"schedule": "told", "result": done})
        # A trigger prints the id alone, for scripts.
        self.assertRegex(self.schedule("trigger", "told"), r"^\d+\n$")
        line = json.loads(self.schedule("trigger", "told", "--json"))
        self.assertEqual((line["schedule"], self.job(str(line["id"]))["tube"]), ("told", self.tube))
        self.schedule("delete", "told")

    def test_what_is_wrong_is_said_in_a_line(self):
        def refused(line, *arguments, code=2):
            self.fails(f"carillon schedule: {line}", "schedule", *arguments, code=code)

        refused("write when: --cron or --every", "set", "s", "x")
        refused("write the name: show NAME", "show")
        refused('NAME "-s": a name does not start with -', "show", "--", "-s")
        refused("only set takes a body", "show", "s", "x")
        refused("--every is for set", "show", "s", "--every", "1h")
        refused('list takes no name: "s"', "list", "s")
        every = "--every 999 ms: 1000 to 315532800000 ms are allowed"
        refused(every, "set", "s", "--every", "999ms", "x")
        for options, why in (
            (("--every", "1h", "--cron", "@daily"), "--every does not go with --cron"),
            (("--cron", "@daily", "--start", "2030-01-01T00:00:00Z"), "--start needs --every"),
            (("--every", "1h", "--zone", "Asia/Tokyo"), "--zone needs --cron"),
            (("--every", "1h", "--at-expiry", "dead"), "--at-expiry needs --expires-in"),
            (
                ("--every", "1h", "--catch-up", "all"),
                '--catch-up "all": none, last, or all: and how far back, as all:1h',
            ),
            (
                ("--every", "1h", "--backoff", "5s..1s"),
                "--backoff: an exponential back-off needs a bound, no shorter than its first delay",
            ),
            (
                ("--every", "1h", "--attributes", '{"traceparent":"x"}'),
                '--attributes "x": not a traceparent of W3C Trace Context: 00-TRACE-PARENT-FLAGS, '
                "and no id is all zeros",
            ),
            (
                ("--every", "1h", "--attributes", '{"tracestate":"x"}'),
                '--attributes "{"tracestate":"x"}": tracestate needs traceparent',
            ),
        ):
            refused(why, "set", "s", *options, "x")
        for action in ("show", "pause", "resume", "trigger", "delete"):
            refused("schedule none does not exist", action, "none", code=1)
        done = self.run_carillon("schedule", "set", "s", "--cron", "0 25 * * *", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"25", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1)


if __name__ == "__main__":
    unittest.main()
