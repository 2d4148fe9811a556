"""The files of packaging/ name what there is: files, options, versions, ports, the user. The
image's health check works, and a server is reached by the names that it has among containers.

Nothing is run in a container here; `make test-image` does that. promtool checks the configuration
of Prometheus, and what the alerts on pushes say, if it can be had.
"""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

import certificates
import daemon
import promtool

BIN = os.environ["CARILLON_BIN"]
PACKAGING = Path(__file__).resolve().parent.parent.parent / "packaging"
DOCKERFILE = (PACKAGING / "docker/Dockerfile").read_text()
COMPOSE = (PACKAGING / "docker/compose.yaml").read_text()
KUBERNETES = (PACKAGING / "kubernetes/carillon.yaml").read_text()
PROMETHEUS = (PACKAGING / "docker/prometheus.yml").read_text()
DEFAULTS = (PACKAGING / "debian/carillon.default").read_text()
UNIT = (PACKAGING / "systemd/carillon.service").read_text()


def words_of(manifest):
    """Returns the words that a manifest gives to the image's command."""
    (words,) = re.findall(r"^ *(?:command|args): (\[.*?\])$", manifest, re.M | re.S)
    return json.loads(words)


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
        named = " ".join([entry, *words_of(COMPOSE), *words_of(KUBERNETES)])
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

    def serve(self, *options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        server = daemon.carillon_serve(folder.name, "--http", f"{daemon.HOST}:0", *options)
        self.addCleanup(server.__exit__)
        return server.start()

    def health(self, port):
        """Returns the exit code of the image's health check, asking at this port."""
        check = re.search(r"^HEALTHCHECK .*?CMD (\[.*?\])$", DOCKERFILE, re.M | re.S)[1]
        command = json.loads(check.replace("\\\n", "").replace("/11380 ", f"/{port} "))
        self.assertIn(f"/{port} ", command[-1])
        return subprocess.run(command, check=False, timeout=20, stderr=subprocess.PIPE).returncode

    def test_the_image_is_healthy_while_it_serves(self):
        server = self.serve()
        port = server.http_port()
        self.assertEqual(self.health(port), 0)
        server.kill()
        self.assertNotEqual(self.health(port), 0)

    def test_the_image_is_healthy_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = certificates.Authority(folder).sign("server")
            server = self.serve("--tls-cert", certificate, "--tls-key", key)
        self.assertEqual(self.health(server.http_port()), 0)

    def answers(self, manifest, names):
        """A server with the manifest's options answers a probe that names it so."""
        with tempfile.TemporaryDirectory() as folder:
            tokens = f"{folder}/tokens"
            output(BIN, "token", "new", "--name", "ops", "--scope", "admin", "--file", tokens)
            words = [word.replace("$(NAMESPACE)", "prod") for word in words_of(manifest)]
            server = self.serve(*[tokens if word == "/tokens/tokens" else word for word in words])
        for name in names:
            with self.subTest(name):
                client = http.client.HTTPConnection(daemon.HOST, server.http_port(), timeout=20)
                self.addCleanup(client.close)
                client.request("GET", "/healthz", headers={"Host": f"{name}:11380"})
                self.assertEqual(client.getresponse().status, 200)

    def test_prometheus_reaches_the_server_by_its_name(self):
        (target,) = re.findall(r'targets: \["(.*):11380"\]', PROMETHEUS)
        self.answers(COMPOSE, [target])

    def test_kubernetes_reaches_the_server_by_each_of_its_names(self):
        full = ".prod.svc.cluster.local"
        names = ["carillon", "carillon.prod", "carillon.prod.svc", f"carillon{full}"]
        names += ["carillon-0.carillon", f"carillon-0.carillon{full}"]
        # A probe names the pod by its address.
        self.answers(KUBERNETES, [*names, "10.1.2.3"])
        probes = re.findall("httpGet: (.*)", KUBERNETES)
        self.assertEqual(probes, ["{path: /healthz, port: http}"] * 3)
        field = "{name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}"
        self.assertIn(field, KUBERNETES)

    def test_only_its_user_may_enter_the_directory_of_the_jobs(self):
        for line in ("StateDirectory=carillon", "StateDirectoryMode=0700", "UMask=0077"):
            self.assertIn(f"\n{line}\n", UNIT)
        self.assertRegex(
            DOCKERFILE, r"install -d -m 700 -o carillon -g carillon /var/lib/carillon\n"
        )

    def test_the_package_takes_every_line_of_the_service(self):
        """packaging/build-deb changes these lines: if they are gone, it changes nothing."""
        self.assertIn("\nDynamicUser=yes\n", UNIT)
        self.assertIn("\nExecStart=/usr/local/bin/carillon serve ", UNIT)
        self.assertIn(" \\\n  --listen 127.0.0.1:11300 --http 127.0.0.1:11380\n", UNIT)

    def test_prometheus_takes_its_configuration_and_reports_pushes(self):
        program = promtool.find()
        if not program:
            self.skipTest(promtool.MISSING)
        with tempfile.TemporaryDirectory() as folder:
            for name in ["docker/prometheus.yml", "prometheus/carillon.rules.yml"]:
                shutil.copy(PACKAGING / name, folder)
            output(program, "check", "config", f"{folder}/prometheus.yml")
        output(program, "test", "rules", str(Path(__file__).with_name("alerts.yml")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
