"""Carillon's own verbs on the beanstalk port: put-ms, put-at, release-ms and
reserve-with-timeout-ms."""

import time
import unittest

from protocol_case import BAD_FORMAT, NOT_FOUND, TIMED_OUT, Durable, InMemory, said
from wire import Reply

_NOT_MILLISECONDS = said(b"NOT_MILLISECONDS")
_OUT_OF_RANGE = said(b"OUT_OF_RANGE")
_YEAR_9999_END_MS = 253402300799999
_LARGEST = 2**64 - 1


class _OwnVerbs:
    def put_with(self, line: bytes, body: bytes = b"x") -> int:
        reply = self.c.call(line + b" %d" % len(body), body)
        self.assertEqual(reply.word, b"INSERTED", (line, reply))
        return reply.number()

    def test_put_ms(self):
        job = self.put_with(b"put-ms 5 40000 120000", b"hello")
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual(
            [stats[k] for k in ("state", "pri", "delay", "ttr")], ["delayed", "5", "40", "120"]
        )
        self.assertIn(stats["time-left"], ("39", "38"))
        self.assertEqual(self.c.call(b"peek %d" % job).body, b"hello")

    def test_put_ms_without_a_delay_is_ready(self):
        job = self.put_with(b"put-ms 0 0 60000")
        self.assertEqual(
            self.c.call(b"reserve-with-timeout 0"), Reply(b"RESERVED %d 1" % job, b"x")
        )

    def test_put_at_in_the_past_is_ready_at_once(self):
        for due in (0, 1, time.time_ns() // 1_000_000 - 1):
            job = self.put_with(b"put-at 0 %d 60000" % due)
            self.assertEqual(
                self.c.call(b"reserve-with-timeout 0"), Reply(b"RESERVED %d 1" % job, b"x")
            )

    def test_put_at_in_the_future(self):
        job = self.put_with(b"put-at 0 %d 60000" % (time.time_ns() // 1_000_000 + 40_000))
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual(stats["state"], "delayed")
        self.assertIn(stats["time-left"], ("39", "38"))

    def test_put_at_in_seconds_is_refused(self):
        for due in (10**9, int(time.time()) + 60, 31_535_999_999):
            # The body is read before the answer, whatever is in it.
            self.check(
                b"put-at 0 %d 60000 14\r\nlist-tube-used\r\n" % due,
                _NOT_MILLISECONDS,
            )
        self.check(b"list-tube-used\r\n", said(b"USING " + self.tube))
        for due in (10**9 - 1, 31_536_000_000):
            self.put_with(b"put-at 0 %d 60000" % due)
        self.assertEqual(self.tube_stats()["current-jobs-ready"], "2")

    def test_the_ttr_of_put_at_is_in_milliseconds(self):
        job = self.put_with(b"put-at 0 0 120999")
        self.assertEqual(self.c.stats(b"stats-job %d" % job)["ttr"], "120")

    def test_a_ttr_below_a_second_becomes_a_second(self):
        for ttr in (0, 1, 999):
            for line in (b"put-ms 0 0 %d" % ttr, b"put-at 0 0 %d" % ttr):
                job = self.put_with(line)
                self.assertEqual(self.c.stats(b"stats-job %d" % job)["ttr"], "1")

    def test_the_last_millisecond_of_the_year_9999(self):
        job = self.put_with(b"put-at 0 %d 60000" % _YEAR_9999_END_MS)
        self.assertEqual(self.c.stats(b"stats-job %d" % job)["state"], "delayed")
        self.assertEqual(self.c.call(b"reserve-with-timeout 0"), TIMED_OUT)
        for due in (_YEAR_9999_END_MS + 1, 2**63, _LARGEST):
            self.assertEqual(self.c.call(b"put-at 0 %d 60000 1" % due, b"x"), _OUT_OF_RANGE)
        self.assertEqual(self.tube_stats()["total-jobs"], "1")

    def test_a_delay_beyond_the_year_9999_is_refused(self):
        for delay in (_YEAR_9999_END_MS, 2**63, _LARGEST - 1, _LARGEST):
            self.assertEqual(self.c.call(b"put-ms 0 %d 60000 1" % delay, b"x"), _OUT_OF_RANGE)
        self.put_with(b"put-ms 0 %d 60000" % (200_000_000_000_000))  # about the year 8300
        self.assertEqual(self.c.call(b"reserve-with-timeout 0"), TIMED_OUT)

    def test_out_of_range_is_answered_after_the_body(self):
        self.check(b"put-ms 0 %d 60000 14\r\nlist-tube-used\r\n" % _LARGEST, _OUT_OF_RANGE)
        self.check(b"list-tube-used\r\n", said(b"USING " + self.tube))

    def test_release_ms(self):
        job = self.put_with(b"put-ms 0 0 60000")
        self.c.call(b"reserve")
        self.check(b"release-ms %d 9 40000\r\n" % job, said(b"RELEASED"))
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual(
            [stats[k] for k in ("state", "pri", "delay", "releases")], ["delayed", "9", "40", "1"]
        )
        self.check(b"release-ms %d 0 0\r\n" % job, NOT_FOUND)

    def test_release_ms_out_of_range_leaves_the_job_reserved(self):
        job = self.put_with(b"put-ms 3 0 60000")
        self.c.call(b"reserve")
        for delay in (_YEAR_9999_END_MS, _LARGEST):
            self.check(b"release-ms %d 9 %d\r\n" % (job, delay), _OUT_OF_RANGE)
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual([stats[k] for k in ("state", "pri", "releases")], ["reserved", "3", "0"])
        self.check(b"touch %d\r\n" % job, said(b"TOUCHED"))
        self.check(b"release-ms %d 9 0\r\n" % job, said(b"RELEASED"))

    def test_reserve_with_timeout_ms(self):
        job = self.c.put(b"x")
        self.check(b"reserve-with-timeout-ms 100\r\n", Reply(b"RESERVED %d 1" % job, b"x"))
        self.check(b"reserve-with-timeout-ms 0\r\n", TIMED_OUT)

    def test_bodies_are_as_in_put(self):
        for verb in (b"put-ms 0 0 60000 ", b"put-at 0 0 60000 "):
            self.check(
                verb + b"65536\r\n" + b"z" * 65536 + b"\r\nlist-tube-used\r\n",
                said(b"JOB_TOO_BIG"),
                said(b"USING " + self.tube),
            )

    def test_behind_a_put_that_is_malformed_nothing_is_read(self):
        for line in (
            b"put-ms ", b"put-ms 0 0 60000", b"put-ms 4294967296 0 60000 1", b"put-ms 0 -1 60000 1",
            b"put-ms 0 18446744073709551616 60000 1", b"put-ms 0 0 18446744073709551616 1",
            b"put-ms 0 0 60000 1x", b"put-ms 0 1.5 60000 1", b"put-at 0 x 60000 1",
            b"put-at 0 -1 60000 1", b"put-at 0 18446744073709551616 60000 1",
            b"put-at 0 0 60000 1 x", b"put-job one",
        ):  # fmt: skip
            with self.subTest(line), self.worker() as client:
                client.send(line + b"\r\nuse stolen\r\n")
                self.assertEqual(client.reply(), BAD_FORMAT)
                self.assertEqual(client.wait_for_end(), b"")
        for line in (b"put-ms 0 0 60000 5", b"put-at 0 0 60000 5", b"put-job 5"):
            with self.subTest(line), self.worker() as client:
                client.send(line + b"\r\nhelloXYuse stolen\r\n")
                self.assertEqual(client.reply(), said(b"EXPECTED_CRLF"))
                self.assertEqual(client.wait_for_end(), b"")

    def test_malformed(self):
        job = b"%d" % self.c.put(b"x")
        for line in (
            b"release-ms " + job, b"release-ms " + job + b" 0", b"release-ms " + job + b" 0 -1",
            b"release-ms " + job + b" 0 18446744073709551616",
            b"release-ms " + job + b" 4294967296 0", b"reserve-with-timeout-ms ",
            b"reserve-with-timeout-ms x", b"reserve-with-timeout-ms -1",
            b"reserve-with-timeout-ms 18446744073709551616",
        ):  # fmt: skip
            self.check(line + b"\r\n", BAD_FORMAT)
        self.check(b"put-ms   7   0   60000   1\r\nx\r\n")
        self.assertEqual(self.c.reply().word, b"INSERTED")


class InMemoryTest(_OwnVerbs, InMemory, unittest.TestCase):
    pass


class DurableTest(_OwnVerbs, Durable, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
