"""System tests of `carillon backup`: what a backup holds, and what is left when one fails.
Row Q20 of the product's table."""

import contextlib
import errno
import json
import os
import pty
import random
import signal
import subprocess
import unittest
from pathlib import Path

from cli_case import CliCase

import daemon  # noqa: E402  (cli_case has made it known)
import failing_io  # noqa: E402
import side_by_side  # noqa: E402

_BODY = random.Random(1).randbytes(60_000)  # does not compress


class BackupCase(CliCase):
    def setUp(self):
        super().setUp()
        self.target = str(self.directory / "backup")
        self.data = self.server.command_line(0)[3]

    def checkpoints(self) -> list:
        return [name for name in os.listdir(self.data) if name.startswith("checkpoint-")]

    def wait_until_released(self):
        self.wait_until(lambda: not self.checkpoints(), "the checkpoint is removed")

    def left_over(self) -> list:
        """What there is of a backup that failed."""
        return os.listdir(self.directory)

    def opened(self, path: str) -> daemon.Server:
        """A server on a backup. It is stopped at the end of the test."""
        return self.enterContext(daemon.carillon_serve(path))

    def put_many(self, megabytes: int):
        """Puts jobs that take this many bytes on the disk."""
        client = self.server.connect()
        client.call(b"use " + self.tube.encode())
        for _ in range(megabytes * 17):
            client.put(_BODY)
        client.close()


class DamagedBackupTest(BackupCase):
    def test_a_copy_of_damaged_bytes_is_not_called_whole(self):
        client = self.server.connect()
        client.call(b"use mail")
        for _ in range(10):
            client.put(_BODY)
        first = str(self.directory / "first")
        self.assertEqual(
            self.run_carillon("backup", first).returncode, 0
        )  # so the jobs are in files
        blobs = [name for name in os.listdir(self.data) if name.endswith(".blob")]
        with open(os.path.join(self.data, blobs[0]), "r+b") as file:
            file.seek(1_000)
            byte = file.read(1)
            file.seek(1_000)
            file.write(bytes([byte[0] ^ 1]))
        done = self.run_carillon("backup", self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the server's files are damaged: ", done.stderr)
        self.assertFalse(os.path.exists(self.target))
        self.assertTrue(os.path.exists(self.target + ".damaged"))
        done = self.run_carillon("backup", self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the server's files are damaged: ", done.stderr)
        self.assertIn(b".damaged exists already, so this copy is not kept", done.stderr)
        self.assertFalse(os.path.exists(self.target + ".partial"))


class WholeBackupTest(BackupCase):
    def test_has_all_jobs_as_they_were(self):
        client = self.server.connect()
        client.call(b"use mail")
        client.call(b"watch mail")
        jobs = {}
        for number in range(40):
            delay = (0, 3_600, 40 * 24 * 3_600)[number % 3]
            body = b"job %d" % number if number % 4 else _BODY
            jobs[client.put(body, pri=number, delay=delay, ttr=100 + number)] = body
        reserved = client.call(b"reserve").number()
        buried = client.call(b"reserve").number()
        client.call(b"bury %d 7" % buried)
        gone = client.call(b"reserve").number()
        client.call(b"delete %d" % gone)
        del jobs[gone]

        result = json.loads(self.carillon("backup", self.target, "--json"))
        self.assertEqual(result["directory"], self.target)
        self.assertEqual(result["files"], len(os.listdir(self.target)))
        size = sum(file.stat().st_size for file in os.scandir(self.target))
        self.assertEqual(result["bytes"], size)
        self.assertEqual(result["number"], 42)  # 40 puts, a bury, a delete
        self.assertEqual(os.stat(self.target).st_mode & 0o777, 0o700)
        self.wait_until_released()

        later = client.put(b"later")  # the server goes on; this job is not in the backup
        copy = self.opened(self.target).connect()
        self.assertEqual(copy.call(b"peek %d" % gone).line, b"NOT_FOUND")
        for job, body in jobs.items():
            self.assertEqual(copy.call(b"peek %d" % job).body, body)
            here, there = (c.stats(b"stats-job %d" % job) for c in (client, copy))
            if job == reserved:  # a reservation ends with the server
                self.assertEqual((here["state"], there["state"]), ("reserved", "ready"))
            for field in ("tube", "pri", "ttr", "delay", "buries", "releases"):
                self.assertEqual(here[field], there[field], field)
            if job != reserved:
                self.assertEqual(here["state"], there["state"])
        tube = copy.stats(b"stats-tube mail")
        self.assertEqual([tube[f"current-jobs-{s}"] for s in ("ready", "buried")], ["12", "1"])
        self.assertEqual(copy.call(b"peek %d" % later).line, b"NOT_FOUND")
        self.assertGreater(copy.put(b"new"), max(jobs))
        self.assertEqual(client.call(b"delete %d" % later).line, b"DELETED")

    def test_a_server_on_a_backup(self):
        self.put("one")
        self.carillon("backup", self.target)
        copy = self.opened(self.target)
        copy.connect().put(b"two")
        second = str(self.directory / "second")
        address = f"{daemon.HOST}:{copy.port}"
        self.carillon("backup", second, "--server", address)
        bodies = set()
        of_second = self.opened(second).connect()
        of_second.call(b"watch " + self.tube.encode())
        for _ in range(2):
            bodies.add(of_second.call(b"reserve-with-timeout 0").body)
        self.assertEqual(bodies, {b"one", b"two"})

    def test_one_after_the_other(self):
        for number in range(5):
            line = self.carillon("backup", f"{self.target}-{number}/")
            self.assertRegex(
                line, rf"^{self.target}-{number}: [\d.]+ \wiB in \d+ files, all jobs up to change "
            )
        self.wait_until_released()

    def test_shows_its_progress_on_a_terminal(self):
        self.put_many(10)
        terminal, stderr = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = subprocess.run(
            [daemon.carillon_path(), "backup", self.target],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=self.environment(),
            check=True,
        )
        os.close(stderr)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: all was read, and nobody writes any more
            while part := os.read(terminal, 10_000):
                shown += part
        shown = shown.decode()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(shown.startswith("\r\x1b[Kthe server makes a checkpoint"), shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)  # and nothing is left of it


class RefusedBackupTest(BackupCase):
    def test_a_name_that_is_taken(self):
        os.mkdir(self.target)
        line = f"carillon backup: {self.target} exists; name a directory that does not exist"
        self.fails(line, "backup", self.target)
        self.assertEqual(self.left_over(), ["backup"])

    def test_a_directory_that_is_not_there(self):
        self.fails(
            f"carillon backup: cannot make a directory in {self.target}: no such file or directory",
            "backup",
            self.target + "/monday",
        )
        self.assertEqual(self.left_over(), [])

    def test_no_name(self):
        self.fails("carillon backup: DIR is required", "backup", code=2)
        self.fails('carillon backup: DIR "": not a directory\'s name', "backup", "", code=2)

    def test_a_server_without_a_directory(self):
        http = f"{daemon.HOST}:{daemon.free_port()}"
        self.enterContext(daemon.carillon_beanstalkd("--http", http))
        self.fails(
            "carillon backup: the server keeps its jobs in memory alone: there are no files to "
            "copy",
            *("backup", self.target, "--http", http),
        )
        self.assertEqual(self.left_over(), [])

    def test_a_second_one_at_the_same_time(self):
        client = self.server.http()
        client.request("POST", "/v1/checkpoint")
        first = json.load(client.getresponse())
        self.assertTrue(os.path.exists(first["path"] + "/CURRENT"))
        self.fails("carillon backup: another backup is running", "backup", self.target)
        client.close()
        self.carillon("backup", self.target)


@unittest.skipUnless(failing_io.library(), "needs calls that fail")
class FailedBackupTest(BackupCase):
    def setUp(self):
        super().setUp()
        self.faults = self.enterContext(failing_io.Faults())

    def backup(self, **popen) -> subprocess.Popen:
        """Starts a backup whose system calls fail as self.faults says."""
        process = subprocess.Popen(
            [daemon.carillon_path(), "backup", self.target],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(**self.faults.environment),
            **popen,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def said(self, process: subprocess.Popen) -> str:
        """Waits for its end, which must be a failure. Returns what it said."""
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, error)
        return error.decode()

    def test_a_disk_that_becomes_full(self):
        self.put("x")
        self.faults.fail("write sync", "*/backup.partial/*", errno.ENOSPC, after=3)
        self.assertRegex(
            self.said(self.backup()),
            rf"^carillon backup: cannot write {self.target}.partial/\S+: no space left on "
            r"device\n$",
        )
        self.assertEqual(self.left_over(), [])
        self.wait_until_released()
        self.carillon("backup", self.target)

    def test_a_file_that_cannot_be_read(self):
        self.put("x")
        self.faults.fail("read", "*/checkpoint-*/*.sst", errno.EIO)
        self.assertRegex(
            self.said(self.backup()),
            r"^carillon backup: cannot read .*\.sst: input/output error\n$",
        )
        self.assertEqual(self.left_over(), [])

    def test_interrupted(self):
        self.put_many(20)
        self.faults.fail("write", "*/backup.partial/CURRENT", errno.EIO, holds=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            rule = self.faults.fail(
                "write", "*/backup.partial/jobs-1.data", errno.EINTR, holds=True
            )
            process = self.backup()
            rule.wait("seen")
            process.send_signal(number)
            rule.release()  # EINTR: the write is tried again
            self.assertEqual(
                self.said(process), "carillon backup: interrupted; nothing is left of the backup\n"
            )
            self.assertEqual(self.left_over(), [])
        self.wait_until_released()

    def test_killed(self):
        """What is left is refused by a server and by the next backup, and harms nothing."""
        job = self.put("x")
        rule = self.faults.fail("write", "*/backup.partial/CURRENT", holds=True)
        process = self.backup()
        rule.wait("seen")
        process.kill()
        process.wait()
        partial = self.target + ".partial"
        self.assertEqual(self.left_over(), ["backup.partial"])
        for why in ("cannot be opened", "and no file CURRENT"):
            served = self.run_carillon("serve", "--data", partial, "--listen", f"{daemon.HOST}:0")
            self.assertEqual(served.returncode, 1)
            self.assertIn(why, served.stderr.decode())
            # It was made, but is empty. A moment before, it was not there.
            Path(partial, "CURRENT").unlink(missing_ok=True)
        self.fails(
            f"carillon backup: {partial} exists: another backup to this name is running, or was "
            "killed; if it was killed, remove the directory first",
            *("backup", self.target),
        )
        self.wait_until_released()
        self.carillon("backup", self.target + "-again")
        self.assertTrue(self.has_job(job))

    def test_the_server_is_killed(self):
        job = self.put("x")
        rule = self.faults.fail("write", "*/backup.partial/CURRENT", holds=True)
        process = self.backup()
        rule.wait("seen")
        self.kill_server()
        self.assertEqual(len(self.checkpoints()), 1)
        rule.release()
        self.assertRegex(self.said(process), r"^carillon backup: lost the connection to ")
        self.assertEqual(self.left_over(), [])
        self.server.start()
        self.assertTrue(self.has_job(job))
        self.assertEqual(self.checkpoints(), [])

    def test_the_server_stops(self):
        rule = self.faults.fail("write", "*/backup.partial/CURRENT", holds=True)
        process = self.backup()
        rule.wait("seen")
        self.assertEqual(self.server.terminate(), 0)
        self.assertEqual(self.checkpoints(), [])
        rule.release()
        self.assertRegex(self.said(process), r"^carillon backup: lost the connection to ")
        self.assertEqual(self.left_over(), [])
        self.kill_server()
        self.server.start()

    def test_a_copy_counts_only_if_the_server_has_kept_the_files_to_its_end(self):
        """The server is killed and started while the command sleeps. All files could be read."""
        self.put_many(40)
        for _ in range(5):
            process = self.backup()
            self.wait_until(
                lambda: os.path.exists(self.target + ".partial") or process.poll() is not None,
                "it copies",
            )
            process.send_signal(signal.SIGSTOP)
            if process.poll() is None and not os.path.exists(self.target):
                break
            self.target += "-"  # it was too fast
        self.kill_server()
        self.server.start()
        process.send_signal(signal.SIGCONT)
        self.assertRegex(self.said(process), r"^carillon backup: lost the connection to ")
        self.assertFalse(os.path.exists(self.target))
        self.assertFalse(os.path.exists(self.target + ".partial"))


@unittest.skipUnless(failing_io.library(), "needs calls that fail")
class FailingServerTest(BackupCase):
    """The server's own disk fails while it makes a checkpoint."""

    def until_it_takes_a_put(self, client):
        # The store rests for a second after a full disk, and then goes on in a thread of its own.
        put = lambda: client.call(b"put 0 0 60 4", b"more").word == b"INSERTED"
        self.wait_until(put, "the store goes on")

    def test_a_full_disk_fails_the_backup_alone(self):
        faults = self.enterContext(failing_io.Faults())
        data = str(self.directory / "data")
        server = daemon.carillon_serve(data, environment=faults.environment)
        self.enterContext(server)
        client = server.connect()
        job = client.put(b"x")
        address = f"{daemon.HOST}:{server.port}"
        for pattern in ("*/data/*.sst", "*/checkpoint-*/MANIFEST-*", "*/checkpoint-*/jobs-1.data"):
            with self.subTest(pattern):
                rule = faults.fail("write", pattern, errno.ENOSPC)
                done = daemon.run_carillon("backup", self.target, "--server", address)
                self.assertEqual(done.returncode, 1)
                self.assertIn("No space left on device", done.stderr)
                self.assertEqual(rule.failed, 1)
                self.assertIn("No space left on device", server.log())
                self.assertEqual(client.call(b"peek %d" % job).body, b"x")
                self.until_it_takes_a_put(client)
        self.carillon("backup", self.target, "--server", address)
        self.assertEqual(self.opened(self.target).connect().call(b"peek %d" % job).body, b"x")


if __name__ == "__main__":
    side_by_side.main()
