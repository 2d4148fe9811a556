"""Few descriptors: connections beyond the limit are refused, and nothing else suffers."""

import errno
import os
import time
import unittest

import daemon
from fault_case import DELETED, FAILED, LARGE, FaultCase, put_until_it_fails
from failing_io import FOR_EVER
from wire import TIMED_OUT, Reply, said

_LIMIT = 256
_RESTARTS = 30
_BODY = b"b" * 60_000


def carillon_limited(limit: int, data: str, environment=None) -> daemon.Server:
    return daemon.Server(
        lambda port: [
            "/bin/sh",
            "-c",
            f'ulimit -n {limit} && exec "$@"',
            "sh",
            daemon.carillon_path(),
            *("serve", "--data", data, "--listen", f"{daemon.HOST}:{port}", "--sync", "os"),
        ],
        environment=environment,
    )


def fill(case: unittest.TestCase, data: str) -> dict:
    """Makes a store of more tables than can be open at a time. Returns its jobs, id to body."""
    jobs = {}
    for n in range(_RESTARTS):
        with daemon.carillon_serve(data, "--sync", "os") as server:
            client = server.connect()
            for body in (b"small %d" % n, b"l" * 5_000):
                jobs[client.put(body, 0, 0, 600)] = body
            case.assertEqual(server.terminate(), 0)
    tables = [name for name in os.listdir(data) if name.endswith((".sst", ".blob"))]
    case.assertGreater(len(tables), 100)
    return jobs


class LimitTest(daemon.DataCase):
    def start(self, limit: int) -> daemon.Server:
        server = carillon_limited(limit, self.data)
        self.addCleanup(server.__exit__)
        return server.start()

    def test_connections_are_refused_and_nothing_else(self):
        jobs = fill(self, self.data)
        server = self.start(_LIMIT)
        clients = []
        while (reply := (client := server.connect()).call(b"use default")) == said(
            b"USING default"
        ):
            clients.append(client)
        self.assertEqual(reply, said(b"OUT_OF_MEMORY"))
        self.assertGreater(len(clients), 70)
        self.assertIn(f"at most {len(clients)} connections", server.log())

        # More than the log has in one piece and the state in memory, by all connections in turn.
        put = b"put 0 0 600 %d\r\n%s\r\n" % (len(_BODY), _BODY)
        for n in range(2_500):
            client = clients[n % len(clients)]
            client.send(put)
            if n >= len(clients):
                jobs[client.reply().number()] = _BODY
            self.assertLessEqual(self.descriptors(server), _LIMIT)
        for client in clients:
            jobs[client.reply().number()] = _BODY
        for job in sorted(jobs):
            reply = clients[job % len(clients)].call(b"reserve-with-timeout 0")
            self.assertEqual(reply, Reply(b"RESERVED %d %d" % (job, len(jobs[job])), jobs[job]))
        self.assertNotIn("Too many open files", server.log())
        self.assertEqual(server.terminate(), 0)

    @staticmethod
    def descriptors(server: daemon.Server) -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def test_a_limit_that_is_too_small_is_refused(self):
        with self.assertRaises(daemon.StartFailed) as failed:
            self.start(100)
        self.assertIn(
            "the process may have 100 descriptors, and needs at least 184 (see ulimit -n)",
            str(failed.exception),
        )


class OpenTest(FaultCase):
    """Files that cannot be opened for a while, because the whole system has no descriptors."""

    def test_too_few_descriptors_for_tables(self):
        jobs = fill(self, self.data)
        server = carillon_limited(_LIMIT, self.data, self.faults.environment)
        self.addCleanup(server.__exit__)
        server.start()
        client, other = server.connect(), server.connect()
        client.stats()
        until = time.monotonic() + 1.0
        path = self.data + "/*.[sb]*"
        answers = set()
        with self.faults.fail("open", path, errno.EMFILE, times=FOR_EVER) as rule:
            while time.monotonic() < until:
                for job in jobs:
                    reply = client.call(b"peek %d" % job)
                    answers.add(reply.word)
                    self.assertTrue(reply == FAILED or reply.body == jobs[job])
                jobs[other.put(b"meanwhile", 0, 0, 600)] = b"meanwhile"
            self.assertGreater(rule.failed, 0)
        self.assertEqual(answers, {b"FOUND", b"INTERNAL_ERROR"})
        self.assertEqual(client.stats()["current-jobs-buried"], "0")
        for job in sorted(jobs):
            reply = client.call(b"reserve-with-timeout 0")
            self.assertEqual((reply.number(), reply.body), (job, jobs[job]))
            self.assertEqual(client.call(b"delete %d" % job), DELETED)
        self.assertEqual(client.call(b"reserve-with-timeout 0"), TIMED_OUT)
        self.assertEqual(server.terminate(), 0)

    def test_too_few_descriptors_for_segments_of_the_log(self):
        server = self.start()
        client = server.connect()
        with self.faults.fail("create open", "*/data/jobs-*", errno.EMFILE, times=FOR_EVER):
            jobs, answer = put_until_it_fails(server.connect(), LARGE, 10 << 20)
            self.assertEqual(answer, FAILED)
        jobs[client.put(b"after")] = b"after"
        self.assertEqual(server.terminate(), 0)
        self.assert_kept(jobs)


if __name__ == "__main__":
    unittest.main()
