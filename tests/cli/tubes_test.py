"""System tests of `carillon pause`, `resume`, `drain` and `tube`, for whole tubes."""

import json
import time
import unittest

from cli_case import CliCase


class TubesTest(CliCase):
    def pause(self):
        return self.stats("--tube", self.tube)["pause"]

    def test_pause_and_resume(self):
        self.put("x")
        self.assertEqual(
            self.carillon("pause", self.tube),
            f"paused tube {self.tube} until carillon resume {self.tube}\n",
        )
        self.assertEqual(self.pause(), 4294967295)
        self.assertEqual(self.carillon("resume", self.tube), f"resumed tube {self.tube}\n")
        self.assertEqual(self.pause(), 0)
        out = self.carillon("pause", self.tube, "9500ms")
        self.assertEqual(out, f"paused tube {self.tube} for 10.00s\n")
        self.assertEqual(self.pause(), 10)
        line = {"tube": self.tube, "pause_s": 60}
        self.assertEqual(json.loads(self.carillon("pause", self.tube, "1m", "--json")), line)
        line["pause_s"] = 0
        self.assertEqual(json.loads(self.carillon("resume", self.tube, "--json")), line)

    def test_a_tube_that_does_not_exist(self):
        for command in (("pause",), ("resume",), ("tube", "show")):
            self.fails(
                f"carillon {command[0]}: {self.no_such_tube('nowhere')}", *command, "nowhere"
            )

    def test_drain_makes_no_tube_of_a_name_that_was_mistyped(self):
        self.fails(
            f"carillon drain: {self.no_such_tube('mial')}; to drain it nevertheless: --create",
            *("drain", "mial"),
        )
        self.assertNotEqual(self.run_carillon("stats", "--tube", "mial").returncode, 0)
        self.assertEqual(
            self.carillon("drain", "mial", "--create"),
            "tube mial: 0 ready, 0 delayed, 0 reserved, 0 buried\n",
        )
        self.carillon("drain", "mial", "--end")
        self.fails(f"carillon drain: {self.no_such_tube('mial')}", "drain", "mial", "--end")

    def test_drain_refuses_puts_and_tells_what_is_left(self):
        self.put("x")
        self.put("--delay", "1h", "y")
        out = self.carillon("drain", self.tube)
        self.assertEqual(out, f"tube {self.tube}: 1 ready, 1 delayed, 0 reserved, 0 buried\n")
        address = f"127.0.0.1:{self.server.port}"
        self.fails(
            f"carillon put: {address} takes no new jobs: it is draining, or the tube is",
            *("put", "--tube", self.tube, "z"),
        )
        self.carillon("put", "--tube", self.tube + "2", "z")
        self.assertEqual(
            self.carillon("drain", self.tube, "--end"), f"tube {self.tube} takes jobs again\n"
        )
        self.put("z")

    def test_drain_waits_until_the_tube_is_empty(self):
        first, buried = self.put("x"), self.put("y")
        self.carillon("bury", buried)
        drain = self.start("drain", self.tube, "--wait", "--json")
        self.assertIn(b": 1 ready, 0 delayed, 0 reserved, 1 buried\n", drain.stderr.readline())
        self.carillon("delete", first)
        self.assertEqual(drain.wait(30), 0)
        self.assertEqual(
            json.loads(drain.stdout.read()),
            {
                "tube": self.tube,
                "puts": "refused",
                "ready": 0,
                "delayed": 0,
                "reserved": 0,
                "buried": 1,
            },
        )

    def test_a_setting_is_told(self):
        set_it = ("tube", "set", self.tube, "--max-running", "1")
        self.assertEqual(self.carillon(*set_it), f"set tube {self.tube}\n")
        told = {"tube": self.tube, "result": "set"}
        self.assertEqual(json.loads(self.carillon(*set_it, "--json")), told)

    def test_the_settings_of_a_tube(self):
        self.carillon("tube", "set", self.tube, "--rate", "5/1m", "--backoff", "1s..1h")
        self.carillon("tube", "set", self.tube, "--burst", "3", "--jitter", "20%")
        shown = json.loads(self.carillon("tube", "show", self.tube, "--json"))
        self.assertEqual(
            shown,
            {
                "name": self.tube,
                "current-jobs-ready": 0,
                "current-jobs-reserved": 0,
                "current-waiting": 0,
                "backoff-ms": 1000,
                "backoff-longest-ms": 3600000,
                "jitter-percent": 20,
                "rate": 5,
                "rate-period-ms": 60000,
                "burst": 3,
            },
        )
        options = ("--rate", "0", "--backoff", "0s", "--jitter", "0%")
        self.carillon("tube", "set", self.tube, *options)
        self.fails(f"carillon tube: {self.no_such_tube(self.tube)}", "tube", "show", self.tube)

    def test_puts_wait_for_the_rate_of_their_tube(self):
        self.carillon("tube", "set", self.tube, "--put-rate", "10/1s", "--put-burst", "3")
        begun = time.monotonic()
        for body in "abcd":
            self.put(body)
        lines = "".join(f"{n}\n" for n in range(10)).encode()
        ids = self.put("--batch", "--once", self.tube, body=lines).split()
        self.assertEqual(len(ids), 10)
        # 14 jobs, of which 3 had not to wait.
        self.assertGreater(time.monotonic() - begun, 1.0)
        self.assertEqual(self.put("--batch", "--once", self.tube, body=lines).split(), ids)
        shown = json.loads(self.carillon("tube", "show", self.tube, "--json"))
        self.assertEqual(shown["current-jobs-ready"], 14)
        self.assertEqual((shown["put-rate"], shown["put-rate-period-ms"]), (10, 1000))
        self.assertEqual(shown["put-burst"], 3)
        self.assertGreater(shown["total-puts-too-fast"], 0)
        self.carillon("tube", "set", self.tube, "--put-rate", "1/30d", "--put-burst", "1")
        self.run_carillon("put", "--tube", self.tube, "e")
        done = self.run_carillon("put", "--tube", self.tube, "f")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"takes no more jobs in this tube for now, by its put-rate", done.stderr)

    def test_a_put_says_that_it_waits_for_the_rate_of_its_tube(self):
        self.carillon("tube", "set", self.tube, "--put-rate", "1/1300ms", "--put-burst", "1")
        why = f"127.0.0.1:{self.server.port} takes no more jobs in this tube for now, by its"
        first = self.run_carillon("put", "--tube", self.tube, "a")
        self.assertEqual((first.returncode, first.stderr), (0, b""))
        lines = b"b\nc\n"
        done = self.run_carillon("put", "--batch", "--tube", self.tube, body=lines)
        self.assertEqual((done.returncode, done.stdout.count(b"\n")), (0, 2), done.stderr)
        self.assertRegex(done.stderr.decode(), rf"^waiting: {why} put-rate \(1\.\d\ds\)\n$")

    def test_the_settings_of_a_group(self):
        self.carillon("tube", "set", self.tube, "--group", "a", "--weight", "3")
        self.carillon("tube", "set", self.tube, "--group", "a", "--max-running", "2")
        shown = json.loads(self.carillon("tube", "show", self.tube, "--group", "a", "--json"))
        self.assertEqual(
            shown,
            {
                "group": "a",
                "tube": self.tube,
                "current-jobs-ready": 0,
                "current-jobs-reserved": 0,
                "weight": 3,
                "max-running": 2,
            },
        )
        options = ("--group", "a", "--weight", "1", "--max-running", "0")
        self.carillon("tube", "set", self.tube, *options)
        why = f"carillon tube: tube {self.tube} has no group a: nothing is set for it, and it has"
        self.fails(f"{why} no jobs", "tube", "show", self.tube, "--group", "a")

    def test_what_is_wrong_with_a_setting_is_named(self):
        for options, why in (
            (("--weight", "2"), "--weight needs a --group"),
            (("--group", "a", "--lost", "fails"), "--lost is not for a --group"),
            (("--group", "a"), "write what to set, as --max-running 10"),
            ((), "write what to set, as --max-running 10"),
            (("--rate", "5"), '--rate "5": 0, or a number in a duration, as 100/1m'),
            (("--max-running", "-1"), '--max-running "-1": not a number from 0 to 4294967295'),
        ):
            done = self.run_carillon("tube", "set", self.tube, *options)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(why, done.stderr.decode())
        done = self.run_carillon("tube", "show", self.tube, "--burst", "5")
        self.assertIn(b"--burst is for set", done.stderr)
        self.fails(
            "carillon tube: --burst needs a rate", "tube", "set", self.tube, "--burst", "5", code=2
        )


if __name__ == "__main__":
    unittest.main()
