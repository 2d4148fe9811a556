"""A disk that fails: what clients are told, how the process ends, and what is there after that."""

import tempfile
import unittest

import daemon
import failing_io
from protocol_case import said
from wire import Reply

_FAILED = said(b"INTERNAL_ERROR")
_MODES = ("always", "50ms", "os")


@unittest.skipUnless(failing_io.library(), "needs calls that fail")
class LogTest(unittest.TestCase):
    """A write of the log fails: the command that needs it, and each later one, is answered
    INTERNAL_ERROR, and the process ends with 1. What was acknowledged before is there again."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = directory.name + "/data"
        self.faults = failing_io.Faults()
        self.addCleanup(self.faults.close)

    def start(self, *flags: str) -> daemon.Server:
        server = daemon.carillon_serve(self.data, *flags, environment=self.faults.environment)
        server.start()
        self.addCleanup(server.__exit__)
        return server

    def test_one_failed_write_ends_the_process(self):
        for mode in _MODES:
            with self.subTest(mode):
                server = self.start("--sync", mode)
                client = server.connect()
                job = client.put(b"before")
                rule = self.faults.fail("write", "*/data/log-*")
                self.assertEqual(client.call(b"put 0 0 60 5", b"never"), _FAILED)
                self.assertEqual(server.process.wait(5), 1)
                self.assertEqual(rule.failed, 1)
                self.assertIn("Input/output error", server.log())

                server = self.start("--sync", mode)
                client = server.connect()
                reply = client.call(b"reserve-with-timeout 0")
                self.assertEqual(reply, Reply(b"RESERVED %d 6" % job, b"before"))
                self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"))
                self.assertEqual(client.call(b"reserve-with-timeout 0").word, b"TIMED_OUT")
                self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
