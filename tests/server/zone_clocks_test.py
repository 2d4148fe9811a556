"""Schedules of the real server, over the two nights on which the clocks of their zone change: one
time of day is skipped, one comes twice and fires once, and the log names each."""

import datetime
import http.client
import json
import tempfile
import time
import unittest

import daemon
import wrong_clock


@unittest.skipUnless(wrong_clock.library(), "no library that sets the clock (sanitizers)")
class ZoneClocksTest(unittest.TestCase):
    def setUp(self):
        self.clock = self.enterContext(wrong_clock.Clock())
        data = self.enterContext(tempfile.TemporaryDirectory()) + "/data"
        self.server = self.enterContext(
            daemon.carillon_serve(
                data, "--http", f"{daemon.HOST}:0", environment=self.clock.environment
            )
        )
        self.client = self.server.connect()

    def set(self, moment: str) -> None:
        then = datetime.datetime.fromisoformat(moment).timestamp()
        self.clock.set(then - time.time())
        self.client.stats()  # the server notices

    def make(self, name: str, gap: str) -> None:
        fields = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "gap": gap}
        fields |= {"catch_up": "none", "job": {"tube": name, "body": "x"}}
        connection = http.client.HTTPConnection(daemon.HOST, self.server.http_port())
        connection.request("PUT", f"/v1/schedules/{name}", json.dumps(fields))
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()

    def wait_for(self, line: str) -> None:
        until = time.monotonic() + 10
        while line not in self.server.log():
            self.assertLess(time.monotonic(), until, self.server.log())
            time.sleep(0.02)

    def jobs(self, tube: bytes) -> int:
        return int(self.client.stats(b"stats-tube %s" % tube)["total-jobs"])

    def test_a_time_that_is_skipped(self):
        self.set("2027-03-28T00:59:58+00:00")  # 1:59:58
        self.make("skips", "skip")
        self.make("after", "after")
        self.wait_for(
            "schedule skips: skipped a time of day that the clocks of its zone skip at "
            "2027-03-28T01:00:00"
        )
        self.client.call(b"watch after")
        self.assertEqual(self.client.call(b"reserve-with-timeout 5").word, b"RESERVED")
        self.assertNotIn("schedule after: skipped", self.server.log())
        self.assertEqual(self.jobs(b"skips"), 0)

    def test_a_time_that_comes_twice(self):
        self.set("2027-10-31T00:29:58+00:00")  # 2:29:58, for the first time
        self.make("twice", "skip")
        self.wait_for("schedule twice: fired at 2027-10-31T00:30:00")
        self.assertIn("show this time of day twice, and it fires once", self.server.log())
        self.set("2027-10-31T01:29:58+00:00")  # 2:29:58 again
        time.sleep(3)
        self.assertEqual(self.jobs(b"twice"), 1)


if __name__ == "__main__":
    unittest.main()
