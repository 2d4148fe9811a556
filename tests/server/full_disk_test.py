"""A disk without any space left, whatever file meets it first: commands that need space are
answered INTERNAL_ERROR, nothing is lost, and the server goes on by itself when there is room.

(disk_space_test.py has what --min-free-disk does before it comes so far.)
"""

import contextlib
import errno
import functools
import random
import resource
import select
import time
import unittest

import daemon
from fault_case import BATCH, DELETED, FAILED, LARGE, FaultCase, put_until_it_fails
from failing_io import FOR_EVER

_UNFINISHED_SEGMENT = "*/data/jobs-*.new"
_FLUSHED = 180 << 20


class FullDiskTest(FaultCase):
    def put_when_there_is_room(self, server, body: bytes) -> int:
        """Puts a job as soon as the server takes one. Returns its id."""
        client = server.connect()
        deadline = time.monotonic() + 20.0
        while (reply := client.call(b"put 0 0 600 %d" % len(body), body)) == FAILED:
            self.assertLess(time.monotonic(), deadline, server.log())
            time.sleep(0.02)
        return reply.number()

    def test_no_room_for_a_segment_of_the_log(self):
        for calls in ("create", "write", "sync"):
            with self.subTest(calls):
                self.use_new_data()
                server = self.start()
                client = server.connect()
                jobs = {client.put(LARGE): LARGE}
                deleted = client.put(b"small")
                with self.faults.fail(calls, _UNFINISHED_SEGMENT, errno.ENOSPC, times=FOR_EVER):
                    # One at a time, and 16 blocks each: 15 of the 255 of a segment stay free. One
                    # that is full to its last block takes nothing more.
                    more = {}
                    body = b"large" * 12_800
                    put = (b"put 0 0 600 %d" % len(body), body)
                    while (reply := client.call(*put)) != FAILED:
                        more[reply.number()] = body
                        self.assertLess(len(more), 160, "10 MiB went into a few segments")
                    self.assertIn(".data cannot be made: No space left on device", server.log())
                    # What is left of the segment takes small changes.
                    self.assertEqual(client.call(b"delete %d" % deleted), DELETED)
                    self.assertEqual(client.call(b"peek %d" % deleted).word, b"NOT_FOUND")
                job = client.put(LARGE)
                self.assertEqual(server.terminate(), 0)
                self.assert_kept({**jobs, **more, job: LARGE}, [deleted])

    def test_a_limit_of_the_size_of_files(self):
        server = self.start()
        client = server.connect()
        jobs = {client.put(b"before"): b"before"}
        set_limit = functools.partial(resource.prlimit, server.process.pid, resource.RLIMIT_FSIZE)
        set_limit((1200 << 10, resource.RLIM_INFINITY))  # as `ulimit -Sf 1200`
        body = random.Random(1).randbytes(60_000)  # does not compress
        more, answer = put_until_it_fails(server.connect(), body, _FLUSHED)
        self.assertEqual(answer, FAILED)
        self.assertIn("File too large", server.log())
        set_limit((resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        jobs[self.put_when_there_is_room(server, b"after")] = b"after"
        self.assertEqual(server.terminate(), 0)
        self.assert_kept({**jobs, **more}, unanswered=BATCH)

    # A part of the write may be on the disk: as after any write that failed, the server ends.
    def test_a_limit_within_a_file_that_is_there(self):
        server = self.start()
        client = server.connect()
        jobs = {client.put(LARGE): LARGE for _ in range(5)}
        resource.prlimit(
            server.process.pid, resource.RLIMIT_FSIZE, (64 << 10, resource.RLIM_INFINITY)
        )
        self.assertEqual(client.call(b"put 0 0 600 5", b"never"), FAILED)
        self.assert_failed(server, r"/data/jobs-\d+\.data cannot be written", "File too large")
        self.assert_kept(jobs, unanswered=1)

    def test_no_room_for_a_file_of_the_state(self):
        for calls, path, error in (
            ("write", "*.sst", errno.ENOSPC),
            ("sync", "*.blob", errno.EDQUOT),
            ("write", "*.sst", errno.EFBIG),
            ("write", "*/MANIFEST-*", errno.ENOSPC),
            ("create", "*/MANIFEST-* *.sst", errno.ENOSPC),
        ):
            with self.subTest(f"{calls} {path} {errno.errorcode[error]}"):
                self.use_new_data()
                server = self.start()
                rules = [
                    self.faults.fail(calls, pattern, error, times=FOR_EVER)
                    for pattern in path.split()
                ]
                jobs, answer = put_until_it_fails(server.connect(), LARGE, _FLUSHED)
                self.assertEqual(answer, FAILED)
                client = server.connect()
                for job in sorted(jobs)[::100]:
                    self.assertEqual(client.call(b"peek %d" % job).body, LARGE)
                time.sleep(1.5)  # it has tried again
                self.assertEqual(client.call(b"put 0 0 60 5", b"never"), FAILED)
                for rule in rules:
                    rule.stop()
                jobs[self.put_when_there_is_room(server, b"after")] = b"after"
                self.assertEqual(server.terminate(), 0)
                self.assert_kept(jobs, unanswered=BATCH)

    def test_others_are_answered_while_it_goes_on(self):
        server = self.start()
        rule = self.faults.fail("write", "*.sst", errno.ENOSPC, times=FOR_EVER)
        jobs, answer = put_until_it_fails(server.connect(), LARGE, _FLUSHED)
        self.assertEqual(answer, FAILED)
        rule.stop()
        client = server.connect()
        with self.faults.fail("write", "*.sst", 0, times=FOR_EVER, holds=True) as slow:
            while slow.seen == 0:  # a put has it try again
                self.assertEqual(client.call(b"put 0 0 60 5", b"never"), FAILED)
            for job in sorted(jobs)[::100]:
                self.assertEqual(client.call(b"peek %d" % job).body, LARGE)
            self.assertEqual(client.call(b"put 0 0 60 5", b"never"), FAILED)
            backup = self.enterContext(contextlib.closing(server.http()))
            backup.request("POST", "/v1/checkpoint")
            client.stats()
            self.assertEqual(select.select([backup.sock], [], [], 0)[0], [])  # it waits
        self.assertEqual(backup.getresponse().status, 200)
        backup.close()
        jobs[self.put_when_there_is_room(server, b"after")] = b"after"
        self.assertEqual(server.terminate(), 0)
        self.assert_kept(jobs, unanswered=BATCH)

    def test_a_stop_and_a_start(self):
        server = self.start()
        rule = self.faults.fail("write", "*.sst", errno.ENOSPC, times=FOR_EVER)
        jobs, answer = put_until_it_fails(server.connect(), LARGE, _FLUSHED)
        self.assertEqual(answer, FAILED)
        self.assertEqual(server.terminate(), 0)  # all of it is in the log
        with self.assertRaises(daemon.StartFailed) as failed:
            self.launch_until_it_ends()
        self.assertIn("No space left on device", str(failed.exception))
        rule.stop()
        self.assert_kept(jobs, unanswered=BATCH)

    def launch_until_it_ends(self):
        """A server may listen for a moment before it has read its data."""
        server = self.launch()
        code = server.process.wait(20)
        raise daemon.StartFailed(f"exit code {code}: {server.log()}")


if __name__ == "__main__":
    unittest.main()
