"""Time as a client sees it: each delay, time-out, ttr and pause lasts as long as asked for, and not
much longer.

The lower bound is exact. The upper bound is generous, because other tests run on the same machine.
"""

import random
import time

import daemon
import side_by_side
from wire import TIMED_OUT, said, setting

_LATE = 1.5  # seconds
_SEED = setting("CARILLON_SEED", random.SystemRandom().randrange(2**32))


class _Watch:
    """Measures by the wall clock, which due times follow, and by the monotonic clock, which
    time-outs follow. While the wall clock is being adjusted the two differ a little, so the longer
    time counts."""

    def __init__(self):
        self._wall, self._steady = time.time_ns(), time.monotonic_ns()

    def seconds(self) -> float:
        return max(time.time_ns() - self._wall, time.monotonic_ns() - self._steady) / 1e9


class TimingTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.c = self.start().connect()

    def reserved(self) -> int:
        reply = self.c.reply()
        self.assertEqual(reply.word, b"RESERVED", reply)
        return reply.number()

    def on_time(self, elapsed: float, seconds: float) -> None:
        self.assertGreaterEqual(elapsed, seconds, "early")
        self.assertLessEqual(elapsed, seconds + _LATE, "late")

    def test_two_hundred_delays_none_early(self):
        rng = random.Random(_SEED)
        due, early, late = {}, [], []
        for n in range(200):
            delay = rng.randrange(1500)
            sent = time.time_ns()
            due[self.c.put_ms(b"%d" % n, rng.randrange(3), delay)] = sent + delay * 1_000_000
        waiting_since = time.time_ns()
        self.c.send(b"reserve\r\n" * len(due))
        for _ in range(len(due)):
            job = self.reserved()
            now = time.time_ns()
            early.append((due[job] - now) / 1e6)
            late.append((now - max(due.pop(job), waiting_since)) / 1e6)
        self.assertEqual(due, {})
        self.assertLessEqual(max(early), 0, f"milliseconds early, CARILLON_SEED={_SEED}")
        print(f"lateness, ms: median {sorted(late)[100]:.1f}, most {max(late):.1f}")
        self.assertLess(max(late), _LATE * 1000)

    def test_an_absolute_time(self):
        due_ms = time.time_ns() // 1_000_000 + 700
        job = self.c.call(b"put-at 0 %d 60000 1" % due_ms, b"x").number()
        self.assertEqual(self.c.call(b"reserve").number(), job)
        late = time.time_ns() / 1e9 - due_ms / 1e3
        self.assertGreaterEqual(late, 0)
        self.assertLess(late, _LATE)

    def test_the_delay_of_a_release(self):
        job = self.c.put(b"x")
        self.c.call(b"reserve")
        watch = _Watch()
        self.assertEqual(self.c.call(b"release-ms %d 0 350" % job), said(b"RELEASED"))
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(watch.seconds(), 0.35)

    def test_a_time_out(self):
        for ms in (0, 1, 20, 250):
            watch = _Watch()
            self.assertEqual(self.c.call(b"reserve-with-timeout-ms %d" % ms), TIMED_OUT)
            self.on_time(watch.seconds(), ms / 1000)

    def test_a_ttr_and_a_pause(self):
        job = self.c.put_ms(b"x", 0, 0, 1300)
        watch = _Watch()
        self.assertEqual(self.c.call(b"reserve").number(), job)
        pause = _Watch()
        self.assertEqual(self.c.call(b"pause-tube default 2"), said(b"PAUSED"))
        self.assertEqual(self.c.call(b"reserve"), said(b"DEADLINE_SOON"))
        self.on_time(watch.seconds(), 0.3)
        time.sleep(max(0.0, 1.35 - watch.seconds()))
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(pause.seconds(), 2)


if __name__ == "__main__":
    side_by_side.main()
