"""`carillon top` on a pseudo-terminal: what it shows, its keys, a server that restarts, and that it
leaves the terminal as it was."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import termios
import time
import unittest

from cli_case import CliCase, daemon

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Top:
    """`carillon top` on a terminal of its own."""

    def __init__(self, environment, *arguments, rows=24, columns=80):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            path = daemon.carillon_path()
            os.execve(path, [path, "top", *arguments], environment)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536).decode()

    def screen(self):
        """Returns the lines of the last screen that was drawn as a whole."""
        frames = self.text.split("\x1b[H")[1:]
        whole = [frame.split("\x1b[J")[0] for frame in frames if "\x1b[J" in frame]
        # The terminal makes \r\n of \n.
        return re.sub("\x1b\\[K|\r", "", whole[-1]).split("\n") if whole else []

    def until(self, what):
        """Waits until what(screen) is true, and returns the screen."""
        end = time.monotonic() + 30
        while True:
            self.read()
            screen = self.screen()
            if what([COLOUR.sub("", line) for line in screen]):
                return screen
            if time.monotonic() > end:
                raise AssertionError("never seen; the screen is\n" + "\n".join(screen))
            time.sleep(0.02)

    def sees(self, pattern):
        return self.until(lambda screen: re.search(pattern, "\n".join(screen)))

    def end(self):
        """Returns the exit code, or the signal below 0. The terminal must be as before."""
        end = time.monotonic() + 30
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.read()
            if pid:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError("it does not end")
            time.sleep(0.02)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is another one"
        assert self.text.count(ENTER) == self.text.count(LEAVE), self.text[-200:]
        return os.waitstatus_to_exitcode(status)

    def close(self):
        for fd in (self.master, self.slave):
            os.close(fd)


class TopTest(CliCase):
    def top(self, *arguments, **size):
        environment = self.environment(TERM="xterm")
        environment.pop("NO_COLOR", None)
        environment.update(size.pop("environment", {}))
        top = Top(environment, *arguments, **size)
        self.addCleanup(top.close)
        return top

    def put(self, tube=None, seconds=0, jobs=1):
        """Puts jobs with this delay."""
        with socket.create_connection(self.server.address) as connection:
            put = f"put 0 {seconds} 60 1\r\nx\r\n" * jobs
            connection.sendall(f"use {tube or self.tube}\r\n{put}quit\r\n".encode())
            while connection.recv(4096):
                pass

    def test_it_shows_jobs_and_tubes_and_q_ends_it(self):
        self.put("shown", 3600)
        self.put("shown")
        top = self.top()
        top.sees(r"Jobs +\d+ delayed")
        screen = top.sees(r"\nshown +1 +1 +0 +0")
        self.assertTrue(any("\x1b[" in line for line in screen), "no colours")
        for line in screen:
            self.assertLessEqual(len(COLOUR.sub("", line)), 80)
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_rates_and_lateness(self):
        top = self.top()
        top.sees(r"Rates +0 put/s")
        for _ in range(3):
            self.carillon("put", "--tube", self.tube, "--delay", "1ms", "x")
            self.carillon("reserve", "--tube", self.tube, "--delete")
        top.sees(r"Late +half <= \d+ m?s")
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_s_sorts_by_the_next_column(self):
        for tube, delayed, ready in (("sort-a", 90, 5), ("sort-b", 80, 9)):
            self.put(tube, 3600, jobs=delayed)
            self.put(tube, jobs=ready)

        def order(screen):
            return re.findall("sort-([ab])", "\n".join(screen))

        top = self.top()
        top.until(lambda screen: order(screen) == ["a", "b"])
        top.press("s")
        top.until(lambda screen: order(screen) == ["b", "a"])
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_it_follows_the_size(self):
        for n in range(30):
            self.put(f"size-{n}")
        top = self.top()
        top.until(lambda screen: len(screen) == 24 and screen[-1].startswith("... "))
        top.resize(10, 60)
        screen = top.until(lambda screen: len(screen) == 10)
        self.assertLessEqual(max(len(COLOUR.sub("", line)) for line in screen), 60)
        top.resize(60, 120)
        top.until(lambda screen: len(screen) > 30)
        top.resize(2, 5)
        top.until(lambda screen: len(screen) == 2)
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_signals_restore_the_terminal(self):
        for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(stop):
                top = self.top()
                top.sees("Jobs")
                os.kill(top.pid, stop)
                self.assertEqual(top.end(), 0)
        top = self.top()
        top.sees("Jobs")
        top.press("\x1c\x03")  # Ctrl-\ does nothing, Ctrl-C ends it
        self.assertEqual(top.end(), 0)

    def test_ctrl_z_stops_it_with_the_terminal_restored(self):
        top = self.top()
        top.sees("Jobs")
        top.press("\x1a")
        _, status = os.waitpid(top.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        self.assertEqual(termios.tcgetattr(top.slave), top.before)
        os.kill(top.pid, signal.SIGCONT)
        top.until(lambda _: top.text.count(ENTER) == 2)
        top.sees("Jobs")
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_no_color(self):
        top = self.top(environment={"NO_COLOR": "1"})
        screen = top.sees("Jobs")
        self.assertFalse(COLOUR.search("\n".join(screen)))
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_once(self):
        self.put(seconds=3600)
        lines = self.carillon("top", "--once").splitlines()
        self.assertRegex(lines[0], r"^carillon top - \S+ on .*, up ")
        self.assertRegex(lines[2], r"^Rates +\d")
        self.assertNotIn("\x1b", "".join(lines))
        self.assertEqual(self.carillon("top").splitlines()[1], lines[1], "without a terminal")

    def test_json(self):
        storm = int(time.time() / 60) * 60_000 + 1_830_000
        self.put(seconds=storm // 1000 - int(time.time()), jobs=25)
        text = self.carillon("top", "--once", "--json", "--sort", "name")
        self.assertEqual(text.count("\n"), 1)
        shot = json.loads(text)
        self.assertIn(
            {"delayed": 25, "ready": 0, "reserved": 0, "buried": 0},
            [tube["jobs"] for tube in shot["tubes"] if tube["name"] == self.tube],
        )
        self.assertEqual(shot["tubes"], sorted(shot["tubes"], key=lambda tube: tube["name"]))
        storms = [one for one in shot["storms"] if one["tube"] == self.tube]
        self.assertEqual(sum(one["jobs"] for one in storms), 25)
        self.assertIsNotNone(shot["rates"]["put"])
        self.assertIsNotNone(shot["rates"]["fired"])

    def test_it_goes_on_when_the_server_restarts(self):
        top = self.top()
        top.sees("Storms")
        self.server.kill()
        top.until(lambda screen: not re.match("Storms", screen[4]))
        top.press("s")  # it is not busy
        self.server.start_again()
        top.until(lambda screen: re.match("Storms", screen[4]))
        top.press("q")
        self.assertEqual(top.end(), 0)

    def test_what_is_wrong_is_told(self):
        self.fails(
            'carillon top: --sort "x": write delayed, ready, reserved, buried, puts, deletes or '
            "name",
            "top",
            "--sort",
            "x",
            code=2,
        )
        done = self.run_carillon("top", env=self.environment(CARILLON_SERVER="127.0.0.1:1"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"carillon top: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
