"""`carillon serve --stay-awake`: what the kernel is asked for while clients talk, and after; and
that it says so if it may not ask."""

import fcntl
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


def _holds_device(pid: int) -> bool:
    links = f"/proc/{pid}/fd"
    return any(os.readlink(os.path.join(links, fd)) == _DEVICE for fd in os.listdir(links))


@unittest.skipIf(daemon.stand_in(), "a flag of Carillon's")
class StayAwakeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = directory.name

    def wait_until(self, what: str, holds) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"not {what}")
            time.sleep(0.0005)

    @unittest.skipUnless(_may_ask(), f"{_DEVICE} may not be opened here")
    def test_while_clients_talk_and_no_longer(self):
        device = open(_DEVICE, "rb")
        self.addCleanup(device.close)
        fcntl.flock(
            device, fcntl.LOCK_EX
        )  # the machine has one latency, and other copies of this test may run
        if _latency() == 0:
            self.skipTest("another program keeps the processors awake")
        with daemon.carillon_serve(self.data, "--stay-awake") as server:
            connection = server.connect()
            self.assertTrue(_holds_device(server.process.pid))

            def awake_after_a_put() -> bool:
                connection.put(b"x")
                return _latency() == 0

            self.wait_until("awake", awake_after_a_put)
            self.wait_until("asleep", lambda: _latency() != 0)
            self.wait_until("awake", awake_after_a_put)
            server.kill()
            self.wait_until("asleep", lambda: _latency() != 0)

    def test_without_the_flag_nothing_is_asked_for(self):
        with daemon.carillon_serve(self.data) as server:
            server.connect().put(b"x")
            self.assertFalse(_holds_device(server.process.pid))

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
