"""System tests of `carillon list`, `due`, `retry`, `move`, `clear`, and `cancel` with a filter."""

import datetime
import json
import re
import socket
import time
import unittest

from cli_case import CliCase


def moment(utc_ms):
    """Returns RFC 3339."""
    at = datetime.datetime.fromtimestamp(utc_ms / 1000, datetime.timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ListsTest(CliCase):
    def put(self, *arguments, tube=None):
        return self.carillon("put", "--tube", tube or self.tube, *arguments).split()[0]

    def listed(self, *arguments):
        lines = self.carillon("list", self.tube, "--json", *arguments).splitlines()
        return [json.loads(line) for line in lines]

    def count(self, *arguments):
        return int(self.carillon(*arguments))

    def test_list_shows_jobs_by_due_time(self):
        self.put("--delay", "2h", "later")
        self.put("--delay", "1h", "--key", "näher", "sooner")
        self.put("now")
        states = [job["state"] for job in self.listed()]
        self.assertEqual(states, ["ready", "delayed", "delayed"])
        self.assertEqual([job.get("key") for job in self.listed()], [None, "näher", None])
        self.assertEqual(len(self.listed("--state", "delayed", "--due-before", "90m")), 1)
        table = self.carillon("list", self.tube).splitlines()
        self.assertEqual(table[0].split(), ["ID", "STATE", "DUE", "PRI", "TRIES", "BYTES", "KEY"])
        self.assertRegex(
            table[2], r"^ +\d+  delayed   \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z .*näher$"
        )

    def test_nothing_of_a_key_is_obeyed_by_a_terminal(self):
        csi, bidi = "k\u009b2J", "k\u202e"
        job = self.put("--delay", "1h", "--key", csi, "x")
        self.put("--delay", "2h", "--key", bidi, "x")
        with self.server.connect() as c:
            c.call(b"use " + self.tube.encode())
            c.call(b"put-job 1 delay=3h key=k\xff group=\xff", b"x")
        last = str(int(job) + 2)
        unseen = "k\u00ad\u200b\u2028\ufeff\U000e0041"
        self.put("--delay", "4h", "--key", unseen, "x")
        table = self.carillon("list", self.tube).splitlines()
        self.assertEqual(
            [line.split()[-1] for line in table[1:]],
            ["k\\u009B2J", "k\\u202E", "a/8=", r"k\u00AD\u200B\u2028\uFEFF\uDB40\uDC41"],
        )
        raw = self.carillon("list", self.tube, "--json")
        self.assertNotRegex(raw, "[\u0080-\u009f\u00ad\u200b\u2028\u202e\ufeff\U000e0041]")
        self.assertEqual([job.get("key") for job in self.listed()], [csi, bidi, None, unseen])
        done = self.run_carillon("peek", job)
        self.assertIn(b", key k\\u009B2J\n", done.stderr)
        self.assertIn(b", group \\xFF, key k\\xFF\n", self.run_carillon("peek", last).stderr)
        shown = json.loads(self.carillon("peek", last, "--json"))
        self.assertEqual((shown["key_base64"], shown["group_base64"]), ("a/8=", "/w=="))
        self.assertIn("k\\u009B2J\n", self.carillon("stats", "--job", job))
        self.assertEqual(self.stats("--job", job)["key"], csi)

    def test_list_goes_over_pages(self):
        for _ in range(7):
            self.put("--delay", "1h", "x")
        self.assertEqual(len(self.listed("--all")), 7)
        self.assertEqual(len(self.listed("--limit", "5")), 5)
        done = self.run_carillon("list", self.tube, "--limit", "5")
        self.assertIn(b"there are more jobs", done.stderr)

    def test_jobs_of_a_group(self):
        jobs = [self.put("--group", group, "--delay", "1h", "x") for group in "aab"]
        self.assertEqual([job["group"] for job in self.listed("--group", "a")], ["a", "a"])
        shown = json.loads(self.carillon("peek", "--json", jobs[0]))
        self.assertEqual((shown["group"], shown["tube"]), ("a", self.tube))
        self.assertEqual(self.count("clear", self.tube, "--group", "a"), 2)
        self.assertEqual(len(self.listed()), 1)

    def test_list_shows_the_groups_of_a_tube(self):
        for group in ("a", "b", "b"):
            self.put("--group", group, "--delay", "1h", "x")
        self.carillon("tube", "set", self.tube, "--group", "b", "--weight", "3", "--rate", "5/1m")
        table = self.carillon("list", self.tube, "--groups").splitlines()
        self.assertEqual(
            [line.split() for line in table],
            [
                "READY RESERVED DELAYED BURIED WEIGHT RUNNING RATE GROUP".split(),
                ["0", "0", "1", "0", "1", "-", "-", "a"],
                ["0", "0", "2", "0", "3", "-", "5/60000ms", "b"],
            ],
        )
        groups = [json.loads(line) for line in self.carillon(
            "list", self.tube, "--groups", "--json", "--all").splitlines()]  # fmt: skip
        self.assertEqual([(one["group"], one["delayed"]) for one in groups], [("a", 1), ("b", 2)])
        done = self.run_carillon("list", self.tube, "--groups", "--limit", "1")
        self.assertIn(b"there are more groups", done.stderr)
        self.fails("carillon list: write the TUBE, too", "list", "--groups", code=2)
        self.fails(
            "carillon list: --groups goes with no filter of jobs",
            "list", self.tube, "--groups", "--state", "ready", code=2,
        )  # fmt: skip

    def test_list_shows_tubes(self):
        self.put("--delay", "1h", "x")
        lines = self.carillon("list").splitlines()
        self.assertEqual(lines[0].split(), ["READY", "RESERVED", "DELAYED", "BURIED", "TUBE"])
        self.assertIn(["0", "0", "1", "0", self.tube], [line.split() for line in lines])
        tubes = [json.loads(line) for line in self.carillon("list", "--json").splitlines()]
        self.assertIn(
            {"ready": 0, "reserved": 0, "delayed": 1, "buried": 0, "tube": self.tube}, tubes
        )

    def test_list_and_show_say_which_tubes_are_paused_and_drained(self):
        self.put("--delay", "1h", "x")
        self.carillon("pause", self.tube)
        self.carillon("drain", self.tube)
        self.assertIn(f"  {self.tube} (paused) (drained)\n", self.carillon("list"))
        tubes = [json.loads(line) for line in self.carillon("list", "--json").splitlines()]
        (tube,) = [tube for tube in tubes if tube["tube"] == self.tube]
        shown = json.loads(self.carillon("tube", "show", self.tube, "--json"))
        for told in (tube, shown):
            self.assertEqual((told["paused"], told["puts"]), ("yes", "refused"))

    def test_counts_of_what_was_changed_as_json(self):
        jobs = [self.put("--delay", "1h", "--key", key, "x") for key in "abcd"]

        def told(*arguments):
            return json.loads(self.carillon(*arguments, "--json"))

        tube = {"tube": self.tube}
        self.assertEqual(told("kick", "--tube", self.tube), {**tube, "kicked": 1})
        self.assertEqual(told("kick", "--job", jobs[3]), {"id": int(jobs[3]), "kicked": 1})
        self.assertEqual(told("delete", jobs[0]), {"id": int(jobs[0]), "result": "deleted"})
        key = {**tube, "key": "b", "result": "cancelled"}
        self.assertEqual(told("cancel", "--tube", self.tube, "--key", "b"), key)
        other = self.tube + "-2"
        moved = told("move", self.tube, other, "--key-prefix", "c")
        self.assertEqual(moved, {**tube, "moved": 1, "left": 0})
        self.assertEqual(told("retry", other, "--all"), {"tube": other, "retried": 0, "left": 0})
        cancelled = told("cancel", "--tube", other, "--state", "delayed")
        self.assertEqual(cancelled, {"tube": other, "cancelled": 1, "left": 0})
        self.assertEqual(told("clear", self.tube, "--all"), {**tube, "deleted": 1, "left": 0})

    def test_cancel_and_clear_by_filter(self):
        for i in range(5):
            self.put("--delay", "1h", "--key", f"a{i}", "x")
            self.put("--delay", "1h", "--key", f"b{i}", "x")
        arguments = ["cancel", "--tube", self.tube, "--key-prefix", "a"]
        self.assertEqual(self.count(*arguments, "--dry-run"), 5)
        self.assertEqual(self.count(*arguments), 5)
        self.assertEqual(self.count(*arguments), 0)
        self.assertEqual(self.count("clear", self.tube, "--all"), 5)
        self.fails(
            f"carillon clear: {self.no_such_tube(self.tube)}",
            "clear",
            self.tube,
            "--all",
        )

    def test_how_many_jobs_are_left_and_why(self):
        worker = self.server.connect()
        for left, held, key in (("1", "it", "its"), ("2", "them", "their")):
            worker.call(f"reserve-job {self.put('x')}".encode())
            for command, why in (
                (("clear",), f"deleted: a worker holds {held}"),
                (
                    ("move", self.tube + "-to"),
                    f"moved: a worker holds {held}, or a job of the other tube has {key} key",
                ),
            ):
                arguments = (command[0], self.tube, *command[1:], "--all", "--dry-run")
                done = self.run_carillon(*arguments)
                self.assertEqual(done.stderr.decode(), f"{left} cannot be {why}\n")

    def test_move(self):
        job = self.put("--delay", "1h", "x")
        before = self.job(job)
        self.assertEqual(self.count("move", self.tube, self.tube + "-to", "--all"), 1)
        after = self.job(job)
        self.assertEqual(after["tube"], self.tube + "-to")
        self.assertEqual((after["state"], after["reserves"]), ("delayed", 0))
        self.assertAlmostEqual(after["time-left"], before["time-left"], delta=30)

    def test_spread_deals_a_storm_out(self):
        storm = int(time.time() * 1000) + 3_600_000
        for _ in range(20):
            self.put("--at", moment(storm + 30_000), "x")
        window = ["--due-after", moment(storm), "--due-before", moment(storm + 60_000)]
        spread = ["spread", self.tube, *window, "--over", "20m"]
        self.assertIn(self.count(*spread, "--dry-run"), (18, 19, 20))
        self.assertIn(self.count(*spread), (18, 19, 20))
        self.assertEqual(self.count(*spread), 0)
        dues = [job["due"] for job in self.listed()]
        self.assertGreaterEqual(dues[0], moment(storm))
        self.assertLess(dues[-1], moment(storm + 1_200_000))
        self.assertGreater(dues[-1], moment(storm + 1_000_000))
        self.fails(
            "carillon spread: say which jobs, by --due-after and --due-before",
            *f"spread {self.tube} --over 1h".split(),
            code=2,
        )

    def test_retry_the_dead(self):
        job = self.put("--max-attempts", "1", "x")
        self.kill(job)
        self.assertEqual(self.job(job)["dead"], "attempts")
        table = self.carillon("list", self.tube, "--state", "dead").splitlines()
        self.assertEqual(table[1].split()[1], "dead")
        self.assertEqual(self.count("retry", self.tube, "--state", "dead", "--dry-run"), 1)
        self.assertEqual(self.count("retry", self.tube, "--state", "dead"), 1)
        self.assertEqual(self.job(job)["state"], "ready")

    def kill(self, job):
        """Lets the only attempt of a ready job fail."""
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            replies = connection.makefile("rb")
            connection.sendall(b"reserve-job %d\r\n" % int(job))
            size = int(replies.readline().split()[2])
            replies.read(size + 2)
            connection.sendall(b"fail-job %d 2\r\nno\r\n" % int(job))
            self.assertEqual(replies.readline(), b"DEAD 1\r\n")

    def test_due(self):
        for minutes in (90, 91, 200):
            self.put("--delay", f"{minutes}m", "x")
        picture = self.carillon("due", self.tube, "--by", "hour", "--spans", "12").splitlines()
        self.assertEqual(picture[0], "0 due, 3 delayed, 0 buried")
        self.assertTrue(picture[-1].startswith("later"))
        jobs = [int(re.split(r"  +", line)[1]) for line in picture[1:-1]]
        self.assertEqual(sum(jobs), 3)
        lines = self.carillon("due", self.tube, "--by", "hour", "--json").splitlines()
        self.assertEqual(json.loads(lines[-1])["delayed"], 3)

    def test_what_is_wrong_is_said_in_a_line(self):
        self.put("--delay", "1h", "x")
        self.fails(
            "carillon clear: say which jobs, by --state, --group, --key-prefix, --due-after, "
            "--due-before or --reason; or --all",
            "clear",
            self.tube,
            code=2,
        )
        self.fails(
            'carillon list: --state "late": delayed, ready, reserved, buried or dead',
            *f"list {self.tube} --state late".split(),
            code=2,
        )
        self.fails("carillon list: write the TUBE, too", "list", "--state", "ready", code=2)
        self.fails(
            "carillon move: the two tubes are the same",
            *f"move {self.tube} {self.tube} --all".split(),
            code=2,
        )


if __name__ == "__main__":
    unittest.main()
