"""The files of packaging/ name what there is: files, options, versions, ports, the user.

Whether Docker and Kubernetes take them is not tried here. promtool checks the configuration of
Prometheus, and what the alerts on pushes say, if it is installed.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = os.environ["CARILLON_BIN"]
PACKAGING = Path(__file__).resolve().parent.parent.parent / "packaging"
DOCKERFILE = (PACKAGING / "docker/Dockerfile").read_text()
COMPOSE = (PACKAGING / "docker/compose.yaml").read_text()
KUBERNETES = (PACKAGING / "kubernetes/carillon.yaml").read_text()
DEFAULTS = (PACKAGING / "debian/carillon.default").read_text()
UNIT = (PACKAGING / "systemd/carillon.service").read_text()


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class ManifestsTest(unittest.TestCase):
    def test_all_are_of_this_version(self):
        version = output(BIN, "--version").split()[1]
        for text in (DOCKERFILE, COMPOSE, KUBERNETES):
            images = set(re.findall(r"carillon:(\d[\w.]*)", text))
            self.assertEqual(images, {version})
        changelog = (PACKAGING / "debian/changelog").read_text()
        self.assertTrue(changelog.startswith(f"carillon ({version}) "), changelog)

    def test_every_option_is_one_of_the_server(self):
        known = set(re.findall(r"--[\w-]+", output(BIN, "serve", "--help")))
        entry = DOCKERFILE[DOCKERFILE.index("ENTRYPOINT") :]
        lines = (UNIT + DEFAULTS).replace("\\\n", "")
        starts = re.findall("ExecStart=(.*)|CARILLON_OPTIONS=(.*)", lines)
        named = " ".join([entry, *re.findall("(?:command|args): (.*)", COMPOSE + KUBERNETES)])
        named += " ".join(word for start in starts for word in start)
        self.assertGreaterEqual(len(re.findall(r"--[\w-]+", named)), 8)
        self.assertLessEqual(set(re.findall(r"--[\w-]+", named)), known)

    def test_mounted_files_are_there(self):
        mounts = re.findall(r"- (\.\.?/\S+?):", COMPOSE)
        self.assertEqual(len(mounts), 5)
        for mount in mounts:
            self.assertTrue((PACKAGING / "docker" / mount).is_file(), mount)
        self.assertTrue(
            (PACKAGING / "docker" / "../..").resolve().joinpath("CMakeLists.txt").exists()
        )

    def test_ports_and_user_agree(self):
        self.assertEqual(
            set(re.findall(r"\d+", re.search("EXPOSE (.*)", DOCKERFILE)[1])), {"11300", "11380"}
        )
        self.assertEqual(re.findall(r"containerPort: (\d+)", KUBERNETES), ["11300", "11380"])
        (user,) = re.findall(r"^USER (\d+):\d+", DOCKERFILE, re.M)
        for field in ("runAsUser", "runAsGroup", "fsGroup"):
            self.assertRegex(KUBERNETES, rf"\b{field}: {user}\b")

    def test_the_package_takes_every_line_of_the_service(self):
        """packaging/build-deb changes these lines: if they are gone, it changes nothing."""
        self.assertIn("\nDynamicUser=yes\n", UNIT)
        self.assertIn("\nExecStart=/usr/local/bin/carillon serve ", UNIT)
        self.assertIn(" \\\n  --listen 127.0.0.1:11300 --http 127.0.0.1:11380\n", UNIT)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_takes_its_configuration_and_tells_of_pushes(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["docker/prometheus.yml", "prometheus/carillon.rules.yml"]:
                shutil.copy(PACKAGING / name, folder)
            output("promtool", "check", "config", f"{folder}/prometheus.yml")
        output("promtool", "test", "rules", str(Path(__file__).with_name("alerts.yml")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
