"""System tests of `carillon put`: bodies, due times and JSON."""

import datetime
import json
import time
import unittest

from cli_case import SLACK, CliCase, daemon


def _utc(seconds_from_now, offset_hours=0):
    """Returns a time in RFC 3339 with microseconds and the given offset from UTC."""
    zone = datetime.timezone(datetime.timedelta(hours=offset_hours))
    moment = datetime.datetime.now(zone) + datetime.timedelta(seconds=seconds_from_now)
    return moment.isoformat(timespec="microseconds")


class PutTest(CliCase):
    def body_of(self, job_id):
        return self.run_carillon("peek", job_id).stdout

    def test_the_body_is_the_argument_byte_for_byte(self):
        for body in (
            "hello",
            "",
            "two words\n",
            "[1,2]",
            "%%",
            "stats",
            "put",
            "naïve ☃",
            '"quoted"',
            "a=b",
            "{}",
        ):
            self.assertEqual(self.body_of(self.put(body)), body.encode(), body)

    def test_a_body_may_start_with_a_dash_after_a_double_dash(self):
        self.assertEqual(self.body_of(self.put("--", "--json")), b"--json")
        self.assertEqual(self.body_of(self.put("-5")), b"-5")

    def test_the_body_is_standard_input_without_an_argument_or_with_a_dash(self):
        body = bytes(range(256)) + b"\r\n\n"
        self.assertEqual(self.body_of(self.put(body=body)), body)
        self.assertEqual(self.body_of(self.put("-", body=body)), body)
        self.assertEqual(self.body_of(self.put("-", body=b"")), b"")

    def test_nothing_is_not_put(self):
        done = self.run_carillon("put", "--tube", self.tube, body=b"")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"standard input is empty, and there is no BODY", done.stderr)

    def test_a_key_makes_a_put_safe_to_repeat(self):
        first = self.put("--key", "invoice-7", "--delay", "1h", "a")
        again = self.run_carillon("put", "--tube", self.tube, "--key", "invoice-7", "b")
        self.assertEqual((again.returncode, again.stdout.decode()), (0, f"{first}\n"))
        self.assertEqual(
            again.stderr.decode(),
            f"job {first} has the key, and is delayed: nothing was put\n",
        )
        self.assertEqual(self.body_of(first), b"a")
        replaced = self.put("--key", "invoice-7", "--on-conflict", "replace", "c")
        self.assertEqual((replaced, self.body_of(first)), (first, b"c"))
        as_json = json.loads(self.put("--json", "--key", "invoice-7", "d"))
        self.assertEqual(
            as_json, {"id": int(first), "tube": self.tube, "result": "exists", "state": "ready"}
        )

    def test_a_key_tells_whether_its_job_will_run(self):
        self.carillon("cancel", self.put("--key", "k", "--key-window", "1h", "--delay", "1h", "x"))
        first = self.put("--key", "k", "--key-window", "1h", "x")
        rests = (
            "has the key, and is buried: nothing was put, and no worker gets that job; see "
            f"--on-conflict replace, or carillon kick --job {first}"
        )
        for command, why in (
            (None, "has the key, and is ready: nothing was put"),
            ("bury", rests),
            ("kick", "has the key, and is ready: nothing was put"),
            (
                "delete",
                "had the key and is done, and its --key-window is not over: nothing was put",
            ),
        ):
            if command:
                self.carillon(command, *(["--job"] if command == "kick" else []), first)
            done = self.run_carillon("put", "--tube", self.tube, "--key", "k", "y")
            self.assertEqual((done.returncode, done.stdout.decode()), (0, first + "\n"))
            self.assertEqual(done.stderr.decode(), f"job {first} {why}\n")

    def test_a_key_of_a_job_whose_cancel_was_asked_for_fails_the_put(self):
        first = self.put("--key", "k", "x")
        with self.server.connect() as worker:
            self.assertEqual(worker.call(b"reserve-job %s" % first.encode()).word, b"RESERVED")
            self.carillon("cancel", "--ask", first)
            self.fails(
                f"carillon put: job {first} has the key, and a worker holds it: nothing was put",
                *("put", "--tube", self.tube, "--key", "k", "y"),
            )
        self.assertNotEqual(self.put("--key", "k", "y"), first)

    def test_a_token_that_may_not_read_learns_the_state_of_its_key(self):
        tokens = str(self.directory / "tokens")
        token = self.carillon("token", "new", "--name", "p", "--scope", "put", "--file", tokens)
        data = str(self.directory / "data")
        with daemon.carillon_serve(data, "--tokens", tokens) as server:
            address = f"{daemon.HOST}:{server.port}"
            environment = self.environment(CARILLON_SERVER=address, CARILLON_TOKEN=token.strip())
            for errors in (b"", b"job 1 has the key, and is ready: nothing was put\n"):
                done = self.run_carillon("put", "--key", "k", "x", env=environment)
                self.assertEqual((done.stdout, done.stderr), (b"1\n", errors))

    def test_a_policy_for_failed_attempts(self):
        stats = self.job(self.put("--max-attempts", "5", "--backoff", "1s..1h", "x"))
        self.assertEqual((stats["max-attempts"], stats["backoff-longest-ms"]), (5, 3600000))
        stats = self.job(self.put("--max-attempts", "2", "--lost", "fails", "x"))
        self.assertEqual(stats["lost"], "fails")
        stats = self.job(self.put("--max-attempts", "2", "--lost", "returns", "x"))
        self.assertNotIn("lost", stats)
        self.assertEqual(self.run_carillon("put", "--lost", "stays", "x").returncode, 2)

    def test_attributes_are_kept(self):
        kept = {"traceparent": "00-1", "metadata": {"a b": 7}}
        job_id = self.put("--attributes", json.dumps(kept), "x")
        listed = json.loads(self.carillon("list", self.tube, "--json").splitlines()[0])
        self.assertEqual([listed["id"], listed["attributes"]], [int(job_id), kept])
        self.fails(
            "carillon put: --attributes: not a JSON object",
            *"put --attributes 7 x".split(),
            code=2,
        )

    def test_a_job_that_expires(self):
        stats = self.job(self.put("--expires-in", "1h", "--at-expiry", "dead", "x"))
        self.assertEqual(stats["at-expiry"], "dead")
        self.assertIn("expires-at", stats)
        self.assertEqual(self.job(self.put("--spread", "1s", "x"))["state"], "delayed")

    def test_options_that_are_wrong_are_named(self):
        for arguments, what in (
            (("--at-expiry", "dead"), "at-expiry: needs --expires-in or --expires-at"),
            (("--on-conflict", "replace"), "on-conflict: needs --key"),
            (("--key", "k", "--on-conflict", "x"), 'on-conflict: "x": reject, ignore,'),
            (("--jitter", "5"), 'jitter: "5": not 0% to 100%'),
            (("--key", "two words"), '--key "two words": is empty, or has a space'),
        ):
            done = self.run_carillon("put", *arguments, "x")
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(what, done.stderr.decode())

    def test_a_batch_puts_each_line(self):
        lines = "".join(f"line {n}\n" for n in range(2500)) + "\nthe last one"
        ids = self.put("--batch", "--pri", "7", body=lines.encode()).split()
        self.assertEqual(len(ids), 2501)
        self.assertEqual(self.body_of(ids[1700]), b"line 1700")
        self.assertEqual(self.body_of(ids[2500]), b"the last one")
        self.assertEqual(self.job(ids[0])["pri"], 7)
        self.assertEqual(self.carillon("delete", *ids).count("deleted"), 2501)

    def test_a_batch_with_a_token_is_put_once(self):
        lines = "".join(f"{n}\n" for n in range(1500)).encode()
        first = self.put("--batch", "--once", "import-7", body=lines)
        self.assertEqual(self.put("--batch", "--once", "import-7", body=lines), first)
        done = self.run_carillon("put", "--batch", "--once", "import-7", body=b"other\n")
        self.assertIn(b'line 1: other jobs were put with the token "import-7/1"', done.stderr)

    def test_a_batch_that_was_put_into_another_tube_is_told_so(self):
        first = self.put("--batch", "--once", "zz", body=b"a\nb\n").split()
        other = ("put", "--batch", "--once", "zz", "--tube", self.tube + "2")
        done = self.run_carillon(*other, "--json", body=b"a\nb\n")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(lines, [{"id": int(job), "result": "already"} for job in first])
        self.assertEqual(
            done.stderr.decode(),
            "lines 1 to 2: put before with this token; nothing was put now\n",
        )

    def test_a_batch_has_no_key(self):
        why = (
            "--key is for one job, and --batch puts a job for each line; use --once TOKEN to put "
            "the lines once however often that is tried, or give each job a key of its own in "
            'lines for carillon import - such as {"key":"invoice-7","body":"remind"}'
        )
        for key in (("--key", "k"), ("--pri", "3", "--group", "g", "--key", "k")):
            self.fails(f"carillon put: {why}", "put", "--batch", *key, body=b"a\n", code=2)
        self.put("--batch", "--group", "no-key=k", body=b"a\n")
        line = b'{"tube":"%s","key":"invoice-7","body":"remind"}\n' % self.tube.encode()
        self.carillon("import", "-", body=line)
        self.assertIn("remind", self.carillon("peek", "--key", "invoice-7", "--tube", self.tube))

    def test_a_batch_that_is_refused_names_its_lines(self):
        lines = b"a\n" * 1000 + b"b\n" + b"c" * 70_000 + b"\n"
        done = self.run_carillon("put", "--tube", self.tube, "--batch", body=lines)
        self.assertEqual((done.returncode, done.stdout.count(b"\n")), (1, 1000))
        why = b"job 2: the body has 70000 bytes, more than the server takes"
        self.assertIn(b"lines 1001 to 1002: nothing was put: " + why, done.stderr)
        self.assertEqual(self.put("--batch", body=b"\n\n"), "")

    def test_the_largest_body_and_one_more_byte(self):
        self.assertEqual(len(self.body_of(self.put(body=b"x" * 65535))), 65535)
        self.fails(
            "carillon put: the body has 65536 bytes; "
            f"the limit of {daemon.HOST}:{self.server.port} is 65535, "
            "see carillon serve --max-job-size",
            "put",
            body=b"x" * 65536,
        )

    def test_priority_ttr_and_delay_reach_the_job(self):
        job = self.job(self.put("--pri", "5", "--ttr", "1m30s", "--delay", "40d", "x"))
        self.assertEqual((job["pri"], job["ttr"], job["delay"]), (5, 90, 40 * 86400))
        job = self.job(self.put("x"))
        self.assertEqual((job["pri"], job["ttr"], job["delay"]), (65536, 60, 0))

    def test_a_delay_of_milliseconds(self):
        before = time.monotonic()
        self.put("--delay", "250ms", "x")
        after = time.monotonic()
        self.carillon("reserve", "--tube", self.tube, "--delete")
        reserved = time.monotonic()
        self.assertGreaterEqual(reserved, before + 0.25)
        self.assertLess(reserved, after + 0.25 + SLACK)

    def test_an_absolute_time_in_any_offset(self):
        for offset in (0, 2, -8):
            due = time.time() + 0.7
            self.put("--at", _utc(0.7, offset), "x")
            self.carillon("reserve", "--tube", self.tube, "--delete", "--timeout", "30s")
            reserved = time.time()
            self.assertGreaterEqual(reserved, due)
            self.assertLess(reserved, due + SLACK)

    def test_a_time_in_the_past_is_now(self):
        self.put("--at", "1999-12-31T23:59:59Z", "x")
        self.carillon("reserve", "--tube", self.tube, "--timeout", "0")
        self.put("--at", "1970-01-01T00:00:00Z", "y")
        self.assertEqual(
            self.carillon("reserve", "--tube", self.tube, "--timeout", "0", "--delete"), "x"
        )
        self.assertEqual(
            self.carillon("reserve", "--tube", self.tube, "--timeout", "0", "--delete"), "y"
        )

    def test_json_of_a_time_in_the_past_is_now(self):
        for past in ("2020-01-01T00:00:00Z", "1970-01-01T00:00:00Z"):
            before = time.time()
            put = json.loads(self.carillon("put", "--json", "--at", past, "--tube", self.tube, "x"))
            due = datetime.datetime.fromisoformat(put["due"].replace("Z", "+00:00")).timestamp()
            self.assertGreaterEqual(due, before - 0.001)  # written in whole milliseconds
            self.assertLessEqual(due, time.time())

    def test_json_of_a_delay(self):
        before = time.time()
        put = json.loads(self.carillon("put", "--json", "--delay", "40d", "--tube", self.tube, "x"))
        after = time.time()
        self.assertEqual(list(put), ["id", "tube", "due"])
        self.assertEqual((type(put["id"]), put["tube"]), (int, self.tube))
        self.assertRegex(put["due"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        due = datetime.datetime.fromisoformat(put["due"].replace("Z", "+00:00")).timestamp()
        self.assertGreaterEqual(due, before + 40 * 86400 - 0.001)  # written in whole milliseconds
        self.assertLessEqual(due, after + 40 * 86400)

    def test_json_of_a_spread_has_the_due_time_of_the_server(self):
        for options in (
            ("--spread", "10h"),
            ("--delay", "1h", "--spread", "10h"),
            ("--delay", "1h"),
        ):
            put = json.loads(self.put("--json", *options, "x"))
            shown = json.loads(self.carillon("peek", str(put["id"]), "--json"))
            self.assertEqual(put["due"], shown["due"])

    def test_json_of_a_time(self):
        put = json.loads(
            self.carillon(
                "put", "--json", "--at", "2130-01-01T09:00:00.25+02:00", "--tube", self.tube, "x"
            )
        )
        self.assertEqual(put["due"], "2130-01-01T07:00:00.250Z")

    def test_a_due_time_after_the_year_9999_is_refused(self):
        line = "carillon put: the job would be due after the year 9999; the server refused it"
        self.fails(line, "put", "--tube", self.tube, "--delay", "4000000d", "x")
        self.fails(line, "put", "--tube", self.tube, "--delay", "106751991167d", "x")
        self.put("--at", "9999-12-31T23:59:59.999Z", "x")
        self.assertEqual(self.stats("--tube", self.tube)["total-jobs"], 1)

    def test_a_time_outside_of_1970_to_9999_is_refused(self):
        for at in ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00"):
            line = (
                f'carillon put: --at "{at}": a time is from 1970-01-01T00:00:00Z to '
                "9999-12-31T23:59:59.999Z"
            )
            self.fails(line, "put", "--tube", self.tube, "--at", at, "x", code=2)

    def test_a_due_time_in_1970_is_refused(self):
        line = (
            "carillon put: the job would be due in 1970; the server refused it, because seconds "
            "that are taken for milliseconds look like that"
        )
        self.fails(line, "put", "--tube", self.tube, "--at", "1970-01-21T17:13:20Z", "x")


if __name__ == "__main__":
    unittest.main()
