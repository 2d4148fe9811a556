"""System tests of the README's first steps."""

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


if __name__ == "__main__":
    unittest.main()
