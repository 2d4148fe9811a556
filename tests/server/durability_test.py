"""A restart must not change anything: each test does something, stops the server, by SIGTERM or by
SIGKILL, starts it again, and looks."""

import tempfile
import time
import unittest

import daemon
import side_by_side
from protocol_case import NOT_FOUND, TIMED_OUT, said
from wire import Reply, yaml_list

_FORTY_DAYS_MS = 40 * 24 * 3600 * 1000


class _OnOneDirectory:
    """A durable server that each test restarts on the same data."""

    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.server = None
        self.start()

    def tearDown(self):
        self.server.__exit__()

    def start(self):
        self.server = daemon.subject_durable(self._directory.name).start()
        self.c = self.server.connect()
        self.c.stats()  # the server listens before it has read its data; now it serves

    def restart(self):
        self.stop(self.server)
        self.server.__exit__()
        self.start()

    def state(self, job: int) -> str:
        return self.c.stats(b"stats-job %d" % job)["state"]

    def reserve_all(self) -> list:
        jobs = []
        while (reply := self.c.call(b"reserve-with-timeout 0")) != TIMED_OUT:
            jobs.append(reply.number())
        return jobs


class _Kept:
    def test_bodies(self):
        bodies = [b"", b"\r\n", bytes(range(256)), b"e" * 10_000, b"\0"]
        jobs = [self.c.put(body) for body in bodies]
        self.restart()
        for job, body in zip(jobs, bodies):
            self.assertEqual(
                self.c.call(b"peek %d" % job), Reply(b"FOUND %d %d" % (job, len(body)), body)
            )

    def test_order(self):
        jobs = {(pri, n): self.c.put(b"x", pri) for n in range(20) for pri in (3, 0, 2**32 - 1)}
        self.restart()
        self.assertEqual(self.reserve_all(), [jobs[key] for key in sorted(jobs)])

    def test_tubes_states_and_values(self):
        self.c.call(b"use beta")
        self.c.call(b"watch beta")
        ready = self.c.put(b"ready", 7, 0, 1234)
        delayed = self.c.put(b"delayed", 8, 5000, 4321)
        buried = self.c.put(b"buried", 0)
        self.assertEqual(self.c.call(b"reserve").number(), buried)
        self.assertEqual(self.c.call(b"bury %d 99" % buried), said(b"BURIED"))
        self.restart()
        self.assertEqual(sorted(yaml_list(self.c.call(b"list-tubes").body)), ["beta", "default"])
        stats = self.c.stats(b"stats-tube beta")
        self.assertEqual(
            [stats["current-jobs-" + k] for k in ("ready", "reserved", "delayed", "buried")],
            ["1", "0", "1", "1"],
        )
        expected = {
            ready: ("ready", "7", "0", "1234"),
            delayed: ("delayed", "8", "5000", "4321"),
            buried: ("buried", "99", "0", "60"),
        }
        for job, (state, pri, delay, ttr) in expected.items():
            stats = self.c.stats(b"stats-job %d" % job)
            self.assertEqual(
                [stats[k] for k in ("state", "pri", "delay", "ttr")], [state, pri, delay, ttr]
            )
            self.assertEqual(stats["tube"].strip('"'), "beta")
        self.assertLessEqual(int(self.c.stats(b"stats-job %d" % delayed)["time-left"]), 5000)
        self.c.call(b"use beta")
        self.assertEqual(self.c.call(b"kick 10"), said(b"KICKED 1"))
        self.assertEqual(self.state(buried), "ready")

    def test_a_reserved_job_is_ready_again(self):
        job = self.c.put(b"x")
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.restart()
        self.assertEqual(
            self.c.call(b"reserve-with-timeout 0"), Reply(b"RESERVED %d 1" % job, b"x")
        )

    def test_deleted_jobs_stay_deleted(self):
        jobs = [self.c.put(b"x") for _ in range(50)] + [
            self.c.put(b"x", 0, 1000) for _ in range(50)
        ]
        for job in jobs[::2]:
            self.assertEqual(self.c.call(b"delete %d" % job), said(b"DELETED"))
        for _ in range(2):
            self.restart()
            for job in jobs[::2]:
                self.assertEqual(self.c.call(b"peek %d" % job), NOT_FOUND)
            for job in jobs[1::2]:
                self.assertEqual(self.c.call(b"peek %d" % job).word, b"FOUND")
        self.assertEqual(self.reserve_all(), jobs[1:50:2])

    def test_a_kicked_job_stays_kicked(self):
        delayed, buried = self.c.put(b"x", 5, 1000), self.c.put(b"x")
        self.assertEqual(self.c.call(b"reserve").number(), buried)
        self.assertEqual(self.c.call(b"bury %d 0" % buried), said(b"BURIED"))
        for job in (delayed, buried):
            self.assertEqual(self.c.call(b"kick-job %d" % job), said(b"KICKED"))
        self.restart()
        self.assertEqual(self.reserve_all(), [buried, delayed])

    def test_a_delay_is_not_shifted(self):
        sent = time.time()
        job = self.c.put(b"x", 0, 2)
        time.sleep(0.5)
        self.restart()
        self.assertEqual(self.c.call(b"reserve").number(), job)
        self.assertGreaterEqual(time.time() - sent, 2.0)
        # A delay that began anew would end at 2.5 s plus the time of the restart.
        self.assertLess(time.time() - sent, 2.9)

    def test_a_job_due_during_the_stop_is_ready(self):
        job = self.c.put(b"x", 0, 1)
        self.stop(self.server)
        self.server.__exit__()
        time.sleep(1.1)
        self.start()
        self.assertEqual(self.c.call(b"reserve-with-timeout 5").number(), job)

    def test_the_delay_of_a_release_is_kept(self):
        job = self.c.put(b"x")
        self.c.call(b"reserve")
        self.assertEqual(self.c.call(b"release %d 42 3000" % job), said(b"RELEASED"))
        self.restart()
        stats = self.c.stats(b"stats-job %d" % job)
        self.assertEqual([stats[k] for k in ("state", "pri", "delay")], ["delayed", "42", "3000"])
        self.assertIn(int(stats["time-left"]), range(2980, 3000))

    def test_restarts_on_an_empty_store(self):
        for _ in range(3):
            self.restart()
            self.assertEqual(self.c.stats()["current-tubes"], "1")


class _CarillonOnly:
    """Promises that beanstalkd does not make."""

    def test_ids_are_never_used_again(self):
        jobs = [self.c.put(b"x") for _ in range(10)]
        for job in jobs:
            self.assertEqual(self.c.call(b"delete %d" % job), said(b"DELETED"))
        used = set(jobs)
        for _ in range(3):
            self.restart()
            job = self.c.put(b"x")
            self.assertNotIn(job, used)
            self.assertGreater(job, max(used))
            self.assertEqual(self.c.call(b"delete %d" % job), said(b"DELETED"))
            used.add(job)

    def test_the_biggest_body(self):
        jobs = [self.c.put(b"%d" % n * 65535) for n in range(9)]
        self.restart()
        for n, job in enumerate(jobs):
            self.assertEqual(
                self.c.call(b"peek %d" % job), Reply(b"FOUND %d 65535" % job, b"%d" % n * 65535)
            )

    def test_buried_jobs_are_kicked_in_the_order_buried(self):
        jobs = [self.c.put(b"x") for _ in range(4)]
        self.assertEqual(self.reserve_all(), jobs)
        order = [jobs[2], jobs[0], jobs[3], jobs[1]]
        for job in order:
            self.assertEqual(self.c.call(b"bury %d 0" % job), said(b"BURIED"))
        self.restart()
        for job in order:
            self.assertEqual(self.c.call(b"peek-buried").number(), job)
            self.assertEqual(self.c.call(b"kick 1"), said(b"KICKED 1"))

    def test_the_priority_of_a_release_is_kept(self):
        jobs = [self.c.put(b"x") for _ in range(3)]
        self.assertEqual(self.reserve_all(), jobs)
        for job, pri in zip(jobs, (30, 20, 10)):
            self.assertEqual(self.c.call(b"release %d %d 0" % (job, pri)), said(b"RELEASED"))
        self.restart()
        self.assertEqual(self.reserve_all(), jobs[::-1])

    def test_a_job_due_in_forty_days(self):
        self.c.send(b"put-ms 11 %d 60000 4\r\nfar!\r\n" % _FORTY_DAYS_MS)
        job = self.c.reply().number()
        for _ in range(2):
            self.restart()
            stats = self.c.stats(b"stats-job %d" % job)
            self.assertEqual(
                [stats[k] for k in ("state", "pri", "delay", "ttr")],
                ["delayed", "11", "3456000", "60"],
            )
            self.assertIn(int(stats["time-left"]), range(3455900, 3456000))
            self.assertEqual(self.c.call(b"peek-delayed"), Reply(b"FOUND %d 4" % job, b"far!"))
            self.assertEqual(self.c.call(b"reserve-with-timeout 0"), TIMED_OUT)
            self.assertEqual(self.c.stats()["current-jobs-delayed"], "1")
        self.assertEqual(self.c.call(b"kick 1"), said(b"KICKED 1"))
        self.assertEqual(self.c.call(b"reserve"), Reply(b"RESERVED %d 4" % job, b"far!"))

    def test_far_jobs_are_not_in_memory(self):
        far = [self.c.put_ms(b"far", 0, _FORTY_DAYS_MS) for _ in range(1000)]
        near = self.c.put_ms(b"near", 0, 5000)
        for _ in range(2):
            stats = self.c.stats()
            self.assertEqual(
                [stats["current-jobs-" + k] for k in ("delayed", "loaded")], ["1001", "1"]
            )
            self.restart()
        self.assertEqual(self.state(far[500]), "delayed")
        self.assertEqual(self.c.call(b"reserve"), Reply(b"RESERVED %d 4" % near, b"near"))

    def test_delays_of_milliseconds_are_not_shifted(self):
        sent, jobs = {}, []
        for n in range(20):
            sent_at = time.time_ns()
            job = self.c.put_ms(b"x", 0, 700 + 50 * n)
            sent[job] = sent_at + (700 + 50 * n) * 1_000_000
            jobs.append(job)
        self.restart()
        for job in jobs:
            self.assertEqual(self.c.call(b"reserve").number(), job)
            self.assertGreaterEqual(time.time_ns(), sent[job])
        self.assertLess(time.time_ns() - sent[jobs[-1]], 1_000_000_000)

    def test_many_jobs(self):
        count = 20_000
        self.c.send(b"".join(b"put %d 0 60 8\r\n%08d\r\n" % (n % 7, n) for n in range(count)))
        jobs = [self.c.reply().number() for _ in range(count)]
        self.c.send(b"".join(b"delete %d\r\n" % job for job in jobs[::4]))
        self.assertEqual({self.c.reply() for _ in jobs[::4]}, {said(b"DELETED")})
        self.restart()
        left = sorted((n % 7, job, n) for n, job in enumerate(jobs) if n % 4)
        self.c.send(b"reserve-with-timeout 0\r\n" * len(left))
        for _, job, n in left:
            self.assertEqual(self.c.reply(), Reply(b"RESERVED %d 8" % job, b"%08d" % n))
        self.assertEqual(self.c.call(b"reserve-with-timeout 0"), TIMED_OUT)


class _Softly:
    @staticmethod
    def stop(server):
        code = server.terminate()
        assert daemon.stand_in() or code == 0, code


class _Killed:
    @staticmethod
    def stop(server):
        server.kill()


class SoftRestartTest(_Kept, _OnOneDirectory, _Softly, unittest.TestCase):
    pass


class KillTest(_Kept, _OnOneDirectory, _Killed, unittest.TestCase):
    pass


@unittest.skipIf(daemon.stand_in(), "beanstalkd does not promise it")
class CarillonSoftRestartTest(_CarillonOnly, _OnOneDirectory, _Softly, unittest.TestCase):
    pass


@unittest.skipIf(daemon.stand_in(), "beanstalkd does not promise it")
class CarillonKillTest(_CarillonOnly, _OnOneDirectory, _Killed, unittest.TestCase):
    pass


if __name__ == "__main__":
    side_by_side.main()
