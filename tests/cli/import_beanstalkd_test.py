"""`carillon import --beanstalkd`: Debian's beanstalkd is emptied into a Carillon, and what arrived
is compared with what was there, also when imports are killed again and again."""

import json
import random
import signal
import sys
import tempfile
import time
import unittest

import between
from cli_case import CliCase

import daemon
import side_by_side
from wire import setting

FAR = 1_000_000  # seconds: delays that do not end during a test


def beanstalkd_or_skip(*extra):
    try:
        daemon.beanstalkd_path()
    except RuntimeError as missing:
        raise unittest.SkipTest(str(missing))
    return daemon.beanstalkd(*extra)


def reserve_all(server, tube):
    """Takes the ready jobs out of a tube. Returns (priority, body), in their order."""
    connection = server.connect()
    connection.call(b"watch " + tube)
    connection.call(b"ignore default")
    jobs = []
    while True:
        reply = connection.call(b"reserve-with-timeout 0")
        if reply.word != b"RESERVED":
            return jobs
        stats = connection.stats(b"stats-job %d" % reply.number())
        jobs.append((int(stats["pri"]), int(stats["ttr"]), reply.body))
        assert connection.call(b"delete %d" % reply.number()).line == b"DELETED"


class BeforeTheSecondList:
    """Calls `first` before the second list-tubes of a client."""

    def __init__(self, first):
        self.first = first
        self.lists = 0

    def __call__(self, asked):
        self.lists += asked == b"list-tubes\r\n"
        if asked == b"list-tubes\r\n" and self.lists == 2:
            self.first()
        return asked


class ImportBeanstalkdTest(CliCase):
    def setUp(self):
        super().setUp()
        self.source = self.enterContext(beanstalkd_or_skip())
        self.old = self.source.connect()
        self.new = self.server.connect()
        self.tube = "t" + self.tube[:20] + str(random.randrange(10**9))

    def import_arguments(self, *more):
        return ("import", "--beanstalkd", f"{daemon.HOST}:{self.source.port}", *more)

    def import_all(self, *more):
        """Runs the import, which must succeed. Returns its summary."""
        return json.loads(self.carillon(*self.import_arguments("--json", *more)))

    def old_put(self, body, pri=0, delay=0, ttr=60, tube=None):
        self.old.call(b"use " + (tube or self.tube).encode())
        return self.old.put(body, pri, delay, ttr)

    def old_bury(self, job_id, pri):
        assert self.old.call(b"reserve-job %d" % job_id).word == b"RESERVED"
        assert self.old.call(b"bury %d %d" % (job_id, pri)).line == b"BURIED"

    def new_jobs(self, count):
        """The jobs of this test's tube by their bodies, found by their ids. Keys are the bodies;
        values are lists of statistics, one for each job."""
        highest = self.new.put(b"probe", delay=FAR)
        self.new.call(b"delete %d" % highest)
        jobs = {}
        for job_id in range(highest - 1, 0, -1):
            reply = self.new.call(b"stats-job %d" % job_id)
            if reply.word != b"OK":
                continue
            stats = self.new.stats(b"stats-job %d" % job_id)
            if stats["tube"].strip('"') != self.tube:
                continue
            body = self.new.call(b"peek %d" % job_id).body
            jobs.setdefault(body, []).append(stats)
        self.assertEqual(sum(map(len, jobs.values())), count)
        return jobs

    def old_is_empty(self):
        stats = self.old.stats(b"stats")
        self.assertEqual(
            [stats[f"current-jobs-{state}"] for state in ("ready", "delayed", "buried")], ["0"] * 3
        )

    def test_delayed_jobs_of_a_tube_that_appears_meanwhile_come_with_the_next_round(self):
        self.old_put(b"a", delay=1000)
        put = BeforeTheSecondList(lambda: self.old_put(b"b", delay=1000, tube=self.tube + "-new"))
        way = between.Between(self.source.port, asked=put)
        summary = json.loads(
            self.carillon("import", "--beanstalkd", f"{daemon.HOST}:{way.port}", "--json")
        )
        self.assertEqual(summary["delayed"], 2)
        self.old_is_empty()

    def test_jobs_arrive_as_they_were(self):
        self.old_put(b"urgent", pri=3, ttr=1)
        self.old_put(b"second", pri=7, ttr=90)
        self.old_put(b"third\r\n\0\xff", pri=7, ttr=4294967295)
        self.old_put(b"", pri=4294967295)
        self.old_put(b"later", pri=11, delay=1000, ttr=30)
        buried = self.old_put(b"bad", pri=5, ttr=20)
        self.old_bury(buried, 9)
        self.old_bury(self.old_put(b"worse", pri=0, ttr=21), 1)
        before = time.time()
        summary = self.import_all()
        self.old_is_empty()
        instance = self.old.stats(b"stats")["id"]
        self.assertEqual(summary["instance"], instance)
        self.assertEqual(
            [summary[name] for name in ("jobs", "ready", "delayed", "buried", "already")],
            [7, 4, 1, 2, 0],
        )
        jobs = self.new_jobs(7)
        later = jobs[b"later"][0]
        self.assertEqual((later["state"], later["pri"], later["ttr"]), ("delayed", "11", "30"))
        # The delay was rounded up to the next second, and is not longer than the busy machine.
        due = before + int(later["time-left"])
        self.assertGreaterEqual(int(later["time-left"]), 1000 - 2 - (time.time() - before))
        self.assertLess(due, time.time() + 1002)
        for body, pri, ttr in ((b"bad", "9", "20"), (b"worse", "1", "21")):
            stats = jobs[body][0]
            self.assertEqual((stats["state"], stats["pri"], stats["ttr"]), ("buried", pri, ttr))
        # In the order of their burials; kicked, they are ready at once.
        self.new.call(b"use " + self.tube.encode())
        self.assertEqual(self.new.call(b"peek-buried").body, b"bad")
        self.assertEqual(
            reserve_all(self.server, self.tube.encode()),
            [
                (3, 1, b"urgent"),
                (7, 90, b"second"),
                (7, 4294967295, b"third\r\n\0\xff"),
                (4294967295, 60, b""),
            ],
        )
        self.assertEqual(self.new.call(b"kick 5").line, b"KICKED 2")
        self.assertEqual(
            reserve_all(self.server, self.tube.encode()), [(1, 21, b"worse"), (9, 20, b"bad")]
        )

    def test_a_delayed_job_is_not_early(self):
        put_at = time.monotonic()
        self.old_put(b"soon", delay=4)
        self.import_all()
        self.new.call(b"watch " + self.tube.encode())
        self.assertEqual(self.new.call(b"reserve", timeout=30).body, b"soon")
        self.assertGreaterEqual(time.monotonic() - put_at, 4)

    def test_a_job_that_is_due_at_once_is_waited_for(self):
        self.old_put(b"at once", delay=1)
        summary = self.import_all()
        self.assertEqual((summary["jobs"], summary["ready"]), (1, 1))

    def test_delayed_jobs_are_found_far_apart_and_while_it_drains(self):
        first = self.old_put(b"first", delay=FAR)
        for _ in range(5000):
            self.old.send(b"put 0 0 60 1\r\nx\r\n")
        ids = [self.old.reply().number() for _ in range(5000)]
        last = self.old_put(b"last", delay=FAR)
        for job_id in ids:
            self.old.send(b"delete %d\r\n" % job_id)
        for _ in ids:
            self.old.reply()
        self.source.process.send_signal(signal.SIGUSR1)
        self.assertGreater(last, first + 4999)
        self.assertEqual(self.import_all()["delayed"], 2)
        self.assertEqual(sorted(self.new_jobs(2)), [b"first", b"last"])

    def test_jobs_of_a_log_have_ids_that_beanstalkd_has_not_counted(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        source = self.enterContext(beanstalkd_or_skip("-b", directory, "-f", "0"))
        old = source.connect()
        old.call(b"use " + self.tube.encode())
        for _ in range(3000):
            old.send(b"put 0 0 60 1\r\nx\r\n")
        ids = [old.reply().number() for _ in range(3000)]
        old.put(b"kept", delay=FAR)
        for job_id in ids:
            old.call(b"delete %d" % job_id)
        old.close()
        source.kill()
        source.start()
        self.assertEqual(source.connect().stats(b"stats")["total-jobs"], "0")
        self.source = source
        self.assertEqual(self.import_all()["delayed"], 1)
        self.assertEqual(list(self.new_jobs(1)), [b"kept"])

    def test_a_pause_goes_along(self):
        self.old_put(b"waits", pri=4)
        self.old_put(b"first", pri=2)
        self.old.call(b"pause-tube %s 3000" % self.tube.encode())
        self.assertEqual(self.import_all()["ready"], 2)
        stats = self.new.stats(b"stats-tube " + self.tube.encode())
        self.assertGreater(int(stats["pause-time-left"]), 2900)
        self.assertLessEqual(int(stats["pause-time-left"]), 3001)
        self.assertEqual(stats["current-jobs-ready"], "2")
        self.assertEqual(reserve_all(self.server, self.tube.encode()), [])

    def test_only_the_tubes_asked_for_and_by_their_new_names(self):
        self.old_put(b"one", tube="one")
        self.old_put(b"two", tube="two", delay=FAR)
        self.old_put(b"three", tube="three")
        arguments = ("--tube", "one", "--tube", f"two={self.tube}")
        self.assertEqual(self.import_all(*arguments)["jobs"], 2)
        self.assertEqual(list(self.new_jobs(1)), [b"two"])
        self.assertEqual([job[2] for job in reserve_all(self.server, b"one")], [b"one"])
        left = self.old.stats(b"stats-tube three")
        self.assertEqual(left["current-jobs-ready"], "1")
        # An import may be run again when a tube has no jobs any more.
        again = self.run_carillon(*self.import_arguments("--tube", "four"))
        self.assertEqual(again.returncode, 0)
        self.assertRegex(again.stderr.decode(), r"(?m)^beanstalkd has no tube four; it has .*three")

    def test_what_workers_hold_stays(self):
        self.old_put(b"held")
        self.old_put(b"free", pri=1)
        worker = self.source.connect()
        worker.call(b"watch " + self.tube.encode())
        self.assertEqual(worker.call(b"reserve").body, b"held")
        done = self.run_carillon(*self.import_arguments())
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"workers of beanstalkd hold 1 job; run the command again", done.stderr)
        worker.call(b"bury 1 8")
        self.assertEqual(self.import_all()["buried"], 1)
        self.assertEqual(sorted(self.new_jobs(2)), [b"free", b"held"])

    def test_a_dry_run_moves_nothing(self):
        self.old_put(b"ready")
        self.old_put(b"later", delay=FAR)
        for _ in range(2):
            shown = json.loads(self.carillon(*self.import_arguments("--json", "--dry-run")))
            self.assertEqual(
                shown,
                {"ready": 1, "delayed": 1, "buried": 0, "tube": self.tube, "reserved": 0},
            )
        self.assertIn(self.tube, self.carillon(*self.import_arguments("--dry-run")))
        self.assertEqual(self.run_carillon("stats", "--tube", self.tube).returncode, 1)

    def test_a_body_that_is_too_large_is_named_and_stays(self):
        source = self.enterContext(beanstalkd_or_skip("-z", "100000"))
        old = source.connect()
        old.call(b"use " + self.tube.encode())
        old.put(b"x" * 70_000, delay=FAR)
        self.source = source
        self.fails(
            f"carillon import: job 1 of tube {self.tube}: the body has 70000 bytes; the limit of "
            f"{daemon.HOST}:{self.server.port} is 65535, "
            "see carillon serve --max-job-size; 0 jobs moved so far, "
            "run it again to go on",
            *self.import_arguments("--json"),
        )
        self.assertEqual(old.stats(b"stats")["current-jobs-delayed"], "1")

    def test_a_server_is_not_imported_into_itself(self):
        self.fails(
            "carillon import: the jobs would go to the server from which they come",
            "import",
            "--beanstalkd",
            f"{daemon.HOST}:{self.server.port}",
        )

    def test_the_target_is_carillon(self):
        target = self.enterContext(beanstalkd_or_skip())
        self.old_put(b"delete 1")
        address = f"{daemon.HOST}:{target.port}"
        self.fails(
            f'carillon import: {address} does not know "put-job": it is not Carillon, or an older '
            "one",
            *self.import_arguments("--server", address),
        )

    def test_wrong_arguments_are_named(self):
        self.fails(
            'carillon import: --tube "a b": a tube\'s name is made of letters, digits and '
            "- + / ; . $ _ ( )",
            *self.import_arguments("--tube", "x=a b"),
            code=2,
        )

    def test_imports_that_are_killed_lose_and_double_nothing(self):
        seed = setting("CARILLON_SEED", random.randrange(1 << 32))
        print(f"seed {seed}", file=sys.stderr)
        chance = random.Random(seed)
        ready, delayed, buried = {}, {}, {}
        for number in range(4000):
            body, pri = b"job %d" % number, chance.randrange(3000)
            kind = chance.choice((ready, ready, delayed, delayed, delayed, buried))
            if kind is buried and len(buried) > 40:
                kind = delayed
            delay = FAR + chance.randrange(FAR) if kind is delayed else 0
            job_id = self.old_put(body, pri, delay)
            if kind is buried:
                self.old_bury(job_id, pri)
            kind[body] = (pri, delay)
        kills = 0
        for _ in range(8):
            process = self.start(*self.import_arguments("--json"))
            put = int(self.new.stats(b"stats")["total-jobs"]) + chance.randrange(1, 700)
            self.wait_until(
                lambda: int(self.new.stats(b"stats")["total-jobs"]) >= put
                or process.poll() is not None,
                "the import goes on",
            )
            kills += process.poll() is None
            process.kill()
            process.wait()
        self.import_all()
        print(f"{kills} kills", file=sys.stderr)
        self.assertGreater(kills, 2)
        self.old_is_empty()
        jobs = self.new_jobs(4000)
        states = {body: found[0]["state"].strip('"') for body, found in jobs.items()}
        self.assertEqual(set(jobs), {*ready, *delayed, *buried})
        for kind, state in ((ready, "ready"), (delayed, "delayed"), (buried, "buried")):
            self.assertEqual({b for b in kind if states[b] != state}, set(), state)
            for body, (pri, delay) in kind.items():
                stats = jobs[body][0]
                self.assertEqual(int(stats["pri"]), pri)
                if state == "delayed":
                    self.assertLess(abs(int(stats["time-left"]) - delay), 300)

    def test_a_job_that_was_put_before_a_crash_is_not_put_again_when_it_is_done_here(self):
        """The import dies between the put and the delete; a worker finishes the job here; the next
        import finds it in beanstalkd."""
        job_id = self.old_put(b"once")
        instance = self.old.stats(b"stats")["id"]
        key = b"beanstalkd:%s:%d" % (instance.encode(), job_id)
        self.new.call(b"use " + self.tube.encode())
        self.new.call(b"put-job 4 key=" + key + b" key-window=7d", b"once")
        self.assertEqual(len(reserve_all(self.server, self.tube.encode())), 1)
        summary = self.import_all()
        self.assertEqual((summary["jobs"], summary["already"]), (0, 1))
        self.old_is_empty()
        self.new_jobs(0)


if __name__ == "__main__":
    side_by_side.main()
