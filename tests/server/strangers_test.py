"""A browser at the port of the real server."""

import http.client
import unittest

import daemon

_JOB = b"put 0 0 60 4\r\nevil\r\n"
_REFUSAL = b"This port speaks the beanstalk protocol, and not HTTP.\n"


class StrangersTest(unittest.TestCase):
    def test_the_post_of_a_browser_is_refused_and_its_client_named_in_the_log(self):
        with daemon.carillon_beanstalkd() as server:
            for body in (_JOB, _JOB * 100_000):
                browser = http.client.HTTPConnection(*server.address, timeout=20)
                self.addCleanup(browser.close)
                headers = {"Content-Type": "text/plain", "Origin": "http://evil.example"}
                browser.connect()
                client = "%s:%d" % browser.sock.getsockname()
                try:
                    browser.request("POST", "/", body, headers)
                except (BrokenPipeError, ConnectionResetError):
                    self.assertGreater(len(body), 1_000_000)
                answer = browser.getresponse()
                self.assertEqual([answer.status, answer.read()], [400, _REFUSAL])
                if body == _JOB:
                    self.assertIn(
                        f"closed the connection of {client}, which sent an HTTP request: nothing "
                        "of it was carried out (0 more such since the last line)",
                        server.log(),
                    )
            stats = server.connect().stats()
            self.assertEqual([stats["total-jobs"], stats["cmd-put"]], ["0", "0"])
            self.assertEqual(stats["connections-closed-foreign"], "2")


if __name__ == "__main__":
    unittest.main()
