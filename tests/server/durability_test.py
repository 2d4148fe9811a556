"""A restart must not change anything: each test does something, stops the server, by SIGTERM or by
SIGKILL, starts it again, and looks."""

import time

import daemon
import side_by_side
from wire import NOT_FOUND, TIMED_OUT, Reply, said, yaml_list

_FORTY_DAYS_MS = 40 * 24 * 3600 * 1000


class _Kept(daemon.DataCase):
    """A durable server that each test restarts on the same data."""

    flags = ("--http", f"{daemon.HOST}:0")

    def setUp(self):
        super().setUp()
        self.serve()

    def serve(self):
        self.server = self.start()
        self.c = self.server.connect()

    def restart(self):
        self.stop(self.server)
        self.serve()

    def test_tubes_states_and_values(self):
        self.c.call(b"use beta")
        self.c.call(b"watch beta")
        ready = self.c.put(b"ready", 7, 0, 1234)
        delayed = self.c.put(b"delayed", 8, 5000, 4321)
        buried, reserved, gone = self.c.put(b"buried", 0), self.c.put(b"r"), self.c.put(b"gone")
        for job in (buried, reserved):
            self.assertEqual(self.c.call(b"reserve").number(), job)
        self.assertEqual(self.c.call(b"bury %d 99" % buried), said(b"BURIED"))
        self.assertEqual(self.c.call(b"delete %d" % gone), said(b"DELETED"))
        self.restart()
        self.assertEqual(sorted(yaml_list(self.c.call(b"list-tubes").body)), ["beta", "default"])
        stats = self.c.stats(b"stats-tube beta")
        self.assertEqual(
            [stats["current-jobs-" + k] for k in ("ready", "reserved", "delayed", "buried")],
            ["2", "0", "1", "1"],
        )
        expected = {
            ready: ("ready", "7", "0", "1234"),
            delayed: ("delayed", "8", "5000", "4321"),
            buried: ("buried", "99", "0", "60"),
            reserved: ("ready", "0", "0", "60"),
        }
        for job, values in expected.items():
            stats = self.c.stats(b"stats-job %d" % job)
            self.assertEqual(tuple(stats[k] for k in ("state", "pri", "delay", "ttr")), values)
            self.assertEqual(stats["tube"].strip('"'), "beta")
        self.assertLessEqual(int(self.c.stats(b"stats-job %d" % delayed)["time-left"]), 5000)
        self.assertEqual(self.c.call(b"peek %d" % gone), NOT_FOUND)
        self.assertGreater(self.c.put(b"new"), gone)
        self.c.call(b"use beta")
        self.assertEqual(self.c.call(b"kick 10"), said(b"KICKED 1"))
        self.assertEqual(self.c.stats(b"stats-job %d" % buried)["state"], "ready")

    def test_a_job_due_during_the_stop_is_ready(self):
        job = self.c.put(b"x", 0, 1)
        self.stop(self.server)
        time.sleep(1.1)
        self.serve()
        self.assertEqual(self.c.call(b"reserve-with-timeout 5").number(), job)

    def test_far_jobs_are_not_in_memory(self):
        far = [self.c.put_ms(b"far", 0, _FORTY_DAYS_MS) for _ in range(1000)]
        near = self.c.put_ms(b"near", 0, 50_000)
        for _ in range(2):
            stats = self.c.stats()
            self.assertEqual(
                [stats["current-jobs-" + k] for k in ("delayed", "loaded")], ["1001", "1"]
            )
            self.restart()
        left = int(self.c.stats(b"stats-job %d" % far[500])["time-left"])
        self.assertIn(left, range(3455900, 3456000))
        self.assertEqual(self.c.call(b"kick-job %d" % near), said(b"KICKED"))
        self.assertEqual(self.c.call(b"reserve"), Reply(b"RESERVED %d 4" % near, b"near"))

    def test_leases_go_on(self):
        limits = {"limits": {"max_running": 3}}
        self.assertEqual(self.server.ask("PATCH", "/v1/tubes/mail", limits)[0], 200)
        for _ in range(4):
            self.assertEqual(self.server.ask("POST", "/v1/tubes/mail/jobs", {"ttr": "1h"})[0], 201)
        reserved = self.server.ask("POST", "/v1/tubes/mail:reserve", {"max": 3})[1]["jobs"]
        done, extended, failed = (job["lease"] for job in reserved)
        for _ in range(2):
            self.restart()
            answer = self.server.ask("POST", "/v1/tubes/mail:reserve")
            self.assertEqual(answer, (200, {"jobs": []}), "three run")
            self.assertIn("found 4 jobs in ", self.server.log())
        self.assertEqual(self.server.ask("POST", f"/v1/leases/{done}:ack")[0], 204)
        self.assertEqual(
            self.server.ask("POST", f"/v1/leases/{extended}:extend", {"lease": "2h"})[0], 200
        )
        self.restart()
        self.assertEqual(self.server.ask("POST", f"/v1/leases/{done}:ack")[0], 409)
        self.assertEqual(self.server.ask("POST", f"/v1/leases/{extended}:ack")[0], 204)
        nacked = self.server.ask("POST", f"/v1/leases/{failed}:nack", {"error": "no"})
        self.assertEqual((nacked[0], nacked[1]["failed_attempts"]), (200, 1))
        left = self.server.ask("POST", "/v1/tubes/mail:reserve", {"max": 3})[1]["jobs"]
        self.assertEqual(len(left), 2)

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


class SoftRestartTest(_Kept):
    def stop(self, server):
        self.assertEqual(server.terminate(), 0)


class KillTest(_Kept):
    @staticmethod
    def stop(server):
        server.kill()


del _Kept  # it stops no server

if __name__ == "__main__":
    side_by_side.main()
