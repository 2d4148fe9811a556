"""Browsers, and other programs that speak no beanstalk protocol, at the port of the real server."""

import http.client
import socket
import unittest

import daemon
from protocol_case import UNKNOWN_COMMAND, said

_JOB = b"put 0 0 60 4\r\nevil\r\n"
_REFUSAL = b"This port speaks the beanstalk protocol, and not HTTP.\n"


def _form_post(server) -> bytes:
    """The request of a form that any web page may hold."""
    return (
        b"POST /submit HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: keep-alive\r\n"
        b"Content-Length: %d\r\nOrigin: null\r\nContent-Type: text/plain\r\nAccept: */*\r\n\r\n"
        % (server.port, len(_JOB))
    ) + _JOB


@unittest.skipIf(daemon.stand_in(), "beanstalkd lets everybody in")
class StrangersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = daemon.carillon_beanstalkd().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def stats(self) -> dict:
        return self.server.connect().stats()

    def check_nothing_was_put(self) -> None:
        stats = self.stats()
        self.assertEqual([stats["total-jobs"], stats["cmd-put"]], ["0", "0"])

    def test_the_post_of_a_browser(self):
        before = int(self.stats()["connections-closed-foreign"])
        for body in (_JOB, _JOB * 100_000):
            browser = http.client.HTTPConnection(*self.server.address, timeout=20)
            self.addCleanup(browser.close)
            headers = {"Content-Type": "text/plain", "Origin": "http://evil.example"}
            try:
                browser.request("POST", "/", body, headers)
            except (BrokenPipeError, ConnectionResetError):
                self.assertGreater(len(body), 1_000_000)
            answer = browser.getresponse()
            self.assertEqual([answer.status, answer.read()], [400, _REFUSAL])
            names = {name.lower() for name, _ in answer.getheaders()}
            self.assertEqual(names, {"content-type", "content-length", "connection"})
        self.check_nothing_was_put()
        self.assertEqual(int(self.stats()["connections-closed-foreign"]), before + 2)

    def test_byte_by_byte(self):
        browser = socket.create_connection(self.server.address, 20)
        self.addCleanup(browser.close)
        browser.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        control = self.server.connect()
        try:
            for byte in _form_post(self.server):
                browser.sendall(bytes([byte]))
                control.call(b"list-tube-used")  # makes it likely that each byte is read alone
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server waits for the rest for a while, and not for ever
        self.check_nothing_was_put()

    def test_every_method(self):
        for method in ("GET", "HEAD", "OPTIONS", "PUT", "put", "reserve", "kick", "quit", "use"):
            browser = http.client.HTTPConnection(*self.server.address, timeout=20)
            self.addCleanup(browser.close)
            browser.request(method, "/", _JOB)
            self.assertEqual(browser.getresponse().status, 400, method)
        self.check_nothing_was_put()

    def test_another_protocol(self):
        c = self.server.connect()
        c.send(b"*1\r\n$4\r\nPING\r\n" + _JOB)
        self.assertEqual([c.reply() for _ in range(3)], [UNKNOWN_COMMAND] * 3)
        c.wait_for_end(20)
        self.check_nothing_was_put()

    def test_a_newer_client(self):
        c = self.server.connect()
        for _ in range(2):
            self.assertEqual(c.call(b"verb-of-2030 1"), UNKNOWN_COMMAND)
        self.assertEqual(c.call(b"list-tube-used"), said(b"USING default"))
        for _ in range(10):
            self.assertEqual(c.call(b"verb-of-2030 1"), UNKNOWN_COMMAND)

    def test_the_log_names_the_client(self):
        with daemon.carillon_beanstalkd() as server:
            browser = socket.create_connection(server.address, 20)
            self.addCleanup(browser.close)
            browser.sendall(_form_post(server))
            self.assertTrue(browser.recv(1000).startswith(b"HTTP/1.1 400 "))
            client = "%s:%d" % browser.getsockname()
            self.assertIn(
                f"closed the connection of {client}, which sent an HTTP request: nothing of it was "
                "carried out (0 more such since the last line)",
                server.log(),
            )


if __name__ == "__main__":
    unittest.main()
