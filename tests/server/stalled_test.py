"""Clients that keep the server waiting, seen from outside: `carillon serve --stall-timeout` and
`--idle-timeout`.

Lower bounds are exact. Upper bounds are generous, because other tests run on the same machine.
"""

import subprocess
import time

import daemon
import side_by_side
from wire import said

_LATE = 10.0  # seconds


def _times_asleep(pid: int) -> int:
    """How often the main thread has gone to sleep so far."""
    with open(f"/proc/{pid}/task/{pid}/status", encoding="ascii") as status:
        return int(
            next(line for line in status if line.startswith("voluntary_ctxt_switches")).split()[1]
        )


class StalledTest(daemon.DataCase):
    def check_closed(self, connection, since: float, seconds: float) -> None:
        connection.wait_for_end(seconds + _LATE)
        took = time.monotonic() - since
        self.assertGreaterEqual(took, seconds, "early")
        self.assertLess(took, seconds + _LATE, "late")

    def test_half_a_put(self):
        server = self.start("--stall-timeout", "1s")
        half, idle, waiting = (server.connect() for _ in range(3))
        waiting.send(b"watch other\r\nignore default\r\nreserve\r\n")
        since = time.monotonic()
        half.send(b"put 0 0 60 5\r\nhel")
        self.check_closed(half, since, 1.0)
        self.assertIn("sent no more of a command that it had begun for 1 s", server.log())
        stats = idle.stats()
        for name, count in (("closed-stalled", "1"), ("closed-idle", "0")):
            self.assertEqual(stats["connections-" + name], count)
        self.assertEqual(stats["current-waiting"], "1")

    def test_an_idle_connection(self):
        server = self.start("--idle-timeout", "1s")
        idle, waiting = server.connect(), server.connect()
        waiting.send(b"reserve\r\n")
        since = time.monotonic()
        self.assertEqual(idle.call(b"use a"), said(b"USING a"))
        self.check_closed(idle, since, 1.0)
        self.assertIn("sent no command for 1 s", server.log())
        stats = server.connect().stats()
        self.assertEqual((stats["connections-closed-idle"], stats["current-waiting"]), ("1", "1"))

    def test_a_client_that_may_wait_causes_no_wake_ups(self):
        server = self.start("--stall-timeout", "1s")
        idle, waiting = server.connect(), server.connect()
        waiting.send(b"reserve\r\n")
        idle.send(b"use ")  # from here on the server tracks the connection
        time.sleep(0.1)
        self.assertEqual(idle.call(b"a"), said(b"USING a"))
        time.sleep(2.0)  # after this the server no longer tracks it
        before = _times_asleep(server.process.pid)
        time.sleep(3.0)
        self.assertLessEqual(_times_asleep(server.process.pid) - before, 1)

    def test_durations_out_of_range_are_refused(self):
        for flag in ("--stall-timeout", "--idle-timeout"):
            for value in ("60", "999ms", "366d", "-1s", "soon"):
                done = subprocess.run(
                    [daemon.carillon_path(), "serve", f"{flag}={value}"],
                    capture_output=True,
                    text=True,
                    timeout=30,
                )
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(flag, done.stderr)
                self.assertIn(f'"{value}"', done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    side_by_side.main()
