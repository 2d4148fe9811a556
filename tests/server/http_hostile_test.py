"""Slow and hostile clients of HTTP on a real server: they are answered or closed, others'
replies stay fast meanwhile, and the server's memory stays within bounds."""

import contextlib
import socket
import threading
import time
import unittest

import daemon
from http_case import HttpCase

HEAD = b"Host: localhost\r\n"
# In seconds, for the median reply to others. Generous: a sanitizer build on a busy machine.
FAST = 0.2


class HostileHttp(HttpCase):
    options = ["--stall-timeout", "2s", "--memory", "256M"]

    def setUp(self):
        super().setUp()
        self.other = self.client()

    def connect(self):
        client = socket.create_connection((daemon.HOST, self.port), timeout=20)
        self.addCleanup(client.close)
        return client

    def memory(self):
        """What the server has of the machine's memory, in MiB."""
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def ask(self, method="GET", path="/healthz", body=None):
        self.other.request(method, path, body)
        reply = self.other.getresponse()
        return reply.status, reply.read()

    def median_wait(self, count=30):
        """How long another client waits that puts a job."""
        waits = []
        for _ in range(count):
            begun = time.monotonic()
            status, answer = self.ask("POST", "/v1/tubes/mail/jobs", b"x")
            self.assertEqual(status, 201, (answer, self.server.log()))
            waits.append(time.monotonic() - begun)
        return sorted(waits)[count // 2]

    @staticmethod
    def read_to_end(client):
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while more := client.recv(65_536):
                received += more
        return received

    def test_halves_of_headers_and_bodies(self):
        before = self.memory()
        halves = [b"G", b"POST /v1/tubes/mail/jobs HT", b"GET / HTTP/1.1\r\nHo"]
        halves += [
            b"POST /v1/tubes/a/jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 4000000\r\n\r\nx"
        ]
        halves += [
            b"POST /v1/tubes/a/jobs HTTP/1.1\r\n"
            + HEAD
            + b"Transfer-Encoding: chunked\r\n\r\n9\r\nx"
        ]
        slow = []
        for n in range(200):
            slow.append(self.connect())
            slow[-1].sendall(halves[n % len(halves)])
        self.assertLess(self.median_wait(), FAST)
        # 40 bodies of 4 MB are announced. What has not come takes no memory.
        self.assertLess(self.memory() - before, 100)
        for client in slow:  # each is closed when its time is over
            self.read_to_end(client)
        self.assertIn("of a command that it had begun", self.server.log())

    def test_a_client_that_does_not_read(self):
        before = self.memory()
        request = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
        deaf = []
        for _ in range(50):
            client = socket.socket()
            self.addCleanup(client.close)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((daemon.HOST, self.port))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:  # as much as the server takes
                    client.send(request * 100)
            deaf.append(client)
        self.assertLess(self.median_wait(), FAST)
        # Replies of a connection are at most 1 MiB and what the memory allows.
        self.assertLess(self.memory() - before, 150)
        self.wait_for_line(self.server, "read no replies")

    def test_a_thousand_that_do_nothing(self):
        before = self.memory()
        idle = [self.connect() for _ in range(1_000)]
        self.assertLess(self.median_wait(), FAST)
        self.assertLess(self.memory() - before, 64)
        idle[-1].sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n")
        self.assertTrue(self.read_to_end(idle[-1]).startswith(b"HTTP/1.1 200 "))

    def test_thousands_of_requests_at_once(self):
        client = self.connect()
        count = 5_000
        requests = b"".join(
            b"GET /v1/tubes/t%d HTTP/1.1\r\n" % n + HEAD + b"\r\n" for n in range(count)
        )
        sender = threading.Thread(target=client.sendall, args=(requests,))
        sender.start()
        self.assertLess(self.median_wait(), FAST)
        replies = client.makefile("rb")
        for n in range(count):  # in their order
            self.assertTrue(replies.readline().startswith(b"HTTP/1.1 404 "))
            size = 0
            while (line := replies.readline()) != b"\r\n":
                name, _, value = line.partition(b": ")
                size = int(value) if name == b"Content-Length" else size
            self.assertIn(b"/v1/tubes/t%d" % n, replies.read(size))
        sender.join()


class DeafHttp(HttpCase):
    options = ["--memory", "1G"]

    def test_hundreds_that_do_not_read_and_come_at_once(self):
        """The system takes megabytes for each of them. Others waited up to a second."""
        request = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
        all_there = threading.Event()

        def rush():
            for _ in range(600):
                client = socket.socket()
                self.addCleanup(client.close)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect((daemon.HOST, self.port))
                client.sendall(request * 50)
            all_there.set()

        other = self.client()
        rushing = threading.Thread(target=rush)
        rushing.start()
        waits = []
        while not all_there.is_set() or len(waits) < 100:
            begun = time.monotonic()
            other.request("GET", "/healthz")
            self.assertIn(b"ok", other.getresponse().read())
            waits.append(time.monotonic() - begun)
        rushing.join()
        waits.sort()
        # The few longest may be waits for the machine.
        self.assertLess(waits[len(waits) * 95 // 100], 2 * FAST, waits[-10:])
        self.assertLess(waits[-1], 5, waits[-10:])


if __name__ == "__main__":
    unittest.main()
