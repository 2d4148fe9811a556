"""Base class of tests in which system calls of the durable server fail (failing_io.py)."""

import errno
import tempfile
import unittest

import daemon
import failing_io
from wire import TIMED_OUT, Closed, said

FAILED = said(b"INTERNAL_ERROR")
DELETED = said(b"DELETED")

# So large that it does not stand among the entries of a table, but in a blob file.
LARGE = b"large" * 12_000

BATCH = 8

# With the least memory the state is flushed after 8 MiB of changes, and not after 64.
_LITTLE = ("--memory", "128M")


@unittest.skipUnless(failing_io.library(), "the library does not work in this build")
class FaultCase(daemon.DataCase):
    def setUp(self):
        self.faults = failing_io.Faults()
        self.addCleanup(self.faults.close)
        self.use_new_data()

    def use_new_data(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = directory.name + "/data"

    def launch(self, *flags: str) -> daemon.Server:
        """A server on self.data, which listens and may not have read its data yet."""
        environment = self.faults.environment
        server = daemon.carillon_serve(self.data, *_LITTLE, *flags, environment=environment)
        self.addCleanup(server.__exit__)
        return server.start()

    def start(self, *flags: str) -> daemon.Server:
        """The same, when it serves."""
        server = self.launch(*flags)
        with server.connect() as client:
            client.stats()
        return server

    def start_compaction(self, calls: str, error: int = errno.EIO):
        """A server that compacts tables, and holds at the first of these calls on a table, to fail
        with `error`. Returns the server, the rule and the jobs. Mostly the server begins when it
        starts, but the one before may have compacted while it ended: then other tables are made."""
        for _ in range(10):
            self.use_new_data()
            jobs = self._make_tables()
            rule = self.faults.fail(calls, self.data + "/*.sst", error, holds=True)
            server = self.start()
            try:
                rule.wait("seen", seconds=3.0)
                return server, rule, jobs
            except AssertionError:
                rule.stop()
                server.kill()
        raise AssertionError("no server has compacted when it started")

    def _make_tables(self) -> dict:
        """So many tables with keys in the same range that some are compacted at the next start.
        Returns the jobs."""
        jobs = []
        for _ in range(4):
            server = self.start()
            client = server.connect()
            if jobs:
                self.assertEqual(client.call(b"delete %d" % jobs.pop(-2)), DELETED)
            jobs += [client.put(b"small"), client.put(b"small")]
            self.assertEqual(server.terminate(), 0)
        return {job: b"small" for job in jobs}

    def assert_failed(self, server: daemon.Server, path: str, why: str = "Input/output error"):
        """The process ends by itself with 1, and its log says once what failed, with its path."""
        self.assertEqual(server.process.wait(20), 1, server.log())
        lines = [line for line in server.log().split("\n") if "critical" in line]
        self.assertEqual(len(lines), 1, server.log())
        self.assertRegex(lines[0], path)
        self.assertIn(why, lines[0])

    def assert_kept(self, acknowledged: dict, deleted=(), unanswered: int = 0):
        """A new server has all of `acknowledged` (id to body), and none of `deleted`. It may also
        have jobs of the `unanswered` puts: the number of puts without an answer, or with
        INTERNAL_ERROR when the store failed. Deletes all of them."""
        server = self.start()
        client = server.connect()
        found = {}
        while (reply := client.call(b"reserve-with-timeout 0")) != TIMED_OUT:
            found[reply.number()] = reply.body
            self.assertEqual(client.call(b"delete %d" % reply.number()), DELETED)
        self.assertFalse(set(found) & set(deleted))
        self.assertLessEqual(len(set(found) - set(acknowledged)), unanswered)
        self.assertEqual({job: found.get(job) for job in acknowledged}, acknowledged)
        self.assertEqual(server.terminate(), 0)


def put_until_it_fails(client, body: bytes, bytes_at_most: int):
    """Puts jobs, BATCH of them at a time. Returns those that were acknowledged (id to body), and
    the first answer that was no acknowledgement: None if the server closed the connection without
    one. A later put of the same batch may be acknowledged: it can be small enough for the room that
    is left."""
    acknowledged = {}
    batch = (b"put 0 0 600 %d\r\n%s\r\n" % (len(body), body)) * BATCH
    for _ in range(bytes_at_most // len(batch)):
        refused = []
        try:
            client.send(batch)
            for _ in range(BATCH):
                reply = client.reply()
                if reply.word == b"INSERTED":
                    acknowledged[reply.number()] = body
                else:
                    refused.append(reply)
        except (Closed, OSError):
            refused.append(None)
        if refused:
            return acknowledged, refused[0]
    raise AssertionError(f"no put of {bytes_at_most} bytes failed")
