"""The bodies of stats, stats-tube and stats-job: every field, in order, and what changes it."""

import os
import unittest

import daemon
from comparable import OWN_STATS
from protocol_case import Durable, InMemory, said
from wire import Reply

_STATS = (
    "current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed "
    "current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried "
    "cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore "
    "cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes "
    "cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs "
    "max-job-size current-tubes current-connections current-producers current-workers "
    "current-waiting total-connections pid version rusage-utime rusage-stime uptime "
    "binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written "
    "binlog-max-size draining id hostname os platform"
).split()
_STATS_TUBE = (
    "name current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed "
    "current-jobs-buried total-jobs current-using current-watching current-waiting cmd-delete "
    "cmd-pause-tube pause pause-time-left"
).split()
_STATS_JOB = (
    "id tube state pri age delay ttr time-left file reserves timeouts releases buries kicks".split()
)
_OWN = [] if daemon.stand_in() else list(OWN_STATS)


def _unquoted(text: str) -> str:
    """The string without its double quotes, which beanstalkd 1.13 writes and 1.12 does not."""
    if daemon.stand_in() and not text.startswith('"'):
        return text
    assert text[0] == text[-1] == '"', f"{text!r} is not in double quotes"
    return text[1:-1]


class _Stats:
    def test_the_form(self):
        self.c.send(b"stats-tube " + self.tube + b"\r\nlist-tubes-watched\r\n")
        for _ in range(2):
            body = self.c.reply().body
            self.assertEqual((body[:4], body[-1:], body.count(b"\r")), (b"---\n", b"\n", 0))

    def test_fields_of_stats(self):
        stats = self.c.stats()
        self.assertEqual(list(stats), _STATS + _OWN)
        self.assertRegex(stats["version"], r'^"\d+\.\d+')
        self.assertEqual(stats["pid"], str(self.server.process.pid))
        self.assertEqual(_unquoted(stats["hostname"]), os.uname().nodename)
        self.assertEqual(_unquoted(stats["os"]), os.uname().version)
        self.assertEqual(_unquoted(stats["platform"]), os.uname().machine)
        self.assertEqual(stats["draining"], "false")
        self.assertRegex(stats["id"], r"^[0-9a-f]{16}$")
        self.assertEqual(stats["max-job-size"], "65535")
        for name in ("rusage-utime", "rusage-stime"):
            self.assertRegex(stats[name], r"^\d+\.\d{6}$")
        for name in (
            _STATS[: _STATS.index("pid")]
            + ["uptime"]
            + [n for n in _STATS if n.startswith("binlog-")]
        ):
            self.assertRegex(stats[name], r"^\d+$", name)

    def test_fields_of_stats_tube(self):
        stats = self.tube_stats()
        self.assertEqual(list(stats), _STATS_TUBE)
        self.assertEqual(_unquoted(stats["name"]), self.tube.decode())
        self.assertEqual(
            [stats[k] for k in ("current-using", "current-watching", "current-waiting")],
            ["1", "1", "0"],
        )

    def test_fields_of_stats_job(self):
        job = self.c.put(b"x", 17, 100, 33)
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual(list(stats), _STATS_JOB)
        self.assertEqual(stats.pop("id"), str(job))
        self.assertEqual(_unquoted(stats.pop("tube")), self.tube.decode())
        self.assertIn(stats.pop("time-left"), ("99", "98"))
        self.assertRegex(stats.pop("file"), r"^\d+$")
        self.assertEqual(
            list(stats.values()), ["delayed", "17", "0", "100", "33", "0", "0", "0", "0", "0"]
        )

    def test_a_jobs_history_is_counted(self):
        job = b"%d" % self.c.put(b"x", 5, 0, 100)
        for command in (
            b"reserve",
            b"release %s 6 50",
            b"kick-job %s",
            b"reserve",
            b"bury %s 7",
            b"kick 1",
            b"reserve-job %s",
        ):
            self.c.call(command.replace(b"%s", job))
        stats = self.c.stats(b"stats-job " + job)
        self.assertEqual(
            {
                k: stats[k]
                for k in (
                    "state",
                    "pri",
                    "delay",
                    "reserves",
                    "timeouts",
                    "releases",
                    "buries",
                    "kicks",
                )
            },
            {
                "state": "reserved",
                "pri": "7",
                "delay": "50",
                "reserves": "3",
                "timeouts": "0",
                "releases": "1",
                "buries": "1",
                "kicks": "2",
            },
        )
        self.assertIn(stats["time-left"], ("99", "98"))

    def test_states_are_counted_per_tube(self):
        for pri, delay in ((0, 0), (1023, 0), (1024, 0), (2000, 0), (0, 100)):
            self.c.put(b"x", pri, delay)
        for command in (b"reserve", b"reserve"):
            self.c.call(command)
        last = self.c.put(b"x", 2**32 - 1)
        self.c.call(b"reserve-job %d" % last)
        self.assertEqual(self.c.call(b"bury %d 0" % last), said(b"BURIED"))
        stats = self.tube_stats()
        self.assertEqual(
            [
                stats["current-jobs-" + k]
                for k in ("urgent", "ready", "reserved", "delayed", "buried")
            ],
            ["0", "2", "2", "1", "1"],
        )
        self.assertEqual(stats["total-jobs"], "6")

    def test_every_command_has_a_counter(self):
        before = self.c.stats()
        self.assertEqual(self.c.call(b"peek-ready"), said(b"NOT_FOUND"))
        job = self.c.put(b"x", 0)
        for command, times in (
            (b"peek %d", 1), (b"peek-ready", 1), (b"peek-delayed", 2), (b"peek-buried", 3),
            (b"reserve", 1), (b"touch %d", 2), (b"release %d 0 0", 1),
            (b"reserve-with-timeout 0", 2), (b"bury %d 0", 1), (b"kick 1", 3), (b"stats-job %d", 2),
            (b"list-tubes", 1), (b"list-tube-used", 2), (b"list-tubes-watched", 1),
            (b"use default", 2), (b"watch default", 2), (b"ignore default", 3), (b"delete %d", 1),
        ):  # fmt: skip
            for _ in range(times):
                self.c.call(command.replace(b"%d", b"%d" % job))
        self.c.call(b"stats-tube default")
        self.c.call(b"pause-tube " + self.tube + b" 0")
        after = self.c.stats()
        moved = {
            k: int(after[k]) - int(before[k])
            for k in _STATS
            if k.startswith("cmd-") or k == "total-jobs"
        }
        self.assertEqual(
            moved,
            {
                "cmd-put": 1, "cmd-peek": 1, "cmd-peek-ready": 2, "cmd-peek-delayed": 2,
                "cmd-peek-buried": 3, "cmd-reserve": 1, "cmd-reserve-with-timeout": 2,
                "cmd-delete": 1, "cmd-release": 1, "cmd-use": 2, "cmd-watch": 2, "cmd-ignore": 3,
                "cmd-bury": 1, "cmd-kick": 3, "cmd-touch": 2, "cmd-stats": 1, "cmd-stats-job": 2,
                "cmd-stats-tube": 1, "cmd-list-tubes": 1, "cmd-list-tube-used": 2,
                "cmd-list-tubes-watched": 1, "cmd-pause-tube": 1, "total-jobs": 1,
            },
        )  # fmt: skip

    def test_producers_workers_and_waiting_workers(self):
        names = (
            "current-connections",
            "current-producers",
            "current-workers",
            "current-waiting",
            "total-connections",
        )
        before = self.c.stats()
        producer, worker = self.worker(), self.worker()
        producer.call(b"put 0 0 60 1", b"x")
        worker.call(b"reserve")
        worker.send(b"reserve\r\n")
        self.wait_until_waiting(1)
        after = self.c.stats()
        self.assertEqual([int(after[n]) - int(before[n]) for n in names], [2, 1, 1, 1, 2])
        worker.half_close()
        self.assertEqual(worker.reply(), Reply(b"TIMED_OUT", None))
        worker.wait_for_end()
        producer.half_close()
        producer.wait_for_end()
        final = self.c.stats()
        self.assertEqual([int(final[n]) - int(before[n]) for n in names], [0, 0, 0, 0, 2])


class InMemoryTest(_Stats, InMemory, unittest.TestCase):
    pass


class DurableTest(_Stats, Durable, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
