"""Which users may connect to the Unix socket of `carillon serve`: --socket-mode, --socket-group."""

import contextlib
import grp
import os
import pwd
import shutil
import stat
import subprocess
import time
import unittest

import daemon
from wire import Connection

_ROOT = os.geteuid() == 0


def _run_as_nobody(function) -> bool:
    """Calls `function` in a process of the user nobody without its usual groups. Returns true if it
    does not raise."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            nobody = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            function()
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class UnixSocketTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.path = os.path.join(self.folder, "c.sock")

    def command(self, *options: str) -> list:
        return [
            daemon.carillon_path(),
            "serve",
            "--data",
            self.data,
            "--listen",
            f"unix:{self.path}",
            *options,
        ]

    @contextlib.contextmanager
    def serving(self, *options: str, umask: int = 0, command=None):
        process = subprocess.Popen(
            command or self.command(*options),
            umask=umask,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 20
            while True:
                try:
                    Connection(self.path).close()
                    break
                except OSError:
                    self.assertIsNone(process.poll())
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.002)
            yield os.stat(self.path)
        finally:
            process.terminate()
            self.assertEqual(process.wait(20), 0)

    def fails(self, error: str, *options: str, **arguments) -> None:
        run = subprocess.run(
            self.command(*options), capture_output=True, text=True, timeout=60, **arguments
        )
        self.assertEqual([run.stdout, run.stderr], ["", f"carillon serve: {error}\n"])
        self.assertFalse(os.path.exists(self.path))

    def may_nobody_connect(self) -> bool:
        return _run_as_nobody(lambda: Connection(self.path).close())

    def test_the_umask_decides_nothing(self):
        for umask in (0o000, 0o777):
            with self.serving(umask=umask) as file:
                self.assertEqual(stat.filemode(file.st_mode), "srw-------")
            with self.serving("--socket-mode", "0666", umask=umask) as file:
                self.assertEqual(stat.filemode(file.st_mode), "srw-rw-rw-")

    def test_the_group_may_connect_unless_the_mode_says_otherwise(self):
        own = os.getegid()
        with self.serving("--socket-group", str(own)) as file:
            self.assertEqual([stat.filemode(file.st_mode), file.st_gid], ["srw-rw----", own])
        with self.serving("--socket-group", grp.getgrgid(own).gr_name, "--socket-mode", "600") as f:
            self.assertEqual([stat.filemode(f.st_mode), f.st_gid], ["srw-------", own])

    def test_the_socket_for_http_is_as_its_neighbour(self):
        with self.serving("--socket-group", str(os.getegid())):
            self.assertEqual(stat.filemode(os.stat(self.path + ".http").st_mode), "srw-rw----")
        self.assertFalse(os.path.exists(self.path + ".http"))

    @unittest.skipUnless(_ROOT, "only root can become another user")
    def test_another_user(self):
        group = str(pwd.getpwnam("nobody").pw_gid)
        for options, may in (
            ((), False),
            (("--socket-mode", "666"), True),
            (("--socket-mode", "660"), False),
            (("--socket-group", group), True),
            (("--socket-group", group, "--socket-mode", "606"), False),
        ):
            with self.serving(*options):
                self.assertEqual(self.may_nobody_connect(), may, options)

    @unittest.skipUnless(_ROOT, "only root can become another user")
    def test_nobody_connects_before_the_group_is_set(self):
        """Tries without a pause from before the file exists until long after."""

        def connect_for_a_while():
            deadline = time.monotonic() + 0.3
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    return Connection(self.path).close()
            raise TimeoutError

        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(1 if _run_as_nobody(connect_for_a_while) else 0)
            with self.serving("--socket-group", "0"):
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_as_beanstalkd_the_umask_decides(self):
        command = [daemon.carillon_path(), "beanstalkd", "-l", f"unix:{self.path}"]
        with self.serving(command=command, umask=0o027) as file:
            self.assertEqual(stat.filemode(file.st_mode), "srwxr-x---")

    def test_errors(self):
        self.fails(
            '--socket-mode "8": not a mode from 0 to 777, in octal digits; use e.g. 600, 660, 666',
            "--socket-mode",
            "8",
        )
        self.fails(
            '--socket-mode "1000": not a mode from 0 to 777, in octal digits; use e.g. 600, 660, '
            "666",
            "--socket-mode",
            "1000",
        )
        for group in ("no-such-group", "", "-1", "4294967295", "4294967296"):
            self.fails(
                f'--socket-group "{group}": this machine has no such group', "--socket-group", group
            )
        for option in ("mode", "group"):
            run = subprocess.run(
                [daemon.carillon_path(), "serve", "--data", self.data, f"--socket-{option}", "0"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(run.returncode, 2)
            self.assertEqual(
                run.stderr,
                f"carillon serve: --socket-{option} is for a Unix socket; write also --listen "
                "unix:PATH\n",
            )

    @unittest.skipUnless(_ROOT, "only root can become another user")
    def test_a_group_that_is_not_ones_own(self):
        os.chmod(os.path.dirname(self.path), 0o777)
        program = os.path.join(os.path.dirname(self.path), "carillon")
        shutil.copy(daemon.carillon_path(), program)
        nobody = pwd.getpwnam("nobody")
        run = subprocess.run(
            [program, *self.command("--socket-group", "root")[1:]],
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
        )
        error = (
            f"carillon serve: cannot listen on unix:{self.path}: it cannot be given to the group "
            '"root": Operation not permitted; only root gives files to groups that it is not in\n'
        )
        self.assertEqual([run.returncode, run.stderr], [1, error])
        self.assertFalse(os.path.exists(self.path))


if __name__ == "__main__":
    unittest.main()
