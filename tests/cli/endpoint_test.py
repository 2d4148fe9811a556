"""System tests of `carillon endpoint`."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from cli_case import CliCase

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

import daemon  # noqa: E402  (found through the line above)
from receiver import Receiver, always, answer  # noqa: E402


class EndpointTest(CliCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        data = os.path.join(directory.name, "data")
        more = ("--http", f"{daemon.HOST}:0", "--push-allow", daemon.HOST)
        cls.server = cls.enterClassContext(daemon.carillon_serve(data, *more))
        cls.http = f"{daemon.HOST}:{cls.server.http_port()}"

    def environment(self, **more):
        return super().environment(CARILLON_HTTP=self.http, **more)

    def receive(self, behave):
        receiver = Receiver(behave)
        self.addCleanup(receiver.close)
        self.url = f"http://{daemon.HOST}:{receiver.port}/hook"
        return receiver

    def endpoint(self, *arguments):
        return self.carillon("endpoint", *arguments)

    def set(self, *more):
        return self.endpoint("set", self.tube, "--tube", self.tube, "--url", self.url, *more)

    def shown(self):
        return json.loads(self.endpoint("show", self.tube, "--json"))

    def test_a_job_is_posted_and_the_secret_is_printed_once(self):
        receiver = self.receive(always(answer(204)))
        self.assertRegex(self.set("--header", "X-A:  b", "--concurrency", "3"), r"^whsec_\S{44}\n$")
        self.assertEqual(self.set("--timeout", "3s", "--format", "cloudevents"), "")
        self.carillon("put", "hello", "--tube", self.tube)
        self.wait_until(lambda: self.shown()["delivered"] == 1, "the job is delivered")
        self.assertEqual(receiver.requests[0][2], b"hello")
        text = self.endpoint("show", self.tube)
        self.assertRegex(text, r"(?m)^secrets +[0-9a-f]{16}$")
        self.assertRegex(text, r"(?m)^state +enabled$")
        self.endpoint("delete", self.tube)
        self.fails(
            f"carillon endpoint: there is no endpoint {self.tube}", "endpoint", "show", self.tube
        )

    def test_list(self):
        self.receive(always(answer(204)))
        self.set()
        self.assertEqual(self.endpoint("pause", self.tube), f"paused endpoint {self.tube}\n")
        line = next(line for line in self.endpoint("list").split("\n") if self.tube in line)
        self.assertEqual(line.split(), [self.tube, "paused", self.tube, self.url])
        names = [one["name"] for one in json.loads(self.endpoint("list", "--json"))]
        self.assertIn(self.tube, names)
        told = {"endpoint": self.tube, "result": "resumed"}
        self.assertEqual(json.loads(self.endpoint("resume", self.tube, "--json")), told)
        self.assertEqual(self.shown()["state"], "enabled")
        self.endpoint("delete", self.tube)

    def test_test_tells_what_is_answered(self):
        self.receive(
            lambda client, number: client.sendall(
                answer(204) if number == 1 else answer(500, b"out of order")
            )
        )
        self.set()
        self.assertRegex(self.endpoint("test", self.tube), r"^204 after \d+(ms|s)\n$")
        self.fails(
            f"carillon endpoint: endpoint {self.tube}: it answers 500: out of order",
            "endpoint",
            "test",
            self.tube,
        )
        told = self.run_carillon("endpoint", "test", self.tube, "--json")
        self.assertEqual((told.returncode, json.loads(told.stdout)["status"]), (1, 500))
        self.endpoint("delete", self.tube)

    def test_secrets_of_a_file_and_a_rotation(self):
        self.receive(always(answer(204)))
        secrets = self.directory / "secrets"
        secrets.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
        self.assertEqual(self.set("--secret-file", str(secrets)), "")
        before = self.shown()["secrets"]
        self.assertRegex(self.endpoint("rotate", self.tube, "--overlap", "2h"), r"^whsec_\S{44}\n$")
        after = self.shown()["secrets"]
        self.assertEqual(after[1]["fingerprint"], before[0]["fingerprint"])
        self.assertRegex(self.endpoint("show", self.tube), r"(?m)^secrets .*, .* \(until 2.*\)$")
        self.endpoint("delete", self.tube)

    def test_what_is_wrong_is_said_in_a_line(self):
        def refused(line, *arguments, code=2):
            self.fails(f"carillon endpoint: {line}", "endpoint", *arguments, code=code)

        refused("write the name: show NAME", "show")
        refused('list takes no name: "a"', "list", "a")
        refused("write --url", "set", "a", "--tube", "t")
        refused("write --tube", "set", "a", "--url", "http://a/")
        refused("--url is for set", "show", "a", "--url", "http://a/")
        refused("--overlap is for rotate", "show", "a", "--overlap", "1h")
        refused("--secret-file is for set", "show", "a", "--secret-file", "x")
        refused('--header "x": write "NAME: VALUE"', "set", "a", "--header", "x")
        set_it = ("set", "a", "--tube", "t", "--url")
        why = "--concurrency 65: not a whole number from 1 to 64"
        refused(why, *set_it, "http://a.example/", "--concurrency", "65")
        refused("--url: the scheme of the URL is neither http nor https", *set_it, "ftp://a/")
        refused(
            "cannot read /none: no such file or directory",
            *set_it,
            "http://a/",
            "--secret-file",
            "/none",
            code=1,
        )
        refused("there is no endpoint a", "delete", "a", code=1)


if __name__ == "__main__":
    unittest.main()
