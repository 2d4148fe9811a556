"""Runs the image as Docker, Docker Compose and Kubernetes run it, and stops it again.

image_test.py docker carillon:try        # or podman; takes half a minute
"""

import json
import subprocess
import sys
import time
import unittest
import urllib.request
import uuid

ENGINE, IMAGE = sys.argv[1:3]
PLAIN = ["--allow-anonymous", "--allow-plaintext"]
# What compose.yaml and the manifest of Kubernetes ask for.
STRICT = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=512m"]


def engine(*words, check=True):
    done = subprocess.run(
        [ENGINE, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stderr}")
    return done


class ImageTest(unittest.TestCase):
    def setUp(self):
        self.volume = f"carillon-{uuid.uuid4()}"
        engine("volume", "create", self.volume)
        self.addCleanup(engine, "volume", "rm", self.volume)

    def start(self, *options, words=()):
        """Starts a container on the volume. Returns its name."""
        name = f"carillon-{uuid.uuid4()}"
        mount = ["--volume", f"{self.volume}:/var/lib/carillon"]
        self.addCleanup(engine, "rm", "--force", name, check=False)
        engine("run", "--detach", "--name", name, *mount, *options, IMAGE, *words)
        return name

    def serve(self, *options):
        name = self.start(*STRICT, *options, words=PLAIN)
        deadline = time.monotonic() + 30
        while self.health(name) != 0:
            self.assertLess(time.monotonic(), deadline, engine("logs", name).stderr)
            time.sleep(0.2)
        return name

    def health(self, name):
        """Returns the exit code of the image's health check."""
        text = engine("inspect", "--format", "{{json .Config.Healthcheck}}", name).stdout
        kind, *command = json.loads(text)["Test"]
        self.assertEqual(kind, "CMD")
        return engine("exec", name, *command, check=False).returncode

    def carillon(self, name, *words):
        return engine("exec", name, "carillon", *words).stdout.strip()

    def stop(self, name):
        engine("stop", name)
        code = engine("inspect", "--format", "{{.State.ExitCode}}", name).stdout
        self.assertEqual(code.strip(), "0")

    def test_jobs_stay_in_the_volume_when_the_container_is_replaced(self):
        first = self.serve()
        self.assertEqual(engine("exec", first, "id", "-u").stdout, "11300\n")
        status = engine("exec", first, "cat", "/proc/1/status").stdout
        self.assertRegex(status, r"\nUid:\s+11300\s")
        self.assertRegex(status, r"\nCapBnd:\s+0+\n")
        self.assertEqual(self.carillon(first, "put", "hello"), "1")
        found = json.loads(
            engine(
                *["exec", first, "carillon", "check", "--json", "--data", "/var/lib/carillon"],
                check=False,
            ).stdout
        )["findings"]
        levels = {finding["subject"]: finding["level"] for finding in found}
        for subject in ("data", "filesystem", "server", "http", "memory"):
            self.assertEqual(levels[subject], "ok", found)
        self.stop(first)
        engine("rm", first)
        second = self.serve()
        self.assertEqual(self.carillon(second, "peek", "1"), "hello")
        self.stop(second)

    def test_a_published_port_answers(self):
        name = self.serve("--publish", "127.0.0.1::11380")
        address = engine("port", name, "11380/tcp").stdout.split()[0]
        with urllib.request.urlopen(f"http://{address}/healthz", timeout=20) as answer:
            self.assertEqual(answer.read(), b'{"status":"ok"}')

    def ends(self, name):
        """Returns what a container says whose server does not start."""
        self.assertEqual(engine("wait", name).stdout.strip(), "1")
        return engine("logs", name).stderr

    def test_two_servers_on_one_volume(self):
        self.serve()
        second = self.start(words=PLAIN)
        self.assertIn("is open already, in this process or in another container", self.ends(second))

    def test_nobody_is_let_in_unasked(self):
        self.assertIn("--allow-anonymous", self.ends(self.start()))

    def test_without_its_server_it_is_unhealthy(self):
        name = self.start("--entrypoint", "sleep", words=["60"])
        self.assertNotEqual(self.health(name), 0)


if __name__ == "__main__":
    del sys.argv[1:3]
    unittest.main(verbosity=2)
