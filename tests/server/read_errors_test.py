"""A disk that cannot be read for 2 s: no job is buried, lost or early, and the order is kept."""

import contextlib
import time
import unittest

import daemon
import failing_io
from wire import TIMED_OUT, Reply, said

_FAILED = said(b"INTERNAL_ERROR")
_OUTAGE_SECONDS = 2.0


@unittest.skipUnless(failing_io.library(), "needs calls that fail")
class ReadErrorsTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.faults = self.enterContext(contextlib.closing(failing_io.Faults()))
        self.environment = self.faults.environment

    def fill(self) -> dict:
        """Puts 20 000 ready jobs and stops the server: then all bodies are in files. Returns the
        bodies by (priority, id)."""
        server = self.start()
        client = server.connect()
        # Bodies of 8 000 bytes are in files of their own.
        bodies = [b"%08d" % n * (1_000 if n % 100 == 0 else 1) for n in range(20_000)]
        for n, body in enumerate(bodies):
            client.send(b"put %d 0 600 %d\r\n%s\r\n" % (n % 7, len(body), body))
        jobs = {(n % 7, client.reply().number()): body for n, body in enumerate(bodies)}
        self.assertEqual(server.terminate(), 0)
        return jobs

    def test_jobs_are_as_they_were_when_the_disk_can_be_read_again(self):
        jobs = self.fill()
        server = self.start()
        client = server.connect()
        rule = self.faults.fail("read", self.data + "/*", times=failing_io.FOR_EVER)
        until = time.monotonic() + _OUTAGE_SECONDS
        first = min(jobs)[1]
        while time.monotonic() < until:
            self.assertEqual(client.call(b"reserve-with-timeout 0"), _FAILED)
            self.assertEqual(client.call(b"reserve-job %d" % first), _FAILED)
            self.assertEqual(client.call(b"peek-ready"), _FAILED)
        self.assertGreater(rule.failed, 2)
        stats = client.stats(b"stats-tube default")
        self.assertEqual(
            [stats["current-jobs-" + state] for state in ("ready", "buried")], ["20000", "0"]
        )
        self.assertIn(f"job {first} cannot be handed out", server.log())
        rule.stop()

        client.send(b"reserve-with-timeout 0\r\n" * len(jobs))
        for (_, job), body in sorted(jobs.items()):
            self.assertEqual(client.reply(), Reply(b"RESERVED %d %d" % (job, len(body)), body))
        self.assertEqual(client.call(b"reserve-with-timeout 0"), TIMED_OUT)
        self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
