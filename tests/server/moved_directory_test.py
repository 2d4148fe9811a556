"""A data directory that is renamed, replaced or removed under a running server, and a second server
on its path: each keeps its files to itself, and the first one notices it and ends."""

import contextlib
import os
import pathlib
import shutil
import threading
import time
import unittest

import daemon
from wire import TIMED_OUT, Closed

# Neither compresses nor stands among the entries of a table; 8 MiB of them are flushed.
_LARGE = os.urandom(60_000)
_LITTLE = ("--memory", "128M")


class MovedDirectoryTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.at = pathlib.Path(self.data)
        self.moved = pathlib.Path(self.folder) / "moved"

    def start(self, data) -> daemon.Server:
        server = daemon.carillon_serve(str(data), *_LITTLE).start()
        self.addCleanup(server.__exit__)
        server.connect().stats()
        return server

    def put(self, client, jobs: dict, tag: bytes, most: int = 400):
        """Puts `most` jobs, or until the server ends. Adds the acknowledged ones to `jobs`."""
        try:
            for n in range(most):
                body = tag + b"%d " % n + _LARGE
                reply = client.call(b"put 0 0 600 %d" % len(body), body)
                if reply.word == b"INSERTED":
                    jobs[reply.number()] = body
        except (Closed, OSError):
            pass

    def ask_until_it_ends(self, client):
        deadline = time.monotonic() + 20.0
        with self.assertRaises((Closed, OSError)):
            while time.monotonic() < deadline:
                client.stats()
                time.sleep(0.01)

    def assert_ended(self, server, *words: str):
        """The process ends by itself with 1, and its log says once why."""
        self.assertEqual(server.process.wait(20), 1, server.log())
        (line,) = [line for line in server.log().split("\n") if "critical" in line]
        for word in (f"data directory {self.at} has failed: its path leads to ", *words):
            self.assertIn(word, line)
        self.assertNotIn("/proc/", server.log())

    def assert_has(self, data, acknowledged: dict, tag: bytes, unanswered: int = 0):
        """A new server has them, and of others `unanswered` at the most, which are of `tag`."""
        client = self.start(data).connect()
        found = {}
        while (reply := client.call(b"reserve-with-timeout 0")) != TIMED_OUT:
            found[reply.number()] = reply.body
        self.assertEqual({job: found.get(job) for job in acknowledged}, acknowledged)
        self.assertLessEqual(len(found), len(acknowledged) + unanswered)
        self.assertTrue(all(body.startswith(tag) for body in found.values()))

    def test_a_second_server_on_its_path(self):
        for copied in (False, True):
            with self.subTest("a copy" if copied else "an empty directory"):
                shutil.rmtree(self.at, ignore_errors=True)
                shutil.rmtree(self.moved, ignore_errors=True)
                first = self.start(self.at)
                client = first.connect()
                jobs = {}
                self.put(client, jobs, b"", 200)
                more_of_first, more_of_second = {}, {}
                if copied:
                    self.assertEqual(first.terminate(), 0)
                    first = self.start(self.at)
                    client = first.connect()
                self.at.rename(self.moved)
                if copied:
                    shutil.copytree(self.moved, self.at)
                second = self.start(self.at)
                putting = threading.Thread(target=self.put, args=(client, more_of_first, b"first "))
                putting.start()
                self.put(second.connect(), more_of_second, b"second ")
                putting.join()
                self.ask_until_it_ends(client)
                self.assert_ended(first, f", which is {self.moved};")
                self.assertEqual(second.terminate(), 0)
                of_first = {**jobs, **more_of_first}
                of_second = {**(jobs if copied else {}), **more_of_second}
                self.assertEqual(len(more_of_second), 400)
                self.assert_has(self.moved, of_first, b"", unanswered=1)
                self.assert_has(self.at, of_second, b"" if copied else b"second ")
                if copied:
                    self.assertFalse(set(jobs) & (set(more_of_first) | set(more_of_second)))

    def test_a_directory_that_was_renamed_and_nothing_in_its_place(self):
        server = self.start(self.at)
        client = server.connect()
        jobs = {client.put(b"before"): b"before"}
        self.at.rename(self.moved)
        self.put(client, jobs, b"after ")
        self.ask_until_it_ends(client)
        self.assert_ended(
            server, f"leads to nothing now, and led to inode {self.moved.stat().st_ino}"
        )
        self.assertFalse(self.at.exists())
        self.assert_has(self.moved, jobs, b"", unanswered=1)

    def test_the_first_put_after_a_quiet_time_is_refused(self):
        """A server with nothing to do need not wake up to find out, but finds out in time."""
        server = self.start(self.at)
        client = server.connect()
        jobs = {client.put(b"before"): b"before"}
        self.at.rename(self.moved)
        time.sleep(1.2)  # it compares once a second
        with contextlib.suppress(Closed, OSError):  # if it had something to do
            self.assertEqual(client.call(b"put 0 0 60 5", b"later").line, b"INTERNAL_ERROR")
        self.assert_ended(server, "nothing now")
        self.assert_has(self.moved, jobs, b"", unanswered=1)

    def test_one_that_is_there_again_in_time_is_as_if_it_had_never_been_away(self):
        server = self.start(self.at)
        client = server.connect()
        jobs = {}
        self.at.rename(self.moved)
        self.moved.rename(self.at)
        self.put(client, jobs, b"", 300)
        self.assertEqual(len(jobs), 300)
        self.assertEqual(server.terminate(), 0)
        self.assert_has(self.at, jobs, b"")

    def test_a_path_through_a_link(self):
        self.moved.mkdir()
        self.at.symlink_to(self.moved)
        server = self.start(self.at)
        client = server.connect()
        jobs = {}
        self.put(client, jobs, b"", 300)
        self.assertEqual(len(jobs), 300)
        self.assertEqual(server.terminate(), 0)
        self.assert_has(self.moved, jobs, b"")


if __name__ == "__main__":
    unittest.main()
