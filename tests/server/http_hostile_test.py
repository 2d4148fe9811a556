"""Slow, hostile and huge clients of HTTP on a real server: they are answered or closed, others'
replies stay fast meanwhile, and the server's memory stays within bounds."""

import contextlib
import json
import os
import re
import socket
import threading
import time
import unittest

import daemon
from http_case import HttpCase

HEAD = b"Host: localhost\r\n"
# In seconds, for the median reply to others. Generous: a sanitizer build on a busy machine.
FAST = 0.2


@unittest.skipIf(daemon.stand_in(), "beanstalkd speaks no HTTP")
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

    def say(self, data):
        """Sends it, ends the sending half, and returns all that comes."""
        client = self.connect()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        received = self.read_to_end(client)
        client.close()
        return received

    def jobs(self, tube="victim"):
        status, page = self.ask(path=f"/v1/tubes/{tube}/jobs")
        return len(json.loads(page)["jobs"]) if status == 200 else 0

    # --- slow ones

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

    def test_a_header_that_comes_byte_by_byte_has_one_time_out(self):
        client = self.connect()
        begun = time.monotonic()
        client.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with contextlib.suppress(OSError):
            while time.monotonic() < begun + 20:
                client.sendall(b"x")
                time.sleep(0.1)
        self.assertGreater(time.monotonic() - begun, 2)
        self.assertLess(time.monotonic() - begun, 15)
        self.assertIn("sent no whole line or header of a command", self.server.log())

    def test_bodies_that_come_byte_by_byte(self):
        ended = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                client = self.connect()
                client.sendall(
                    b"POST /v1/tubes/a/jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 60000\r\n\r\n"
                )
                while not ended.wait(0.005):
                    client.sendall(b"x")

        threads = [threading.Thread(target=drip) for _ in range(30)]
        for thread in threads:
            thread.start()
        try:
            self.assertLess(self.median_wait(), FAST)
        finally:
            ended.set()
            for thread in threads:
                thread.join()

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
        deadline = time.monotonic() + 30
        while "read no replies" not in self.server.log():
            self.assertLess(time.monotonic(), deadline, self.server.log())
            time.sleep(0.01)

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

    # --- huge ones

    def test_headers_without_an_end(self):
        before = self.memory()
        line = b"X-Filler: " + b"y" * 1_000 + b"\r\n"
        for data in (
            b"GET /" + b"a" * 100_000,
            b"GET / HTTP/1.1\r\n" + HEAD + line * 1_000,
            b"GET / HTTP/1.1\r\n" + HEAD + b"X: 1\r\n" * 5_000 + b"\r\n",
        ):
            self.assertEqual(self.say(data)[:12], b"HTTP/1.1 431", data[:40])
        head = (
            b"POST /v1/tubes/victim/jobs HTTP/1.1\r\n"
            + HEAD
            + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for data in (
            head + b"1;" + b"e" * 1_000_000,
            head + b"1\r\nx\r\n0\r\n" + line * 1_000,
        ):
            self.assertEqual(self.say(data)[:12], b"HTTP/1.1 431", data[:40])
        self.assertEqual(self.jobs(), 0)
        self.assertLess(self.memory() - before, 64)

    def test_bodies_that_are_too_large(self):
        head = b"POST /v1/tubes/victim/jobs HTTP/1.1\r\n" + HEAD
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for data in (
            head + b"Content-Length: 5000000\r\n\r\n",
            head + b"Content-Length: 9223372036854775807\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 100,
            head + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\nx",
            b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Content-Length: 5000\r\n\r\n",
        ):
            self.assertEqual(self.say(data)[:12], b"HTTP/1.1 413", data[:80])
        self.assertEqual(self.jobs(), 0)

    # --- forged ones

    def test_a_second_request_cannot_hide_in_the_first(self):
        hidden = b"DELETE /v1/hidden HTTP/1.1\r\n" + HEAD + b"\r\n"
        forms = [
            b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: xchunked\r\n\r\n",
            b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
            b"Content-Length: 3\r\nContent-Length: 0\r\n\r\n",
            b"Content-Length: 0, 3\r\n\r\n",
            b"Content-Length: +0\r\n\r\n",
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: 0x0\r\n\r\n",
            b"Content-Length: 0 0\r\n\r\n",
            b"Content-Length: 18446744073709551616\r\n\r\n",
            b"Content-Length : 0\r\n\r\n",
            b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\nX: a\r\n\tContent-Length: 3\r\n\r\n0\r\n\r\n",
            b"X: a\r\n Content-Length: 0\r\n\x00\r\n\r\n",
            b"Host: other\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1;\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1;a=\x00\r\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n1\r\nx0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n;\r\n\r\n",
            b"Transfer-Encoding: chunked\n\r\n0\r\n\r\n",
            b"X: a\nContent-Length: 3\r\n\r\n",
            b"X: a\rContent-Length: 3\r\n\r\n",
            b"X: a\x00b\r\n\r\n",
            b"Content-Length: 0;\r\n\r\n",
            b": 1\r\n\r\n",
        ]
        for form in forms:
            first = b"POST /v1/tubes/victim/jobs HTTP/1.1\r\n" + HEAD + form
            received = self.say(first + hidden)
            self.assertIn(received[9:12], (b"400", b"413", b"415", b"431"), form)
            self.assertNotIn(b"/v1/hidden", received, form)
            self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d\d\d ", received)), 1, received)
        old = b"POST /v1/tubes/victim/jobs HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        self.assertNotIn(b"/v1/hidden", self.say(old + hidden))
        self.assertEqual(self.jobs(), 0)

    def test_rubbish(self):
        for data in (b"\x00" * 1_000, os.urandom(1_000).replace(b"\x16", b"x"), b"\r\n" * 1_000):
            received = self.say(data)
            self.assertIn(received[:12], (b"HTTP/1.1 400", b""), received)
        self.assertEqual(self.ask()[0], 200)


@unittest.skipIf(daemon.stand_in(), "beanstalkd speaks no HTTP")
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
