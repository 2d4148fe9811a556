"""Time as a client sees it: every delay, time-out, ttr and pause lasts as long as asked for, and
not much longer.

The lower bound is exact. The upper bound is generous, because other tests run on the same machine.
"""

import random
import time
import unittest

import daemon
import side_by_side
from protocol_case import TIMED_OUT, Durable, InMemory, said
from wire import setting

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


class _Timing:
    def on_time(self, elapsed: float, seconds: float) -> None:
        self.assertGreaterEqual(elapsed, seconds, "early")
        self.assertLessEqual(elapsed, seconds + _LATE, "late")

    def test_a_delay(self):
        watch = _Watch()
        job = self.c.put(b"x", 0, 1)
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(watch.seconds(), 1)

    def test_the_delay_of_a_release(self):
        job = self.c.put(b"x")
        self.c.call(b"reserve")
        watch = _Watch()
        self.check(b"release %d 0 1\r\n" % job, said(b"RELEASED"))
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(watch.seconds(), 1)

    def test_a_delay_ends_without_a_waiting_worker(self):
        self.c.put(b"x", 0, 1)
        time.sleep(1.1)
        self.assertEqual(self.tube_stats()["current-jobs-ready"], "1")

    def test_a_time_out(self):
        watch = _Watch()
        self.check(b"reserve-with-timeout 1\r\n", TIMED_OUT)
        self.on_time(watch.seconds(), 1)

    def test_a_time_out_of_zero(self):
        watch = _Watch()
        self.check(b"reserve-with-timeout 0\r\n", TIMED_OUT)
        self.on_time(watch.seconds(), 0)

    def test_a_ttr(self):
        other = self.worker()
        job = self.c.put(b"x", 0, 0, 1)
        watch = _Watch()
        self.assertEqual(other.call(b"reserve").number(), job)
        self.c.send(b"reserve\r\n")
        if daemon.stand_in():  # see timed_scenarios.py
            time.sleep(1.05)
            other.call(b"list-tube-used")
        self.assertEqual(self.reserved(self.c), job)
        self.on_time(watch.seconds(), 1)
        self.assertEqual(self.c.stats(b"stats-job %d" % job)["timeouts"], "1")

    def test_a_ttr_is_counted_from_the_last_touch(self):
        other = self.worker()
        job = self.c.put(b"x", 0, 0, 1)
        other.call(b"reserve")
        time.sleep(0.6)
        watch = _Watch()
        self.assertEqual(other.call(b"touch %d" % job), said(b"TOUCHED"))
        self.c.send(b"reserve\r\n")
        if daemon.stand_in():
            time.sleep(1.05)
            other.call(b"list-tube-used")
        self.assertEqual(self.reserved(self.c), job)
        self.on_time(watch.seconds(), 1)

    def test_a_ttr_of_zero_is_a_second(self):
        self.check(b"put 0 0 0 1\r\nx\r\n")
        job = self.c.reply().number()
        other = self.worker()
        watch = _Watch()
        self.assertEqual(other.call(b"reserve").number(), job)
        self.c.send(b"reserve\r\n")
        if daemon.stand_in():
            time.sleep(1.05)
            other.call(b"list-tube-used")
        self.assertEqual(self.reserved(self.c), job)
        self.on_time(watch.seconds(), 1)

    def test_a_pause(self):
        worker = self.worker()
        worker.send(b"reserve\r\n")
        self.wait_until_waiting(1)
        watch = _Watch()
        self.check(b"pause-tube " + self.tube + b" 1\r\n", said(b"PAUSED"))
        job = self.c.put(b"x")
        stats = self.tube_stats()
        self.assertEqual((stats["pause"], stats["current-jobs-ready"]), ("1", "1"))
        self.assertEqual(stats["pause-time-left"], "0")
        self.assertEqual(self.reserved(worker), job)
        self.on_time(watch.seconds(), 1)
        self.assertEqual(self.tube_stats()["pause"], "0")

    def test_deadline_soon(self):
        job = self.c.put(b"x", 0, 0, 2)
        watch = _Watch()
        self.c.call(b"reserve")
        self.check(b"reserve-with-timeout 100\r\n", said(b"DEADLINE_SOON"))
        self.on_time(watch.seconds(), 1)
        self.check(b"reserve\r\n", said(b"DEADLINE_SOON"))
        self.check(b"touch %d\r\n" % job, said(b"TOUCHED"))
        self.check(b"reserve-with-timeout 0\r\n", TIMED_OUT)

    def test_deadline_soon_gives_way_to_a_ready_job(self):
        self.c.put(b"x", 0, 0, 1)
        self.c.call(b"reserve")
        job = self.c.put(b"y", 5)
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.check(b"reserve\r\n", said(b"DEADLINE_SOON"))

    def test_deadline_soon_does_not_concern_reserve_job(self):
        self.c.put(b"x", 0, 0, 1)
        self.c.call(b"reserve")
        job = self.c.put(b"y", 0, 1000)
        self.assertEqual(self.c.call(b"reserve-job %d" % job).number(), job)
        self.assertEqual(self.c.call(b"reserve-job %d" % 10**15), said(b"NOT_FOUND"))


class _Milliseconds:
    """Carillon's own verbs, many at once."""

    def test_two_hundred_delays_none_early(self):
        rng = random.Random(_SEED)
        worker = self.worker()
        due, early, late = {}, [], []
        for n in range(200):
            delay = rng.randrange(1500)
            sent = time.time_ns()
            due[self.c.put_ms(b"%d" % n, rng.randrange(3), delay)] = sent + delay * 1_000_000
        waiting_since = time.time_ns()
        worker.send(b"reserve\r\n" * len(due))
        for _ in range(len(due)):
            job = self.reserved(worker)
            now = time.time_ns()
            early.append((due[job] - now) / 1e6)
            late.append((now - max(due.pop(job), waiting_since)) / 1e6)
        self.assertEqual(due, {})
        self.assertLessEqual(max(early), 0, f"milliseconds early, CARILLON_SEED={_SEED}")
        print(f"lateness, ms: median {sorted(late)[100]:.1f}, most {max(late):.1f}")
        self.assertLess(max(late), _LATE * 1000)

    def test_an_absolute_time(self):
        due_ms = time.time_ns() // 1_000_000 + 700
        self.check(b"put-at 0 %d 60000 1\r\nx\r\n" % due_ms)
        job = self.c.reply().number()
        self.assertEqual(self.c.call(b"reserve").number(), job)
        late = time.time_ns() / 1e9 - due_ms / 1e3
        self.assertGreaterEqual(late, 0)
        self.assertLess(late, _LATE)

    def test_the_delay_of_a_release(self):
        job = self.c.put(b"x")
        self.c.call(b"reserve")
        watch = _Watch()
        self.check(b"release-ms %d 0 350\r\n" % job, said(b"RELEASED"))
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(watch.seconds(), 0.35)

    def test_a_time_out(self):
        for ms in (0, 1, 20, 250):
            watch = _Watch()
            self.check(b"reserve-with-timeout-ms %d\r\n" % ms, TIMED_OUT)
            self.on_time(watch.seconds(), ms / 1000)

    def test_a_ttr(self):
        other = self.worker()
        job = self.c.put_ms(b"x", 0, 0, 1300)
        watch = _Watch()
        self.assertEqual(other.call(b"reserve").number(), job)
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.on_time(watch.seconds(), 1.3)


class InMemoryTest(_Timing, InMemory, unittest.TestCase):
    pass


class DurableTest(_Timing, Durable, unittest.TestCase):
    pass


@unittest.skipIf(daemon.stand_in(), "beanstalkd knows whole seconds only")
class MillisecondsInMemoryTest(_Milliseconds, InMemory, unittest.TestCase):
    on_time = _Timing.on_time


@unittest.skipIf(daemon.stand_in(), "beanstalkd knows whole seconds only")
class MillisecondsDurableTest(_Milliseconds, Durable, unittest.TestCase):
    on_time = _Timing.on_time


if __name__ == "__main__":
    side_by_side.main()
