"""System tests of `carillon check`: what it finds on real directories and servers, and that it
leaves nothing behind."""

import errno
import json
import os
import shutil
import signal
import subprocess
import unittest

from cli_case import CliCase

import daemon  # noqa: E402  (cli_case has made it known)
import failing_io  # noqa: E402

_LEVELS = ["ok", "warn", "fail"]


class DamageTest(CliCase):
    """A bit is flipped in the index of due times, in which all five jobs lie."""

    def setUp(self):
        super().setUp()
        self.data = str(self.directory / "data")
        server = daemon.carillon_serve(self.data)
        with server:
            client = server.connect()
            client.call(b"use mail")
            for number in range(5):
                client.put(b"job %d" % number, delay=3_600 * (number // 4))
            client.close()
            self.assertEqual(server.terminate(), 0)  # so the jobs are in files

    def flip(self, family=b"nameindex"):
        for name in os.listdir(self.data):
            path = os.path.join(self.data, name)
            with open(path, "rb") as file:
                content = file.read()
            if name.endswith(".sst") and family in content:
                self.flip_in(path, 40)

    @staticmethod
    def flip_in(path, place):
        with open(path, "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1]))

    def run_check(self, *arguments, code=None):
        done = subprocess.run(
            [daemon.carillon_path(), "check", "--json", "--data", self.data, "--http", "none"]
            + list(arguments),
            stdout=subprocess.PIPE,
            env=self.environment(),
            timeout=60,
            check=False,
        )
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout)
        found = json.loads(done.stdout)["findings"]
        return {finding["subject"]: finding for finding in found}

    def test_the_exit_code_of_a_salvage_tells_what_came_of_it(self):
        whole, mended = str(self.directory / "whole"), str(self.directory / "mended")
        self.assertEqual(self.run_check("--salvage", whole, code=0)["salvage"]["level"], "ok")
        self.assertFalse(os.path.exists(whole + ".lost"))
        self.flip()
        self.assertEqual(self.run_check(code=2)["damage"]["level"], "fail")
        found = self.run_check("--salvage", mended, code=1)
        self.assertEqual({found[name]["level"] for name in ("damage", "jobs", "lost")}, {"warn"})
        found = self.run_check("--salvage", mended, code=2)
        self.assertRegex(found["salvage"]["found"], r"cannot make .*mended\.lost: file exists")
        os.remove(mended + ".lost")
        found = self.run_check("--salvage", mended, code=2)
        self.assertRegex(found["salvage"]["found"], r"mended exists; name a directory")
        self.assertFalse(os.path.exists(mended + ".lost"))

    def test_a_whole_directory_is_whole(self):
        found = self.run_check()
        self.assertEqual(found["jobs"]["level"], "ok")
        self.assertRegex(found["jobs"]["found"], r" files?, every checksum is right$")

    def test_a_directory_in_use_is_not_read(self):
        self.enterContext(daemon.carillon_serve(self.data))
        self.assertNotIn("jobs", self.run_check())

    def test_what_is_damaged_is_told(self):
        self.flip()
        before = sorted(os.listdir(self.data))
        found = self.run_check()
        self.assertEqual(sorted(os.listdir(self.data)), before)
        self.assertRegex(found["damage"]["found"], r"\.sst")
        self.assertEqual(found["damage"]["advice"], 'the line "jobs" names the jobs')
        self.assertRegex(found["jobs"]["found"], r"^5 jobs cannot be read \(1, 2, 3, 4, 5\); 0 ")

    def test_a_damaged_manifest_needs_a_backup(self):
        for name in os.listdir(self.data):
            if name.startswith("MANIFEST-"):
                self.flip_in(os.path.join(self.data, name), 20)
        found = self.run_check(code=2)
        self.assertEqual(found["jobs"]["advice"], "go back to a backup")
        self.assertRegex(found["damage"]["advice"], "^no job is known to be lost by it$")
        found = self.run_check("--salvage", str(self.directory / "new"), code=2)
        self.assertRegex(found["salvage"]["found"], "only a backup helps")

    def test_what_is_lost_and_is_no_job_is_told(self):
        self.flip(b"namedefault")
        new = str(self.directory / "new")
        found = self.run_check("--salvage", new, code=1)
        self.assertEqual(found["salvage"]["found"], f"{new} has 5 jobs")
        self.assertEqual(found["damage"]["advice"], "no job is known to be lost by it")
        with open(new + ".lost", encoding="utf-8") as file:
            lost = [json.loads(line)["left_out"] for line in file]
        self.assertRegex(" ".join(lost), "endpoints, and settings of tubes without jobs, may be")

    def test_salvage_lists_what_is_not_whole(self):
        self.flip()
        new = str(self.directory / "new")
        found = self.run_check("--salvage", new)
        self.assertEqual(found["salvage"]["found"], f"{new} has 0 jobs")
        with open(new + ".lost", encoding="utf-8") as file:
            lost = [json.loads(line) for line in file]
        self.assertEqual([job["id"] for job in lost], [1, 2, 3, 4, 5])
        self.assertEqual([job["body"] for job in lost], [f"job {n}" for n in range(5)])
        self.assertEqual({job["tube"] for job in lost}, {"mail"})
        server = self.enterContext(daemon.carillon_serve(new))
        self.assertGreater(server.connect().put(b"next"), 5)


class CheckTest(CliCase):
    def setUp(self):
        super().setUp()
        self.data = str(self.directory / "data")
        os.mkdir(self.data, 0o700)

    def check(self, *arguments, env=None, **popen) -> dict:
        """Runs it with --json. Returns the findings by their subject."""
        done = subprocess.run(
            [daemon.carillon_path(), "check", "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env or self.environment(),
            timeout=60,
            check=False,
            **popen,
        )
        self.assertEqual(done.stderr, b"")
        result = json.loads(done.stdout)
        findings = {finding["subject"]: finding for finding in result["findings"]}
        worst = max(_LEVELS.index(finding["level"]) for finding in findings.values())
        self.assertEqual(result["result"], _LEVELS[worst])
        self.assertEqual(done.returncode, worst)
        for finding in findings.values():
            self.assertEqual(finding["level"] == "ok", "advice" not in finding, finding)
        return findings

    def test_a_running_server(self):
        data = self.server.command_line(0)[3]
        before = sorted(os.listdir(data))
        found = self.check("--data", data, "--http", "none")
        self.assertEqual(sorted(os.listdir(data)), before)
        self.assertEqual(found["data"]["level"], "ok")
        self.assertRegex(
            found["server"]["found"], r"^answers at .*, version \d+\.\d+\.\d+, up for \d+ s$"
        )
        self.assertEqual(found["server"]["level"], "ok")
        self.assertRegex(
            found["sync"]["found"], r"^[\d.]+ ms median, [\d.]+ ms p99, [\d.]+ ms worst of \d+ "
        )
        self.assertNotIn("http", found)
        for subject in ("space", "filesystem", "descriptors", "memory", "swap", "clock"):
            self.assertIn(subject, found)

    def test_tells_how_long_syncs_take_by_the_metrics_of_the_server(self):
        with daemon.carillon_serve(self.data, "--http", "127.0.0.1:0") as server:
            server.connect().put(b"job")
            address = f"127.0.0.1:{server.port}"
            http = f"127.0.0.1:{server.http_port()}"
            found = self.check("--data", self.data, "--server", address, "--http", http)
            self.assertRegex(
                found["http"]["found"], r"\d+ waits? for syncs: half within \S+ ms, 99 % within "
            )
            server.process.send_signal(signal.SIGUSR1)
            self.wait_until(
                lambda: "puts" in self.check("--server", address, "--http", http),
                "it says that the server is draining",
            )

    def test_a_server_with_tokens(self):
        tokens, own = f"{self.directory}/tokens", f"{self.directory}/own"
        new = [daemon.carillon_path(), "token", "new", "--name", "ops", "--scope", "read"]
        with open(own, "wb") as out:
            subprocess.run([*new, "--file", tokens], stdout=out, check=True)
        with daemon.carillon_serve(self.data, "--tokens", tokens) as server:
            at = ["--server", f"127.0.0.1:{server.port}", "--http", "none"]
            refused = self.check(*at)["server"]
            self.assertEqual(refused["level"], "fail")
            self.assertIn("a token is needed", refused["found"])
            self.assertIn("--token-file", refused["advice"])
            self.assertEqual(self.check(*at, "--token-file", own)["server"]["level"], "ok")

    def test_a_port_of_another_program(self):
        found = self.check("--data", self.data, "--http", f"127.0.0.1:{self.server.port}")
        self.assertEqual(found["http"]["level"], "warn")
        self.assertIn("speaks the beanstalk protocol, and not HTTP", found["http"]["found"])

    def test_buried_jobs(self):
        for text in (
            "1 job is dead or buried, and nobody gets it",
            "2 jobs are dead or buried, and nobody gets them",
        ):
            self.carillon("bury", self.put("a"))
            found = self.check("--data", self.data, "--http", "none")
            self.assertEqual((found["buried"]["level"], found["buried"]["found"]), ("warn", text))

    def test_before_there_is_a_server(self):
        address = f"127.0.0.1:{daemon.free_port()}"
        missing = self.data + "/further/down"
        found = self.check("--data", missing, "--server", address)
        self.assertEqual(found["server"]["level"], "ok")
        self.assertTrue(found["server"]["found"].startswith("none answers"))
        self.assertEqual(
            found["data"]["found"], f"{missing} does not exist; the server will make it"
        )
        self.assertEqual(os.listdir(self.data), [])

    def test_a_server_that_uses_the_directory_and_is_not_at_the_address(self):
        data = self.server.command_line(0)[3]
        address = f"127.0.0.1:{daemon.free_port()}"
        found = self.check("--data", data, "--server", address)
        self.assertEqual(found["server"]["level"], "fail")
        self.assertIn(f"process {self.server.process.pid} uses", found["server"]["found"])

    def test_a_directory_that_others_may_read(self):
        """The server warns of it at its start in the same words."""
        os.chmod(self.data, 0o750)
        found = self.check("--data", self.data)
        self.assertEqual(found["data"]["level"], "warn")
        self.assertEqual(found["data"]["advice"], f"chmod 700 {self.data}")
        warning = f"{found['data']['found']} (chmod 700 {self.data})\n"
        for mode, warnings in ((0o750, 1), (0o700, 0)):
            os.chmod(self.data, mode)
            with self.subTest(f"{mode:o}"), daemon.carillon_serve(self.data) as server:
                server.connect().put(b"x")  # it has logged its start by then
                self.assertEqual(server.log().count(warning), warnings, server.log())

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_directory_of_another_user(self):
        os.chmod(self.directory, 0o755)
        os.chmod(self.data, 0o555)
        # That user may not reach the folder of the build.
        program = shutil.copy(daemon.carillon_path(), self.directory)
        other_user = {"executable": program, "preexec_fn": lambda: os.setuid(65_534)}
        found = self.check("--data", self.data, **other_user)
        self.assertEqual(found["data"]["level"], "fail")
        self.assertIn("is not writable: permission denied", found["data"]["found"])
        self.assertNotIn("sync", found)

    def test_a_file_in_its_place(self):
        file = self.directory / "file"
        file.write_text("hello")
        found = self.check("--data", str(file))
        self.assertEqual(found["data"]["found"], f"{file} is not a directory")

    def test_a_full_disk(self):
        with failing_io.Faults() as faults:
            faults.fail("write", self.data + "/*", errno.ENOSPC, times=failing_io.FOR_EVER)
            environment = self.environment(**faults.environment)
            found = self.check("--data", self.data, env=environment)
        self.assertEqual(found["sync"]["level"], "fail")
        self.assertIn("no space left on device", found["sync"]["found"])
        self.assertEqual(found["sync"]["advice"], "free some space")
        self.assertEqual(os.listdir(self.data), [])

    def test_few_descriptors(self):
        address = f"127.0.0.1:{daemon.free_port()}"
        for limit, level in ((100, "fail"), (1_024, "warn")):
            command = ["sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"', daemon.carillon_path()]
            command += ["check", "--json", "--data", self.data, "--server", address]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
            found = {one["subject"]: one for one in json.loads(done.stdout)["findings"]}
            self.assertEqual(found["descriptors"]["level"], level)

    def test_lines_fit_a_terminal(self):
        done = self.run_carillon("check", "--data", self.data)
        for line in done.stdout.decode().splitlines():
            words = line[20:].split()
            self.assertTrue(len(line) <= 80 or len(words) <= 2, line)
            self.assertRegex(line, r"^(ok  |warn|fail|    )  ")

    def test_an_interrupt_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("check", "--data", self.data)
            while process.poll() is None and not self.blocks(process.pid, number):
                pass
            process.send_signal(number)
            process.communicate(timeout=20)
            # It may have been done already.
            self.assertIn(process.returncode, (0, 1, 2))
            self.assertEqual(os.listdir(self.data), [])

    @staticmethod
    def blocks(pid: int, number: int) -> bool:
        """Whether the process has come so far that it consumes the signal."""
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            masks = [line for line in status if line.startswith("SigBlk")]
        return bool(masks) and bool(int(masks[0].split()[1], 16) >> (number - 1) & 1)

    def test_wrong_usage(self):
        for option in ("--data", "--salvage"):
            wrong = f'carillon check: {option} "": not a directory\'s name'
            self.fails(wrong, "check", option, "", code=2)


if __name__ == "__main__":
    unittest.main()
