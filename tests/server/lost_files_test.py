"""Files of the log that are gone, or of a copy of the directory, when a server starts that was
killed: it is refused in one line, changes nothing, and serves when the right file is back."""

import contextlib
import os
import struct
import unittest

import daemon
from wire import TIMED_OUT


class LostFilesTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.copy = self.folder + "/copy"

    def put_and_kill(self, data: str, *bodies: bytes) -> list:
        """Returns the ids. Each server begins a new file of the log with its first put."""
        with daemon.carillon_serve(data) as server:
            client = server.connect()
            ids = [client.put(body) for body in bodies]
            server.kill()
        return ids

    def serials(self, data: str) -> dict:
        """The paths of the log's files, by serial number; 0: it was not used yet."""
        paths = {}
        for name in os.listdir(data):
            if name.startswith("jobs-") and name.endswith(".data"):
                with open(f"{data}/{name}", "rb") as file:
                    paths[struct.unpack_from("<Q", file.read(80), 48)[0]] = f"{data}/{name}"
        return paths

    def newest(self, data: str) -> str:
        return max(self.serials(data).items())[1]

    def bytes_of(self, data: str) -> dict:
        """All but those of a segment that was not ready."""
        files = {}
        for name in sorted(os.listdir(data)):
            if name.endswith((".data", ".sst", ".blob")):
                with open(f"{data}/{name}", "rb") as file:
                    files[name] = file.read()
        return files

    def assert_refused(self, data: str, what: str) -> None:
        before = self.bytes_of(data)
        server = daemon.carillon_serve(data)
        self.addCleanup(server.__exit__)
        with contextlib.suppress(daemon.StartFailed):  # it may listen for a moment
            server.start()
        self.assertEqual(server.process.wait(20), 1, server.log())
        lines = [line for line in server.log().split("\n") if "the log's" in line]
        self.assertEqual(len(lines), 1, server.log())
        self.assertRegex(lines[0], what)
        self.assertIn(f"carillon check --data {data} --salvage NEW", lines[0])
        self.assertEqual(self.bytes_of(data), before)

    def bodies(self, data: str) -> list:
        with daemon.carillon_serve(data) as server:
            client = server.connect()
            bodies = []
            while (reply := client.call(b"reserve-with-timeout 0")) != TIMED_OUT:
                bodies.append(reply.body)
            self.assertEqual(server.terminate(), 0)
        return bodies

    def test_the_newest_file_is_gone(self):
        self.put_and_kill(self.data, b"one", b"two")
        newest = self.newest(self.data)
        self.assertGreater(len(self.serials(self.data)), 1)
        os.rename(newest, newest + ".away")
        self.assert_refused(self.data, "newest file is gone: .*newest.data says that it is jobs-")
        os.rename(newest + ".away", newest)
        self.assertEqual(self.bodies(self.data), [b"one", b"two"])

    def test_check_tells_it_and_a_salvage_takes_the_rest(self):
        self.put_and_kill(self.data, b"one")
        self.put_and_kill(self.data, b"two")
        os.remove(self.newest(self.data))
        checked = daemon.run_carillon("check", "--data", self.data)
        self.assertEqual(checked.returncode, 2, checked.stdout)
        self.assertIn("the log's newest file is gone", checked.stdout)
        salvaged = daemon.run_carillon("check", "--data", self.data, "--salvage", self.copy)
        self.assertEqual(salvaged.returncode, 1, salvaged.stdout)
        self.assertIn("the log's newest file is gone", salvaged.stdout)
        self.assertIn("and those behind it may be lost", salvaged.stdout)
        self.assertEqual(self.bodies(self.copy), [b"one"])


if __name__ == "__main__":
    unittest.main()
