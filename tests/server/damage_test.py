"""A bit that is flipped in a file of a stopped server: the next one hands out all other jobs, and
its log says what is damaged, also what no client has met."""

import os
import unittest
import urllib.request
from typing import Optional

import daemon
from wire import TIMED_OUT

_JOBS = 5_000
_PATIENCE_SECONDS = 60


class DamageTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        with daemon.carillon_serve(self.data) as server:
            client = server.connect()
            for n in range(_JOBS):
                client.send(b"put 0 0 60 8\r\n%08d\r\n" % n)
            self.ids = [client.reply().number() for _ in range(_JOBS)]
            client.close()
            self.assertEqual(server.terminate(), 0)  # so the jobs are in files

    def flip(self, family: bytes, at: Optional[int] = None) -> str:
        """Flips a bit in the family's largest table, which was written long ago: in its middle, or
        `at` this byte."""
        tables = []
        for name in os.listdir(self.data):
            path = os.path.join(self.data, name)
            with open(path, "rb") as file:
                if name.endswith(".sst") and b"name" + family in file.read():
                    tables.append((os.path.getsize(path), path))
        size, path = max(tables)
        at = size // 2 if at is None else at
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 1]))
        os.utime(path, (0, 0))
        return path

    def await_log(self, server: daemon.Server, text: str) -> None:
        self.wait_until(lambda: text in server.log(), server.log, _PATIENCE_SECONDS)

    def test_the_jobs_behind_a_damaged_block_are_handed_out(self):
        self.flip(b"index")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "0"))
        client = server.connect()
        got = []
        while True:
            reply = client.call(b"reserve-with-timeout 3")
            if reply == TIMED_OUT:
                break
            if reply.word == b"RESERVED":
                got.append(reply.number())
        self.assertEqual(len(got), len(set(got)))
        self.assertEqual(got, sorted(got))
        self.assertGreater(len(got), _JOBS - 500)
        self.assertLess(len(got), _JOBS)
        self.assertEqual(got[-1], self.ids[-1])
        self.assertRegex(
            server.log(),
            r"not all jobs from tube default due at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
            r"to tube default due at \d{4}-",
        )
        self.assertIn("is gone around from now on", server.log())

    def test_a_file_that_a_scan_goes_around_counts_at_once(self):
        self.flip(b"index")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "1"))
        http = f"http://{daemon.HOST}:{server.http_port()}"
        server.ask("GET", "/v1/tubes/default/jobs?page_size=1000")
        self.await_log(server, "is gone around from now on")
        with urllib.request.urlopen(f"{http}/metrics") as answer:
            self.assertIn(b"\ncarillon_damaged_files 1\n", answer.read())

    def test_an_export_in_which_jobs_are_missing_fails(self):
        self.flip(b"index")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "0"))
        at = ("--server", f"{daemon.HOST}:{server.port}", "--out", self.data + ".jsonl")
        missing = "jobs of tube default may be missing: a file of the server is damaged"
        done = daemon.run_carillon("export", *at)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(missing, done.stderr)
        self.assertIn("carillon check --data DIR --salvage NEW", done.stderr)
        again = daemon.run_carillon("export", "--resume", *at)
        self.assertEqual(again.returncode, 1, again)
        self.assertIn(missing, again.stderr)
        self.assertNotIn("is whole already", again.stderr)

    def test_lists_and_changes_say_that_damage_hides_jobs(self):
        self.flip(b"index")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "0"))
        pages, url = [], "/v1/tubes/default/jobs?page_size=1000"
        while not pages or (token := pages[-1]["next_page_token"]):
            pages.append(server.ask("GET", url + (f"&page_token={token}" if pages else ""))[1])
        self.assertLess(sum(len(page["jobs"]) for page in pages), _JOBS)
        self.assertTrue(any(page.get("incomplete") for page in pages))
        self.assertNotIn("incomplete", pages[-1])
        cancel = {"filter": {"tube": "default"}, "dry_run": True}
        self.assertTrue(server.ask("POST", "/v1/jobs:cancel", cancel)[1]["incomplete"])
        listed = daemon.run_carillon(
            "list", "default", "--all", "--server", f"{daemon.HOST}:{server.port}"
        )
        self.assertIn("jobs of tube default may be missing", listed.stderr)

    def test_a_list_says_each_time_that_damage_hides_the_first_jobs(self):
        self.flip(b"index", at=100)
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "0"))
        at = ("--server", f"{daemon.HOST}:{server.port}")
        missing = "jobs of tube default may be missing"
        for _ in range(3):
            self.assertIn(missing, daemon.run_carillon("list", "default", *at).stderr)
            counted = daemon.run_carillon("clear", "default", "--all", "--dry-run", *at)
            self.assertEqual(counted.returncode, 1, counted)
            self.assertIn(missing, counted.stderr)
            self.assertGreater(int(counted.stdout), _JOBS - 500)

    def test_an_export_with_a_damaged_body_is_not_whole_later(self):
        self.flip(b"bodies")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "0"))
        at = ("--server", f"{daemon.HOST}:{server.port}", "--out", self.data + ".jsonl")
        done = daemon.run_carillon("export", *at)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("is not in it: its body is damaged", done.stderr)
        self.assertNotIn("may be missing", done.stderr)
        again = daemon.run_carillon("export", "--resume", *at)
        self.assertEqual(again.returncode, 1, again)
        self.assertIn("is not in it: its body is damaged", again.stderr)
        self.assertNotIn("is whole already", again.stderr)

    def test_the_scrubber_finds_what_no_client_has_met(self):
        path = self.flip(b"bodies")
        server = self.enterContext(daemon.carillon_serve(self.data, "--scrub", "100M"))
        self.await_log(server, f"the file {path} is damaged: ")


if __name__ == "__main__":
    unittest.main()
