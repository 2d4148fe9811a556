"""System tests of the README's first steps, and of a job that outlives a killed server."""

import time
import unittest

from cli_case import SLACK, CliCase


class NewcomerTest(CliCase):
    """The first steps of the README, with a shorter delay."""

    def test_put_with_a_delay_and_reserve(self):
        before = time.monotonic()
        job_id = self.carillon("put", "--delay", "1s", "hello")
        after = time.monotonic()
        self.assertEqual(job_id, "1\n")
        done = self.run_carillon("reserve")
        reserved = time.monotonic()
        self.assertEqual(done.stdout, b"hello")
        self.assertEqual(
            done.stderr.decode(),
            "job 1 from tube default: it goes back to ready when this command ends "
            "(use --delete to finish it)\n",
        )
        self.assertGreaterEqual(reserved, before + 1.0)
        self.assertLess(reserved, after + 1.0 + SLACK)

        # The job went back to ready, and is handed out again. Then it is deleted.
        self.assertEqual(self.carillon("reserve", "--timeout", "10s"), "hello")
        done = self.run_carillon("reserve", "--timeout", "10s", "--delete")
        self.assertEqual(
            (done.stdout, done.stderr), (b"hello", b"job 1 from tube default: deleted\n")
        )
        self.fails("carillon reserve: no job is ready", "reserve", "--timeout", "0")


class RestartTest(CliCase):
    def test_a_job_comes_on_time_although_the_server_was_killed(self):
        before = time.monotonic()
        self.put("--delay", "2s", "hello")
        after = time.monotonic()
        self.kill_server()
        self.server.start()
        self.assertEqual(self.carillon("reserve", "--tube", self.tube), "hello")
        reserved = time.monotonic()
        self.assertGreaterEqual(reserved, before + 2.0)
        self.assertLess(reserved, after + 2.0 + SLACK)


if __name__ == "__main__":
    unittest.main()
