"""System tests of `carillon pause`, `resume` and `drain`, for whole tubes."""

import json
import unittest

from cli_case import CliCase


class TubesTest(CliCase):
    def pause(self):
        return self.stats("--tube", self.tube)["pause"]

    def test_pause_and_resume(self):
        self.put("x")
        self.assertEqual(
            self.carillon("pause", self.tube),
            f"paused tube {self.tube} until carillon resume {self.tube}\n",
        )
        self.assertEqual(self.pause(), 4294967295)
        self.assertEqual(self.carillon("resume", self.tube), f"resumed tube {self.tube}\n")
        self.assertEqual(self.pause(), 0)
        out = self.carillon("pause", self.tube, "9500ms")
        self.assertEqual(out, f"paused tube {self.tube} for 10.00s\n")
        self.assertEqual(self.pause(), 10)
        line = {"tube": self.tube, "pause_s": 60}
        self.assertEqual(json.loads(self.carillon("pause", self.tube, "1m", "--json")), line)
        line["pause_s"] = 0
        self.assertEqual(json.loads(self.carillon("resume", self.tube, "--json")), line)

    def test_a_tube_that_does_not_exist(self):
        why = "tube nowhere does not exist: it has no jobs, and nobody uses or watches it"
        for command in ("pause", "resume"):
            self.fails(f"carillon {command}: {why}", command, "nowhere")

    def test_drain_refuses_puts_and_tells_what_is_left(self):
        self.put("x")
        self.put("--delay", "1h", "y")
        out = self.carillon("drain", self.tube)
        self.assertEqual(out, f"tube {self.tube}: 1 ready, 1 delayed, 0 reserved, 0 buried\n")
        address = f"127.0.0.1:{self.server.port}"
        self.fails(
            f"carillon put: {address} takes no new jobs: it is draining, or the tube is",
            *("put", "--tube", self.tube, "z"),
        )
        self.carillon("put", "--tube", self.tube + "2", "z")
        self.assertEqual(
            self.carillon("drain", self.tube, "--end"), f"tube {self.tube} takes jobs again\n"
        )
        self.put("z")

    def test_drain_waits_until_the_tube_is_empty(self):
        first, buried = self.put("x"), self.put("y")
        self.carillon("bury", buried)
        drain = self.start("drain", self.tube, "--wait", "--json")
        self.assertIn(b": 1 ready, 0 delayed, 0 reserved, 1 buried\n", drain.stderr.readline())
        self.carillon("delete", first)
        self.assertEqual(drain.wait(30), 0)
        self.assertEqual(
            json.loads(drain.stdout.read()),
            {
                "tube": self.tube,
                "puts": "refused",
                "ready": 0,
                "delayed": 0,
                "reserved": 0,
                "buried": 1,
            },
        )


if __name__ == "__main__":
    unittest.main()
