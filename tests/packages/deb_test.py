"""Installs the Debian package in a fresh Debian 12, in a chroot; uses it; removes and purges it.

deb_test.py PACKAGE.deb        # as root; takes two minutes, and downloads about 150 MB
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

PACKAGE = Path(sys.argv[1]).resolve()
STATE = "var/lib/carillon"  # systemd makes it from StateDirectory=


class DebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="carillon-deb.")
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name) / "root"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=apt", "bookworm", str(cls.root)], check=True
        )
        for name in ["resolv.conf", "hosts"]:
            if Path("/etc", name).exists():
                shutil.copy(f"/etc/{name}", cls.root / "etc" / name)
        shutil.copy(PACKAGE, cls.root / "carillon.deb")
        # As in a container: nothing is started.
        policy = cls.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        # The machine's own way to the archive.
        for settings in Path("/etc/apt/apt.conf.d").glob("*prox*"):
            shutil.copy(settings, cls.root / "etc/apt/apt.conf.d")

    def inside(self, *command, check=True):
        done = subprocess.run(
            ["chroot", str(self.root), *command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def has(self, path):
        return os.path.lexists(self.root / path)

    def start(self, port):
        """Starts the server as the unit says, and in a directory as systemd makes it."""
        unit = (self.root / "lib/systemd/system/carillon.service").read_text()
        set_to = lambda name: re.findall(f"^{name}=(.*)$", unit, re.M)
        self.assertEqual(set_to("StateDirectory"), [STATE.rsplit("/", maxsplit=1)[-1]])
        self.assertEqual(set_to("StateDirectoryMode"), ["0700"])
        self.assertEqual(set_to("UMask"), ["0077"])
        mode = ["-m", *set_to("StateDirectoryMode")]
        self.inside("install", "-d", *mode, "-o", "carillon", "-g", "carillon", f"/{STATE}")
        options = self.root / "etc/default/carillon"
        text = re.sub(r"\b11300\b", str(port), options.read_text())
        options.write_text(re.sub(r"\b11380\b", str(port + 1), text))
        (start,) = re.findall("^ExecStart=(.*)$", unit.replace("\\\n", ""), re.M)
        (user,) = set_to("User")
        script = f". /etc/default/carillon; STATE_DIRECTORY=/{STATE}; exec {start}"
        process = subprocess.Popen(
            ["chroot", f"--userspec={user}:{user}", str(self.root), "sh", "-c", script],
            umask=int(set_to("UMask")[0], 8),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while "version" not in self.carillon(port, "stats", check=False):
            self.assertIsNone(process.poll(), "the server has ended")
            self.assertLess(time.monotonic(), deadline, "the server does not answer")
            time.sleep(0.1)
        return process

    def carillon(self, port, *words, check=True):
        return self.inside("carillon", *words, "--server", f"127.0.0.1:{port}", check=check)

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)

    def test_install_use_remove_and_purge(self):
        self.inside("apt-get", "update")
        self.inside("apt-get", "install", "-y", "--no-install-recommends", "/carillon.deb")
        self.assertRegex(self.inside("carillon", "--version"), r"^carillon \d")
        self.assertIn(":/var/lib/carillon:", self.inside("getent", "passwd", "carillon"))
        self.assertTrue(self.has("etc/systemd/system/multi-user.target.wants/carillon.service"))
        self.assertFalse(self.has("etc/systemd/system/sockets.target.wants/carillon.socket"))
        verify = ["systemd-analyze", "verify", f"--root={self.root}", "--man=no"]
        units = ["carillon.service", "carillon.socket"]
        verified = subprocess.run(
            verify + units, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines = [line for line in verified.stdout.splitlines() if "carillon" in line]
        self.assertEqual(lines, [])

        port = random.randrange(16_000, 32_000)
        server = self.start(port)
        self.carillon(port, "put", "--delay", "40d", "--key", "far", "later")
        with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/") as console:
            self.assertIn(b"Carillon", console.read())
        self.carillon(port, "put", "hello")
        self.assertIn("hello", self.carillon(port, "reserve", "--delete", "--timeout", "10s"))
        self.stop(server)
        for path in [self.root / STATE, *(self.root / STATE).iterdir()]:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        server = self.start(port)
        self.assertIn("later", self.carillon(port, "peek", "--key", "far"))
        self.stop(server)

        for page in ["carillon.1", "carillon-serve.1"]:
            self.assertTrue(self.has(f"usr/share/man/man1/{page}.gz"))
        completion = self.root / "usr/share/bash-completion/completions/carillon"
        self.assertIn("--sync", completion.read_text())

        self.inside("apt-get", "remove", "-y", "carillon")
        for path in ["usr/bin/carillon", "lib/systemd/system/carillon.service"]:
            self.assertFalse(self.has(path), path)
        self.assertTrue(self.has("etc/default/carillon"))
        self.inside("apt-get", "purge", "-y", "carillon")
        self.assertFalse(self.has("etc/default/carillon"))
        self.assertFalse(self.has("etc/systemd/system/multi-user.target.wants/carillon.service"))
        self.assertTrue(os.listdir(self.root / STATE), "the jobs stay")

        self.inside("apt-get", "install", "-y", "--no-install-recommends", "/carillon.deb")
        server = self.start(port)
        self.assertIn("later", self.carillon(port, "peek", "--key", "far"))
        self.stop(server)


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
