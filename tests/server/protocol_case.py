"""Base classes of the literal protocol tests: each test class has a server, each test a tube and a
connection.

BEANSTALKD_ORACLE=1 runs them against Debian's beanstalkd.
"""

import tempfile
import time

import daemon
from wire import Reply


def said(line: bytes) -> Reply:
    """A reply without a body."""
    return Reply(line, None)


BAD_FORMAT = said(b"BAD_FORMAT")
NOT_FOUND = said(b"NOT_FOUND")
UNKNOWN_COMMAND = said(b"UNKNOWN_COMMAND")
TIMED_OUT = said(b"TIMED_OUT")


class OnOneServer:
    """Each test has a tube of its own, so one server can serve them all. To be mixed with
    unittest.TestCase."""

    @classmethod
    def setUpClass(cls):
        cls._directory = tempfile.TemporaryDirectory()
        cls.server = cls.make_server(cls._directory.name).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls._directory.cleanup()

    def setUp(self):
        self.tube = self._testMethodName.encode()
        self.c = self.worker()

    def worker(self):
        """A connection that uses and watches this test's tube only."""
        c = self.server.connect()
        self.assertEqual(c.call(b"use " + self.tube), said(b"USING " + self.tube))
        self.assertEqual(c.call(b"watch " + self.tube), said(b"WATCHING 2"))
        self.assertEqual(c.call(b"ignore default"), said(b"WATCHING 1"))
        return c

    def check(self, sent: bytes, *replies: Reply) -> None:
        self.c.send(sent)
        self.assertEqual([self.c.reply() for _ in replies], list(replies), sent[:200])

    def reserved(self, connection) -> int:
        reply = connection.reply()
        self.assertEqual(reply.word, b"RESERVED", reply)
        return reply.number()

    def tube_stats(self) -> dict:
        return self.c.stats(b"stats-tube " + self.tube)

    def wait_until_waiting(self, count: int) -> None:
        """Waits until the server's stats say that this many workers wait on this test's tube."""
        deadline = time.monotonic() + 20.0
        while (waiting := self.tube_stats()["current-waiting"]) != str(count):
            self.assertLess(time.monotonic(), deadline, f"{waiting} wait, {count} should")


class InMemory(OnOneServer):
    @staticmethod
    def make_server(directory: str):
        return daemon.subject_in_memory()


class Durable(OnOneServer):
    @staticmethod
    def make_server(directory: str):
        return daemon.subject_durable(directory)
