"""Clients of many kinds that take what memory they can get, all at once. The server stays within
--memory, which is all that the system gives it. It refuses and delays what it must, serves a client
that behaves well, and loses nothing."""

import resource
import tempfile
import time
import unittest

import daemon
from wire import Closed, Connection, said

MEMORY = 128 << 20
BODY = b"b" * 60_000


def highest_memory(server: daemon.Server) -> int:
    """The most memory that the process has used so far, in bytes, without files that are mapped."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return (int(fields["VmHWM"].split()[0]) - int(fields["RssFile"].split()[0])) << 10


def limit_memory(server: daemon.Server, more: int) -> None:
    """From now on the system gives the process at most this many bytes more."""
    server.connect().call(b"list-tube-used")  # it has taken what it takes at its start
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmData"))
    limit = (int(line.split()[1]) << 10) + more
    resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))


def send_what_fits(connection: Connection, data: bytes) -> None:
    """Sends without reading a reply, as long as the server takes it."""
    connection.socket.setblocking(False)
    try:
        connection.send(data)
    except (BlockingIOError, ConnectionError):
        pass
    finally:
        connection.socket.setblocking(True)
        connection.socket.settimeout(connection.timeout)


class MemoryTest(daemon.DataCase):
    flags = ("--memory", "128M", "--sync", "os", "--stall-timeout", "0")

    def setUp(self):
        super().setUp()
        self.server = self.start()
        limit_memory(self.server, MEMORY)
        self.greedy = []

    def greedy_client(self) -> Connection:
        connection = Connection(self.server.address, receive_buffer=4096)
        self.addCleanup(connection.close)
        self.greedy.append(connection)
        return connection

    def put_many(self, tube: bytes, jobs: int, delay: int = 0) -> None:
        client = self.server.connect()
        client.call(b"use " + tube)
        for _ in range(jobs // 1_000):
            client.send(b"put 5 %d 600 5\r\nhello\r\n" % delay * 1_000)
            for _ in range(1_000):
                self.assertEqual(client.reply().word, b"INSERTED")

    def take_jobs_into_memory(self):
        for n in range(10):
            self.put_many(b"ready%d" % n, 10_000)
            self.put_many(b"near%d" % n, 10_000, delay=50)

    def reserve_all(self) -> int:
        worker = self.greedy_client()
        for n in range(10):
            worker.call(b"watch ready%d" % n)
        reserved = 0
        while worker.call(b"reserve-with-timeout 0").word == b"RESERVED":
            reserved += 1
        return reserved

    def make_tubes(self) -> int:
        """Returns how many were refused."""
        client = self.greedy_client()
        refused = 0
        for n in range(12_000):
            client.send(b"use tube%d\r\nput 0 100000 60 1\r\nx\r\n" % n)
            refused += client.reply() == said(b"OUT_OF_MEMORY")
            client.reply()
        return refused

    def leave_replies_unread(self, job: int):
        for _ in range(500):
            send_what_fits(self.greedy_client(), b"peek %d\r\n" % job * 200)

    def leave_bodies_unfinished(self):
        for _ in range(500):
            send_what_fits(self.greedy_client(), b"put 0 0 60 60000\r\n" + BODY[:50_000])

    def open_connections(self) -> int:
        """Returns how many were refused."""
        refused = 0
        for _ in range(1_000):
            connection = self.greedy_client()
            try:
                refused += connection.call(b"list-tube-used") != said(b"USING default")
            except (OSError, Closed):
                refused += 1
        return refused

    def test_all_at_once(self):
        good = self.server.connect()
        job = good.put(BODY)
        good.call(b"use good")
        self.take_jobs_into_memory()
        reserved = self.reserve_all()
        self.assertLess(reserved, 20_000)
        self.assertGreater(reserved, 5_000)
        self.assertGreater(self.make_tubes(), 1_000)
        time.sleep(1.1)  # one line of a kind is logged each second
        self.leave_replies_unread(job)
        self.leave_bodies_unfinished()
        self.assertGreater(self.open_connections(), 100)

        # A small job still goes through.
        put = good.call(b"put 0 0 60 5", b"small")
        self.assertEqual(put.word, b"INSERTED")
        self.assertEqual(good.call(b"watch good"), said(b"WATCHING 2"))
        good.call(b"ignore default")
        self.assertEqual(good.call(b"reserve-with-timeout 5").body, b"small")
        self.assertEqual(good.call(b"delete %d" % put.number()), said(b"DELETED"))
        self.assertLess(highest_memory(self.server), MEMORY)

        # When they are gone, all is as before.
        for connection in self.greedy:
            connection.close()
        self.assertEqual(good.call(b"peek %d" % job).body, BODY)
        good.call(b"use default")
        self.assertEqual(good.call(b"put 0 0 60 60000", BODY).word, b"INSERTED")
        log = self.server.log()
        for line in (
            "jobs are reserved, of",
            "jobs are in memory, of",
            "answered OUT_OF_MEMORY: there are as many tubes",
            "answered OUT_OF_MEMORY: connections use",
            "there is no memory for more (see carillon serve --memory)",
        ):
            self.assertIn(line, log)
        self.assertNotIn("the system gives no more memory", log)
        self.assertEqual(self.server.terminate(), 0)

        client = self.start().connect()
        stats = client.stats()
        jobs = sum(int(stats["current-jobs-" + state]) for state in ("ready", "delayed"))
        self.assertGreaterEqual(jobs, 200_000 + 2)


class NoMoreMemoryTest(unittest.TestCase):
    """The system gives less memory than --memory."""

    def fill_and_empty(self, server: daemon.Server):
        client = server.connect()
        limit_memory(server, 64 << 20)
        jobs = []
        while (reply := client.call(b"put 0 0 600 60000", BODY)).word == b"INSERTED":
            jobs.append(reply.number())
            self.assertLess(len(jobs), 10_000)
        self.assertEqual(reply, said(b"OUT_OF_MEMORY"))
        self.assertEqual(client.call(b"use another"), said(b"OUT_OF_MEMORY"))
        self.assertIn("the system gives no more memory", server.log())
        for job in jobs:
            reply = client.call(b"reserve-with-timeout 0")
            self.assertEqual((reply.number(), reply.body), (job, BODY))
            self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"))
        no_limit = resource.RLIM_INFINITY
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (no_limit, no_limit))
        client.call(b"list-tube-used")
        self.assertEqual(client.call(b"put 0 0 600 60000", BODY).word, b"INSERTED")
        self.assertEqual(server.terminate(), 0)

    def test_with_jobs_in_memory(self):
        with daemon.carillon_beanstalkd() as server:
            self.fill_and_empty(server)

    def test_with_jobs_on_disk(self):
        with tempfile.TemporaryDirectory() as directory:
            with daemon.carillon_serve(directory + "/data", "--sync", "os") as server:
                self.fill_and_empty(server)


if __name__ == "__main__":
    unittest.main()
