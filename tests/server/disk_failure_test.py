"""A disk that fails: what clients are told, how the process ends, and what is there after that.

One failed write is enough: whatever file it meets, the commands that were not answered are answered
INTERNAL_ERROR, and the process ends with 1. All that was acknowledged before is there again.
"""

import pathlib
import random
import signal
import time
import unittest

from fault_case import BATCH, FAILED, LARGE, FaultCase, put_until_it_fails
from failing_io import FOR_EVER
from wire import Closed

_MODES = ("always", "50ms", "os")
_LOG = "*/data/jobs-*.data"
_UNFINISHED_SEGMENT = "*/data/jobs-*.new"
# By then the state has tried to write its files: from 160 MiB on puts wait for that.
_FLUSHED = 180 << 20


class LogTest(FaultCase):
    def test_a_failed_write(self):
        for mode in _MODES:
            with self.subTest(mode):
                self.use_new_data()
                server = self.start("--sync", mode)
                client = server.connect()
                job = client.put(b"before")
                rule = self.faults.fail("write", _LOG)
                self.assertEqual(client.call(b"put 0 0 60 5", b"never"), FAILED)
                self.assert_failed(server, "/data/jobs-[0-9]+.data cannot be written")
                self.assertEqual(rule.failed, 1)
                self.assert_kept({job: b"before"})

    def test_a_failed_write_of_which_segment_is_the_newest(self):
        for mode in _MODES:
            with self.subTest(mode):
                self.use_new_data()
                server = self.start("--sync", mode)
                job = server.connect().put(b"before")
                server.kill()
                server = self.start("--sync", mode)
                rule = self.faults.fail("write", "*/data/newest.data")
                self.assertEqual(server.connect().call(b"put 0 0 60 5", b"never"), FAILED)
                self.assert_failed(server, "/data/newest.data cannot be written")
                self.assertEqual(rule.failed, 1)
                self.assert_kept({job: b"before"})

    def test_a_failed_sync_after_the_replies(self):
        server = self.start("--sync", "50ms")
        client = server.connect()
        jobs = {client.put(b"first"): b"first"}
        rule = self.faults.fail("sync", _LOG)
        jobs[client.put(b"second")] = b"second"
        rule.wait()
        self.assert_failed(server, "/data/jobs-[0-9]+.data cannot be synced")
        self.assert_kept(jobs)

    def test_every_command_that_is_not_answered_is_told(self):
        for mode in _MODES:
            with self.subTest(mode):
                self.use_new_data()
                server = self.start("--sync", mode)
                clients = [server.connect() for _ in range(3)]
                jobs = {client.put(b"before"): b"before" for client in clients}
                held = clients[0].call(b"reserve").number()
                rule = self.faults.fail("write", _LOG, holds=True)
                for client in clients:
                    more = b"delete %d\r\nstats-job %d\r\n" % (held, held)
                    client.send(b"put 0 0 60 5\r\nnever\r\n" + more)
                rule.wait("seen")
                rule.release()
                # What the server has not read by then is not answered. Those who do not hold the
                # job may not be told that it is not there.
                ends = [client.wait_for_end() for client in clients]
                self.assertIn(b"INTERNAL_ERROR\r\n" * 3, ends)
                self.assertEqual({end.replace(b"INTERNAL_ERROR\r\n", b"") for end in ends}, {b""})
                self.assert_failed(server, "/data/jobs-")
                self.assert_kept(jobs)

    def test_sigterm_while_the_write_is_under_way(self):
        for mode in _MODES:
            with self.subTest(mode):
                self.use_new_data()
                server = self.start("--sync", mode)
                client = server.connect()
                job = client.put(b"before")
                rule = self.faults.fail("write", _LOG, holds=True)
                client.send(b"put 0 0 60 5\r\nnever\r\n")
                rule.wait("seen")
                server.process.send_signal(signal.SIGTERM)
                rule.release()
                self.assertEqual(client.reply(), FAILED)
                self.assert_failed(server, "/data/jobs-")
                self.assert_kept({job: b"before"})

    def test_a_second_signal_ends_a_server_that_stalls_in_a_write(self):
        for first, second in (
            (signal.SIGTERM, signal.SIGTERM),
            (signal.SIGINT, signal.SIGTERM),
            (signal.SIGTERM, signal.SIGINT),
        ):
            with self.subTest(f"{first.name} {second.name}"):
                self.use_new_data()
                server = self.start()
                client = server.connect()
                job = client.put(b"before")
                rule = self.faults.fail("write", _LOG, 0, holds=True)
                client.send(b"put 0 0 60 5\r\nnever\r\n")
                rule.wait("seen")
                server.process.send_signal(first)
                # One that comes before the first was taken is the same one.
                deadline = time.monotonic() + 20.0
                while server.process.poll() is None:
                    self.assertLess(time.monotonic(), deadline, server.log())
                    server.process.send_signal(second)
                    time.sleep(0.01)
                # If two are pending together, the system hands out the lower one first.
                self.assertIn(server.process.returncode, (-first, -second))
                rule.stop()
                self.assert_kept({job: b"before"}, unanswered=1)

    def test_the_last_write_of_all_at_sigterm(self):
        server = self.start()
        client = server.connect()
        job = client.put(b"before")
        self.faults.fail("write", _LOG)
        # Nothing is in flight, but the server stores up to where it has given ids.
        server.process.send_signal(signal.SIGTERM)
        self.assert_failed(server, "/data/jobs-")
        self.assert_kept({job: b"before"})

    def test_the_last_sync_of_all_at_sigterm(self):
        server = self.start("--sync", "os")
        client = server.connect()
        job = client.put(b"before")
        self.faults.fail("sync", _LOG)
        server.process.send_signal(signal.SIGTERM)
        self.assert_failed(server, "/data/jobs-[0-9]+.data cannot be synced")
        self.assert_kept({job: b"before"})

    def test_a_segment_that_cannot_be_made(self):
        for calls in ("write", "sync"):
            with self.subTest(calls):
                self.use_new_data()
                server = self.start()
                job = server.connect().put(b"before")
                # It is tried again when it is needed, and that fails, too.
                with self.faults.fail(calls, _UNFINISHED_SEGMENT, times=FOR_EVER):
                    jobs, answer = put_until_it_fails(server.connect(), LARGE, 10 << 20)
                    self.assertIn(answer, (FAILED, None))
                    self.assert_failed(server, "/data/jobs-[0-9]+.data cannot be made")
                self.assert_kept({job: b"before", **jobs}, unanswered=BATCH)

    def test_a_segment_that_cannot_be_made_once_is_made_when_it_is_needed(self):
        server = self.start()
        client = server.connect()
        rule = self.faults.fail("sync", _UNFINISHED_SEGMENT)
        jobs = {client.put(LARGE): LARGE for _ in range(40)}
        self.assertEqual(rule.failed, 1)
        self.assertEqual(server.terminate(), 0)
        self.assert_kept(jobs)


class CutLogTest(FaultCase):
    def test_what_a_crash_has_cut_short_is_told(self):
        server = self.start("--sync", "os")
        client = server.connect()
        jobs = {client.put(b"kept"): b"kept"}
        client.put(random.Random(1).randbytes(2_000))  # some sectors
        server.kill()
        (log,) = (path for path in pathlib.Path(self.data).glob("jobs-*.data") if _is_used(path))
        data = bytearray(log.read_bytes())
        last = (len(data.rstrip(b"\0")) - 1) // 512 * 512
        data[last : last + 512] = bytes(512)
        log.write_bytes(data)
        server = self.start()
        self.assertRegex(server.log(), "the record of change .* was cut short by a crash")
        server.kill()
        self.assert_kept(jobs)


def _is_used(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        file.seek(4096)
        return any(file.read(4096))


class StateTest(FaultCase):
    """The files of the state, which other threads write."""

    def test_a_failed_write_of_a_flush(self):
        for calls, path in (
            ("write", "*.sst"),
            ("sync", "*.blob"),
            ("write", "*/MANIFEST-*"),
            ("sync", "*/data"),
        ):
            with self.subTest(f"{calls} {path}"):
                self.use_new_data()
                server = self.start()
                # The log syncs the directory, too, and may try that again.
                times = FOR_EVER if path == "*/data" else 1
                with self.faults.fail(calls, path, times=times) as rule:
                    client = server.connect()
                    jobs, answer = put_until_it_fails(client, LARGE, _FLUSHED)
                    self.assertIn(answer, (FAILED, None))
                    self.assertTrue(rule.failed == 1 or times > 1)
                    self.assert_failed(server, path.replace("*", ""))
                self.assert_kept(jobs, unanswered=BATCH)

    def test_no_job_is_handed_out_after_it(self):
        body = b"b" * 30_000
        server = self.start()
        client = server.connect()
        self.faults.fail("write", "*.sst")
        pair = b"put 0 0 60 %d\r\n%s\r\nreserve-with-timeout 0\r\n" % (len(body), body)
        jobs, words = {}, []
        try:
            while True:
                client.send(pair * 2)  # in one turn of the server's loop
                for _ in range(4):
                    reply = client.reply()
                    words.append(reply.word)
                    if words[-1] == b"INSERTED":
                        jobs[reply.number()] = body
        except (Closed, OSError):
            pass
        # If the server notices it between two turns, it has nothing to answer so.
        failed = words.index(FAILED.word) if FAILED.word in words else len(words)
        self.assertNotIn(b"RESERVED", words[failed:])
        self.assert_failed(server, "sst")
        self.assert_kept(jobs, unanswered=2)

    def test_a_failed_write_of_a_compaction_while_nobody_asks(self):
        for calls in ("write", "sync"):
            with self.subTest(calls):
                server, rule, jobs = self.start_compaction(calls)
                rule.release()
                self.assert_failed(server, r"\.sst")
                self.assertEqual(rule.failed, 1)
                self.assert_kept(jobs)

    def test_a_failed_write_at_sigterm(self):
        for calls, path in (
            ("write", "*.sst"),
            ("sync", "*.sst"),
            ("write", "*.blob"),
            ("write", "*/MANIFEST-*"),
            ("sync", "*/MANIFEST-*"),
        ):
            with self.subTest(f"{calls} {path}"):
                self.use_new_data()
                server = self.start()
                job = server.connect().put(LARGE)
                self.faults.fail(calls, path)
                server.process.send_signal(signal.SIGTERM)
                self.assert_failed(server, path.replace("*", ""))
                self.assert_kept({job: LARGE})

    def test_no_memory_in_the_midst_of_a_write(self):
        server = self.start()
        # RocksDB allocates memtables of this size.
        rule = self.faults.fail("allocate", "memory:1048576", after=2)
        jobs, answer = put_until_it_fails(server.connect(), b"small" * 400, _FLUSHED)
        self.assertEqual(answer, FAILED)
        self.assertEqual(rule.failed, 1)
        self.assert_failed(server, "/data has failed", "std::bad_alloc")
        self.assert_kept(jobs, unanswered=BATCH)


class ReadTest(FaultCase):
    """Reads that fail while files are written change nothing: no process ends."""

    def test_in_a_flush(self):
        for calls in ("read", "open"):
            with self.subTest(calls):
                self.use_new_data()
                server = self.start()
                # A new table is opened and read once, to see that it is there.
                with self.faults.fail(calls, self.data + "/*.sst", times=FOR_EVER) as rule:
                    jobs, answer = put_until_it_fails(server.connect(), LARGE, _FLUSHED)
                    self.assertEqual(answer, FAILED)
                    self.assertGreater(rule.failed, 0)
                client = server.connect()
                deadline = time.monotonic() + 20.0
                while (reply := client.call(b"put 0 0 600 4", b"then")) == FAILED:
                    self.assertLess(time.monotonic(), deadline, server.log())
                    time.sleep(0.05)
                jobs[reply.number()] = b"then"
                self.assertEqual(server.terminate(), 0)
                self.assert_kept(jobs, unanswered=BATCH)

    def test_in_a_compaction(self):
        server, held, jobs = self.start_compaction("write", 0)
        with self.faults.fail("read", self.data + "/*.sst", times=FOR_EVER) as rule:
            held.release()
            rule.wait(count=2)  # it tries again
            self.assertEqual(server.connect().stats()["current-jobs-ready"], "5")
        written = held.seen
        held.wait("seen", count=written + 1)
        self.assertEqual(server.terminate(), 0)
        self.assert_kept(jobs)


if __name__ == "__main__":
    unittest.main()
