"""`carillon serve --stay-awake`: what the kernel is asked for while clients talk, and after; and that it says so if it may not ask."""

import os
import struct
import subprocess
import tempfile
import time
import unittest

import daemon

_DEVICE = "/dev/cpu_dma_latency"
_PATIENCE = 20.0  # seconds


def _may_ask() -> bool:
    return os.access(_DEVICE, os.R_OK | os.W_OK)


def _latency() -> int:
    """The shortest that anybody on this machine has asked for, in us."""
    with open(_DEVICE, "rb") as device:
        return struct.unpack("i", device.read(4))[0]


@unittest.skipIf(daemon.stand_in(), "a flag of Carillon's")
class StayAwakeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = directory.name

    @unittest.skipUnless(_may_ask(), f"{_DEVICE} may not be opened here")
    def test_while_clients_talk_and_no_longer(self):
        if _latency() == 0:
            self.skipTest("another program keeps the processors awake")
        with daemon.carillon_serve(self.data, "--stay-awake") as server:
            connection = server.connect()
            deadline = time.monotonic() + _PATIENCE
            seen = None
            while seen != 0 and time.monotonic() < deadline:  # it may have been withdrawn again before we look
                connection.put(b"x")
                seen = _latency()
            self.assertEqual(seen, 0)
            while _latency() == 0:
                self.assertLess(time.monotonic(), deadline, "still awake")
                time.sleep(0.002)
            connection.put(b"y")
            server.kill()
            self.assertNotEqual(_latency(), 0)

    @unittest.skipUnless(_may_ask(), f"{_DEVICE} may not be opened here")
    def test_without_the_flag_nothing_is_asked_for(self):
        before = _latency()
        with daemon.carillon_serve(self.data) as server:
            connection = server.connect()
            for _ in range(20):
                connection.put(b"x")
                self.assertEqual(_latency(), before)

    def test_who_may_not_ask_is_told(self):
        """As an ordinary user, or where there is no such device at all."""
        command = [daemon.carillon_path(), "serve", "--stay-awake", "--data", self.data]
        command += ["--listen", f"{daemon.HOST}:{daemon.free_port()}"]
        if _may_ask():
            if os.geteuid() != 0:
                self.skipTest("this user may ask")
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
            os.chmod(self.data, 0o777)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(_DEVICE, done.stderr)
        self.assertIn("--stay-awake", done.stderr)


if __name__ == "__main__":
    unittest.main()
