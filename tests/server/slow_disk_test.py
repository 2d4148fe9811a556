"""Bodies on a slow disk: only the clients that wait for them wait, and no job is lost meanwhile."""

import contextlib
import statistics
import time
import unittest

import daemon
import failing_io
from wire import Reply, said

_READ_MS = 200  # each read of a file
_JOBS = 200
_FAILED = said(b"INTERNAL_ERROR")


@unittest.skipUnless(failing_io.library(), "needs calls that take long")
class SlowDiskTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.faults = self.enterContext(contextlib.closing(failing_io.Faults()))
        self.environment = self.faults.environment

    def start_with_bodies_in_files(self) -> daemon.Server:
        server = self.start()
        client = server.connect()
        for n in range(_JOBS):
            client.put(b"%0200d" % n, ttr=1 if n == 0 else 60)
        self.assertEqual(server.terminate(), 0)
        return self.start()

    def hold_reads(self) -> failing_io.Rule:
        return self.faults.fail("read", self.data + "/*", 0, times=failing_io.FOR_EVER, holds=True)

    def test_other_clients_are_served_while_bodies_are_read(self):
        server = self.start_with_bodies_in_files()
        worker, other = server.connect(), server.connect()
        for line in (b"use memory", b"watch memory", b"ignore default"):
            other.call(line)
        rule = self.faults.fail(
            "read", self.data + "/*", 0, times=failing_io.FOR_EVER, takes_ms=_READ_MS
        )
        worker.send(b"reserve\r\nlist-tube-used\r\n" * _JOBS)
        took = []
        while rule.seen < 5:
            for command in (b"put 0 0 60 1\r\nx", b"reserve", b"stats-tube memory"):
                began = time.monotonic()
                self.assertNotEqual(other.call(command), _FAILED)
                took.append(time.monotonic() - began)
        rule.stop()
        self.assertGreater(len(took), 50)
        # A busy machine may stop the server for a while now and then, but each read has not.
        self.assertLess(statistics.median(took), 0.010)
        self.assertLess(statistics.quantiles(took, n=10)[-1], _READ_MS / 2e3)
        for n in range(_JOBS):
            self.assertEqual(worker.reply(), Reply(b"RESERVED %d 200" % (n + 1), b"%0200d" % n))
            self.assertEqual(worker.reply(), said(b"USING default"))

    def test_nobody_waits_while_a_file_of_the_log_is_made(self):
        server = self.start()
        putting, other = server.connect(), server.connect()
        for _ in range(10):
            putting.put(b"x" * 60_000)
        rule = self.faults.fail(
            "sync", "*/data/jobs-*.new", 0, times=failing_io.FOR_EVER, takes_ms=2_000
        )
        putting.send((b"put 0 0 60 60000\r\n" + b"y" * 60_000 + b"\r\n") * 60)  # three files
        rule.wait("seen")
        longest = 0.0
        while rule.failed < 2:
            began = time.monotonic()
            other.call(b"stats-tube default")
            longest = max(longest, time.monotonic() - began)
        rule.stop()
        self.assertLess(longest, 1.0)
        for _ in range(60):
            self.assertEqual(putting.reply().word, b"INSERTED")

    def test_sigterm_while_a_body_is_read(self):
        server = self.start_with_bodies_in_files()
        clients = [server.connect() for _ in range(3)]
        rule = self.hold_reads()
        for client in clients:
            client.send(b"reserve\r\n")
        rule.wait("seen")
        server.process.terminate()
        for client in clients:
            self.assertEqual(client.wait_for_end(), b"")
        rule.stop()
        self.assertEqual(server.process.wait(20), 0)
        client = self.start().connect()
        client.send(b"reserve-with-timeout 0\r\n" * _JOBS)
        self.assertEqual([client.reply().number() for _ in range(_JOBS)], list(range(1, _JOBS + 1)))


if __name__ == "__main__":
    unittest.main()
