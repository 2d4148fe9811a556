"""System tests of `carillon reserve`: tubes, timeouts, output and signals."""

import json
import os
import pty
import signal
import time
import unittest

from cli_case import CliCase


class ReserveTest(CliCase):
    def test_only_the_named_tubes(self):
        self.carillon("put", "in default")
        self.put("--pri", "2", "a")
        self.carillon("put", "--tube", self.tube + "2", "--pri", "1", "b")
        tubes = ("--tube", self.tube, "--tube", self.tube + "2")
        done = self.run_carillon("reserve", "--delete", *tubes)
        self.assertEqual(done.stdout, b"b")
        self.assertRegex(done.stderr.decode(), rf"^job \d+ from tube {self.tube}2: deleted\n$")
        self.assertEqual(self.carillon("reserve", "--delete", *tubes), "a")
        self.fails("carillon reserve: no job within 0.10s", "reserve", "--timeout", "100ms", *tubes)

    def test_a_timeout_is_not_early(self):
        before = time.monotonic()
        self.fails(
            "carillon reserve: no job within 0.30s",
            *f"reserve --timeout 300ms --tube {self.tube}".split(),
        )
        self.assertGreaterEqual(time.monotonic() - before, 0.3)

    def test_json(self):
        job_id = self.put("line\n\u2603")
        self.assertEqual(
            json.loads(self.carillon("reserve", "--json", "--tube", self.tube, "--delete")),
            {"id": int(job_id), "tube": self.tube, "body": "line\n\u2603"},
        )

    def test_json_of_bytes_that_are_not_text(self):
        job_id = self.put(body=b"\xff\x00\x01")
        self.assertEqual(
            json.loads(self.carillon("reserve", "--json", "--tube", self.tube)),
            {"id": int(job_id), "tube": self.tube, "body_base64": "/wAB"},
        )

    def test_a_line_end_is_added_on_a_terminal_only(self):
        self.put("hello")
        terminal, other_end = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.run_carillon("reserve", "--tube", self.tube, stdout=other_end)
        os.close(other_end)
        self.assertEqual(os.read(terminal, 100), b"hello\r\n")  # a terminal turns \n into \r\n
        self.assertEqual(self.carillon("reserve", "--tube", self.tube), "hello")

    def test_a_terminal_obeys_nothing_of_a_body(self):
        body = "\u001b[2J\u009b\tü\n".encode() + b"\xff"
        self.put(body=body)
        terminal, other_end = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.run_carillon("reserve", "--tube", self.tube, stdout=other_end)
        os.close(other_end)
        self.assertEqual(os.read(terminal, 100), "\\x1B[2J\\u009B\tü\r\n\\xFF\r\n".encode())
        done = self.run_carillon("reserve", "--tube", self.tube)
        self.assertEqual(done.stdout, body)

    def test_a_job_that_cannot_be_printed_is_not_deleted(self):
        job_id = self.put("hello")
        with open("/dev/full", "wb") as full:
            done = self.run_carillon("reserve", "--delete", "--tube", self.tube, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            b"carillon reserve: cannot write to standard output: no space left on device\n",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job goes back to ready")

    def test_a_killed_reserve_gives_its_job_to_the_next(self):
        waiting = self.start("reserve", "--tube", self.tube)
        self.wait_until(
            lambda: self.has_tube() and self.stats("--tube", self.tube)["current-waiting"] == 1,
            "it waits",
        )
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(30), -signal.SIGINT)
        self.put("hello")
        self.assertEqual(self.carillon("reserve", "--tube", self.tube, "--timeout", "10s"), "hello")

    def has_tube(self):
        return self.run_carillon("stats", "--tube", self.tube).returncode == 0


if __name__ == "__main__":
    unittest.main()
