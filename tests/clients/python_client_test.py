"""Tests of clients/python/carillon.py against a real server.

python_client_test.py FOLDER-OF-THE-CLIENT HOST PORT

HTTP is at PORT + 80.
"""

import datetime
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

FOLDER, HOST, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.insert(0, FOLDER)

import carillon  # noqa: E402
from carillon import Client  # noqa: E402


class Proxy:
    """Passes connections on to the server, until it is told to cut them."""

    def __init__(self, to=PORT):
        self._to = to
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open = []
        self._lock = threading.Lock()  # guards _open
        self.keeps_replies = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection((HOST, self._to))
            with self._lock:
                self._open += [near, far]
            threading.Thread(target=self._pass_on, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(far, near, True), daemon=True).start()

    def _pass_on(self, source, sink, is_reply):
        try:
            while data := source.recv(65536):
                if is_reply and self.keeps_replies:
                    self.keeps_replies = False
                    self.cut()
                    return
                sink.sendall(data)
        except OSError:
            pass

    def cut(self):
        with self._lock:
            connections, self._open = self._open, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    def close(self):
        self._listener.close()
        self.cut()


class ClientCase(unittest.TestCase):
    def setUp(self):
        self.tube = self.id().split(".")[-1]
        self.client = self.a_client()
        self.client.watch(self.tube)

    def a_client(self, **options):
        client = Client(HOST, PORT, tube=self.tube, **options)
        self.addCleanup(client.close)
        return client


class ScriptedServer:
    """Answers the commands of one connection after the other with the texts it was given."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.commands = []
        self.when_done = lambda: None  # called before the last answer
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    self.commands.append(line.decode().strip())
                    if line.startswith((b"put-job", b"fail-job")):
                        lines.readline()  # its data
                    answer = self._answers.pop(0)
                    if not self._answers:
                        self.when_done()
                    connection.sendall(answer.encode() + b"\r\n")
                    if not self._answers:
                        return

    def close(self):
        self._listener.close()


class JobsTest(ClientCase):
    def test_another_thread_interrupts_a_wait(self):
        threading.Timer(0.2, self.client.interrupt).start()
        for call in [self.client.reserve, self.client.stats]:
            with self.assertRaises(carillon.ConnectionLost):
                call()

    def test_a_job_is_put_reserved_and_deleted(self):
        put = self.client.put("naïve")
        self.assertEqual(put.result, "INSERTED")
        job = self.client.reserve(5)
        self.assertEqual((job.id, job.text, job.body), (put.id, "naïve", "naïve".encode()))
        self.assertFalse(job.touch())
        job.delete()
        self.assertTrue(job.done)
        self.assertIsNone(self.client.reserve(0))
        with self.assertRaises(carillon.NotFound):
            job.delete()

    def test_options_have_their_units(self):
        hour = datetime.timedelta(hours=1)
        moment = datetime.datetime.now(datetime.timezone.utc) + hour
        for options, delay in (
            ({"delay": 90}, 90),
            ({"delay": hour}, 3600),
            ({"delay": "2m"}, 120),
            ({"due": moment}, 3600),
        ):
            job = self.client.put(b"x", pri=7, ttr=30, **options).id
            stats = self.client.stats_job(job)
            self.assertEqual((stats["pri"], stats["ttr"], stats["tube"]), (7, 30, self.tube))
            self.assertAlmostEqual(stats["delay"], delay, delta=2)
        with self.assertRaises(ValueError):
            self.client.put("x", due=datetime.datetime.now())

    def test_times_are_rounded_up(self):
        ms = datetime.timedelta(milliseconds=1)
        moment = datetime.datetime(2040, 1, 1, tzinfo=datetime.timezone.utc)
        self.client.put("x", due=moment + ms / 100)
        (job,) = self.client.list_jobs(self.tube)
        self.assertEqual(job["due"], "2040-01-01T00:00:00.001Z")
        server = ScriptedServer(*["INSERTED 1"] * 6)
        self.addCleanup(server.close)
        client = Client(HOST, server.port)
        self.addCleanup(client.close)
        for delay in (0.0001, 1.0004, 2.003, 1.4 * ms, 7 * ms, 86_400):
            client.put("", delay=delay)
        sent = [command.split(" ")[2] for command in server.commands]
        times = ["1ms", "1001ms", "2003ms", "2ms", "7ms", "86400000ms"]
        self.assertEqual(sent, [f"delay={time}" for time in times])

    def test_attributes_are_kept(self):
        attributes = {"content_type": "text/plain", "metadata": {"say": 'a "b"\n\u00fc c'}}
        self.client.put("x", delay=60, attributes=attributes)
        self.client.put("y", delay=70, attributes='{"metadata":{"a":"b"}}')
        first, second = self.client.list_jobs(self.tube)
        told = {name: first[name] for name in attributes}
        self.assertEqual(told, attributes)
        self.assertEqual(second["metadata"], {"a": "b"})
        for key in ('"a', 'a "b"'):
            with self.assertRaises(ValueError):
                self.client.put("x", key=key)

    def test_a_tube_and_its_groups_are_set_with_numbers(self):
        rate = {"jobs": 100, "per": 60, "burst": 5}
        told = self.client.set_tube(self.tube, limits={"max_running": 10, "rate": rate})
        self.assertEqual(told["limits"]["rate"], {**rate, "per": "60s"})
        self.client.set_group(self.tube, "a", weight=3)
        self.client.put("x", group="a")
        stats = self.client.stats_tube(self.tube)
        self.assertEqual((stats["max-running"], stats["rate"], stats["burst"]), (10, 100, 5))
        (group,) = self.client.list_groups(self.tube)
        self.assertEqual((group["name"], group["weight"]), ("a", 3))
        self.client.set_tube(self.tube, limits={"rate": None})
        self.assertNotIn("rate", self.client.stats_tube(self.tube))

    def test_puts_wait_for_the_rate_of_their_tube(self):
        rate = {"jobs": 10, "per": "1s", "burst": 2}
        self.client.set_tube(self.tube, limits={"put_rate": rate}, retention=86_400)
        begun = time.monotonic()
        self.client.put_many(["a", "b"])
        self.client.put("c")
        self.assertGreaterEqual(time.monotonic() - begun, 0.09)
        stats = self.client.stats_tube(self.tube)
        self.assertEqual((stats["put-rate"], stats["put-burst"]), (10, 2))
        self.assertEqual(stats["retention-ms"], 86_400_000)
        with self.assertRaises(carillon.BatchRefused):
            self.client.put_many(["d", "e", "f"])
        rate = {"jobs": 1, "per": "30d", "burst": 1}
        self.client.set_tube(self.tube, limits={"put_rate": rate})
        with self.assertRaises(carillon.Refused) as refused:
            for _ in range(2):
                self.client.put("g")
        self.assertEqual(refused.exception.word, "TOO_FAST")

    def test_a_key_makes_a_put_safe_to_repeat(self):
        first = self.client.put("a", key="k", delay=60)
        exists = (first.id, "EXISTS", "delayed")
        self.assertEqual(self.client.put("b", key="k"), exists)
        puts = self.client.put_many([("b", {"key": "k"})], on_conflict="ignore")
        self.assertEqual(puts, [exists])
        again = self.client.put("c", key="k", on_conflict="replace")
        self.assertEqual(again, (first.id, "REPLACED", None))
        self.assertEqual(self.client.peek("k").body, b"c")
        self.client.patch("k", "d", pri=3)
        self.assertEqual(self.client.peek(first.id).body, b"d")
        self.assertIsNone(self.client.peek("other"))
        self.assertEqual(self.client.reserve(5).body, b"d")
        with self.assertRaises(carillon.IsReserved):
            self.client.put("e", key="k", on_conflict="replace")
        with self.assertRaises(carillon.IsReserved):
            self.client.cancel("k")
        self.assertFalse(self.client.cancel("k", ask=True))
        self.assertTrue(self.client.touch(first.id))
        self.client.release(first.id)
        self.assertIsNone(self.client.peek("k"))

    def test_what_is_refused_says_why(self):
        with self.assertRaises(carillon.Refused) as refused:
            self.client.put("x", delya=3)
        self.assertIn('"delya": no such option', str(refused.exception))
        self.assertEqual(refused.exception.word, "BAD_OPTION")
        with self.assertRaises(ValueError):
            self.client.use("a\r\nquit")
        self.assertTrue(self.client.put("the connection is still usable").id)

    def test_release_bury_and_kick(self):
        self.client.put("a", pri=5)
        self.client.reserve(5).release()
        self.assertEqual(self.client.stats_job(self.client.peek_ready().id)["pri"], 5)
        job = self.client.reserve(5)
        job.bury()
        self.assertEqual(self.client.peek_buried().id, job.id)
        self.assertEqual(self.client.kick(10), 1)
        self.client.reserve(5).release(pri=1, delay=60)
        self.assertEqual(self.client.peek_delayed().id, job.id)
        self.client.kick_job(job.id)
        self.assertEqual(self.client.reserve_job(job.id).body, b"a")

    def test_a_job_is_shown_and_buried_by_its_key(self):
        put = self.client.put("a", key="k", due="2040-01-01T09:00:00Z", group="acme")
        shown = self.client.show("k")
        self.assertEqual((shown["id"], shown["due"]), (put.id, "2040-01-01T09:00:00.000Z"))
        self.assertEqual(self.client.stats_group(self.tube, "acme")["jobs"]["delayed"], 1)
        self.assertEqual(self.client.bury_job("k", priority=7), put.id)
        self.assertEqual(self.client.bury_job(put.id), put.id)
        shown = self.client.show(put.id)
        self.assertEqual((shown["state"], shown["priority"], shown["body"]), ("buried", 7, "a"))
        self.client.kick_job(put.id)
        with self.assertRaises(carillon.IsReserved):
            self.client.bury_job(self.client.reserve_job(put.id).id)
        with self.assertRaises(carillon.NotFound):
            self.client.show("another key")
        other = self.client.put("b", buried=True)
        self.assertEqual(self.client.show(other.id)["state"], "buried")

    def test_statistics_and_tubes(self):
        self.client.put("a")
        self.assertIn(self.tube, self.client.tubes())
        self.assertEqual(self.client.stats_tube(self.tube)["current-jobs-ready"], 1)
        self.assertGreater(self.client.stats()["pid"], 1)
        self.client.pause_tube(self.tube, 1)
        self.assertIsNone(self.client.reserve(0))


class BatchesTest(ClientCase):
    def test_a_batch_is_put_reserved_and_deleted(self):
        puts = self.client.put_many(["a", b"b", ("c", {"pri": 1, "key": "k"})], pri=9)
        self.assertEqual([put.result for put in puts], ["INSERTED"] * 3)
        jobs = self.client.reserve_many(10, 5)
        self.assertEqual([job.text for job in jobs], ["c", "a", "b"])
        ids = [job.id for job in jobs]
        self.assertEqual(self.client.release_many(ids[1:] + [2**50]), [True, True, False])
        self.assertEqual(self.client.delete_many(ids), [True] * 3)
        self.assertEqual(self.client.delete_many(ids), [False] * 3)
        self.assertEqual(self.client.reserve_many(10, 0), [])

    def test_a_batch_is_refused_as_a_whole(self):
        self.client.put("x", key="k", delay=60)
        with self.assertRaises(carillon.BatchRefused) as refused:
            self.client.put_many(["a", ("b", {"key": "k"})])
        self.assertEqual(refused.exception.index, 1)
        self.assertTrue(refused.exception.why.startswith("EXISTS "))
        self.assertIsNone(self.client.reserve(0))

    def test_a_batch_with_a_token_is_put_once(self):
        first = self.client.put_many(["a", "b"], once=self.tube, window="1h")
        self.assertEqual(self.client.put_many(["a", "b"], once=self.tube, window="1h"), first)
        self.assertEqual(len(self.client.reserve_many(10, 5)), 2)
        with self.assertRaises(carillon.Refused):
            self.client.put_many(["c"], once=self.tube, window="1h")


class ManyJobsTest(ClientCase):
    def test_jobs_are_listed_page_by_page(self):
        puts = self.client.put_many([(str(i), {"delay": 60 + i}) for i in range(7)])
        jobs = list(self.client.list_jobs(self.tube, page_size=2, bodies=True))
        self.assertEqual([job["id"] for job in jobs], [put.id for put in puts])
        self.assertEqual([job["body"] for job in jobs], list("0123456"))
        self.assertEqual(list(self.client.list_jobs(self.tube, state="ready")), [])
        self.assertEqual(list(self.client.list_jobs("no-such-tube")), [])

    def test_groups_are_listed(self):
        for group in ("a", "b", "b"):
            self.client.put("x", group=group)
        groups = list(self.client.list_groups(self.tube))
        self.assertEqual(
            [(one["name"], one["jobs"]["ready"], one["weight"]) for one in groups],
            [("a", 1, 1), ("b", 2, 1)],
        )
        with self.assertRaises(carillon.NotFound):
            next(self.client.list_groups("no-such-tube"))

    def test_what_is_not_utf8_is_bytes(self):
        self.client.put(b"\xff")
        (job,) = self.client.list_jobs(self.tube, bodies=True)
        self.assertEqual(job["body"], b"\xff")

    def test_many_jobs_are_counted_moved_retried_and_cancelled(self):
        self.client.put_many([("x", {"key": f"a-{i}"}) for i in range(5)], delay=3600)
        self.client.put("y", key="b", delay=3600)
        a = {"key_prefix": "a-"}
        self.assertEqual(self.client.cancel_jobs(self.tube, dry_run=True, **a), (5, 0))
        other = self.tube + "-2"
        self.assertEqual(self.client.move_jobs(self.tube, other, max=2, **a), (2, 0))
        self.assertEqual(self.client.move_jobs(self.tube, other, **a), (3, 0))
        retried = self.client.retry_jobs(other, state="delayed")
        self.assertEqual(retried, (5, 0))
        self.assertEqual(self.client.stats_tube(other)["current-jobs-ready"], 5)
        self.client.watch(other)
        self.client.reserve(5)
        self.assertEqual(self.client.cancel_jobs(other), (4, 1))

    def test_many_jobs_are_spread(self):
        day = datetime.datetime(2040, 1, 1, tzinfo=datetime.timezone.utc)
        self.client.put_many(["x"] * 20, due=day)
        window = {"due_after": day, "due_before": day + datetime.timedelta(seconds=1)}
        counted = self.client.spread_jobs(self.tube, "1h", dry_run=True, **window)
        self.assertGreater(counted.jobs, 15)
        self.assertEqual(self.client.spread_jobs(self.tube, 3600, **window), counted)
        dues = {job["due"] for job in self.client.list_jobs(self.tube)}
        self.assertGreater(len(dues), 15)
        with self.assertRaises(carillon.Refused):
            self.client.spread_jobs(self.tube, 3600)

    def test_what_is_due_when(self):
        self.client.put("x", delay=90)
        self.client.put("x", delay="40d")
        told = self.client.due_counts(self.tube, by="minute", spans=5)
        self.assertEqual(sum(span["jobs"] for span in told["spans"]), 1)
        self.assertEqual((told["delayed"], told["later"]), (2, 1))


RETRY = {"max_attempts": 2, "backoff": {"type": "fixed", "initial": 0.01}}


class WorkTest(ClientCase):
    def work(self, client, handler, jobs):
        stop = threading.Event()
        seen = []

        def count(job):
            seen.append(job.text)
            if len(seen) == jobs:
                stop.set()
            return handler(job)

        thread = threading.Thread(
            target=client.work, args=(self.tube, count), kwargs={"stop": stop, "poll": 0.2}
        )
        thread.start()
        thread.join(20)
        self.assertFalse(thread.is_alive())
        return seen

    def test_jobs_are_deleted_or_fail_with_the_exception(self):
        self.client.set_tube(self.tube, retry=RETRY)
        bad = self.client.put("bad", pri=1).id
        self.client.put("good", pri=2)

        def handler(job):
            if job.text == "bad":
                raise ValueError('no "thing"')

        seen = self.work(self.a_client(name="worker-7"), handler, 3)
        self.assertEqual(sorted(seen), ["bad", "bad", "good"])
        self.assertEqual(self.client.stats_tube(self.tube)["current-jobs-buried"], 1)
        story = self.client.story(bad)
        self.assertEqual(len(story), 2)
        self.assertIn("ValueError: no", story[0]["error"])
        self.assertEqual(story[0]["worker"], "worker-7")

    def test_an_error_is_told_as_it_was(self):
        for error in ('say "no" \\ \n\t\u2028', "404"):
            self.client.put("x")
            job = self.client.reserve(5)
            job.fail(error, delay=60)
            self.assertEqual(self.client.story(job.id)[0]["error"], error)

    def test_a_handler_may_end_its_job(self):
        self.client.put("x")
        self.work(self.a_client(), lambda job: job.bury(), 1)
        self.assertEqual(self.client.peek_buried().body, b"x")

    def test_another_connection_that_a_handler_has_lost_is_its_failure(self):
        self.client.set_tube(self.tube, retry=RETRY)
        bad = self.client.put("x").id
        with socket.create_server((HOST, 0)) as listener:
            nobody = Client(HOST, listener.getsockname()[1], timeout=5)
        seen = self.work(self.a_client(), lambda job: nobody.put("y"), 2)
        self.assertEqual(len(seen), 2)
        story = self.client.story(bad)
        self.assertEqual([attempt["ended"] for attempt in story], ["failed"] * 2)
        self.assertIn("ConnectionLost: put-job", story[0]["error"])

    def scripted_work(self, *answers, handler=lambda job: None):
        """Works for a server with these answers, all of which it must ask for."""
        server = ScriptedServer("WATCHING 2", "WATCHING 1", *answers)
        self.addCleanup(server.close)
        client = Client(HOST, server.port)
        self.addCleanup(client.close)
        stop = threading.Event()
        server.when_done = stop.set
        client.work(self.tube, handler, stop=stop)
        return [command.split(" ")[0] for command in server.commands[2:]]

    def test_work_goes_on_when_the_disk_was_full(self):
        handled = []
        commands = self.scripted_work(
            "INTERNAL_ERROR",
            "OUT_OF_MEMORY",
            "JOBS 1\r\nRESERVED 7 1\r\nx",
            "INTERNAL_ERROR",
            "DELETED",
            handler=handled.append,
        )
        self.assertEqual(commands, ["reserve-jobs"] * 3 + ["delete"] * 2)
        self.assertEqual(len(handled), 1)

    def test_a_failure_is_told_when_the_disk_was_full(self):
        def handler(job):
            raise carillon.Refused("another", "thing")

        commands = self.scripted_work(
            "JOBS 1\r\nRESERVED 7 1\r\nx",
            "OK 16\r\n---\nattempts: 1\n",
            "INTERNAL_ERROR",
            "AGAIN 1 1000",
            handler=handler,
        )
        self.assertEqual(commands, ["reserve-jobs", "stats-job", "fail-job", "fail-job"])

    def test_a_job_without_a_back_off_waits_longer_after_each_failure(self):
        bad = self.client.put("x").id

        def handler(job):
            raise ValueError("no")

        began = time.monotonic()
        self.assertEqual(self.work(self.a_client(), handler, 2), ["x", "x"])
        self.assertGreater(time.monotonic() - began, 0.75)
        due, failed = (
            datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))
            for moment in (self.client.show(bad)["due"], self.client.story(bad)[-1]["at"])
        )
        self.assertGreaterEqual((due - failed).total_seconds(), 1.49)
        self.assertLessEqual((due - failed).total_seconds(), 2.01)

    def test_work_does_not_spin_while_a_job_runs_out(self):
        began = time.monotonic()
        self.scripted_work(*["DEADLINE_SOON"] * 5)
        self.assertGreater(time.monotonic() - began, 0.35)

    def test_what_will_always_be_refused_ends_work(self):
        for answer in ("FORBIDDEN its token", "UNKNOWN_COMMAND"):
            with self.assertRaises(carillon.Refused):
                self.scripted_work(answer)

    def test_an_interrupt_ends_work(self):
        client = self.a_client()
        self.client.put("x")
        ended = []

        def work():
            try:
                client.work(self.tube, lambda job: client.interrupt())
            except carillon.ConnectionLost:
                ended.append(True)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(20)
        self.assertEqual(ended, [True])

    def test_work_goes_on_when_the_connection_was_lost(self):
        proxy = Proxy()
        self.addCleanup(proxy.close)
        worker = Client(HOST, proxy.port, timeout=5)
        self.addCleanup(worker.close)
        self.client.put("a")

        cuts = []

        def handler(job):
            if not cuts:
                cuts.append(1)
                proxy.cut()
                job.touch()  # raises: it is not held any more

        self.assertEqual(self.work(worker, handler, 2), ["a", "a"])


class LostConnectionsTest(ClientCase):
    def setUp(self):
        super().setUp()
        self.proxy = Proxy()
        self.addCleanup(self.proxy.close)
        self.far = Client(HOST, self.proxy.port, tube=self.tube, timeout=5)
        self.addCleanup(self.far.close)

    def test_a_connection_that_is_gone_is_made_anew(self):
        self.far.watch(self.tube)
        self.far.set_name("far")
        self.proxy.cut()
        time.sleep(0.2)
        self.far.put("after the cut")
        self.assertEqual(self.far.reserve(5).text, "after the cut")
        self.assertEqual(self.far.stats_tube(self.tube)["current-jobs-reserved"], 1)

    def test_nobody_knows_whether_a_put_without_an_answer_was_carried_out(self):
        self.far.stats()
        self.proxy.keeps_replies = True
        with self.assertRaises(carillon.ConnectionLost) as lost:
            self.far.put("x")
        self.assertTrue(lost.exception.unknown)
        self.assertEqual(self.client.reserve(5).text, "x")

    def test_what_may_be_repeated_is(self):
        self.far.stats()
        self.proxy.keeps_replies = True
        put = self.far.put("x", key="k", key_window="1h")
        self.assertEqual(put.result, "EXISTS")
        self.proxy.keeps_replies = True
        puts = self.far.put_many(["a", "b"], once=self.tube)
        self.assertEqual(len(puts), 2)
        self.assertEqual(self.client.stats_tube(self.tube)["current-jobs-ready"], 3)

    def test_a_put_that_replaces_is_not_repeated(self):
        for on_conflict in ("replace", "keep-due", "debounce"):
            self.far.stats()
            self.proxy.keeps_replies = True
            with self.assertRaises(carillon.ConnectionLost) as lost:
                self.far.put("x", key="k", key_window="1h", on_conflict=on_conflict)
            self.assertTrue(lost.exception.unknown)
            # If it was repeated after this, the job would be run twice.
            self.client.reserve(5).delete()
            self.assertIsNone(self.client.reserve(0))
        for on_conflict in ("reject", "ignore"):
            self.far.stats()
            self.proxy.keeps_replies = True
            put = self.far.put("x", key=on_conflict, key_window="1h", on_conflict=on_conflict)
            self.assertEqual(put.result, "EXISTS")

    def test_a_line_that_the_server_would_refuse_without_its_data_is_not_sent(self):
        put = self.client.put("kept")
        data = f"delete {put.id}\r\n"
        for key in ("k" * 1_100, "a\0b", "a\nb"):
            with self.assertRaises(ValueError):
                self.client.put(data, key=key)
        with self.assertRaises(ValueError):
            self.client.patch("no key", data)
        self.assertEqual(self.client.reserve(0).id, put.id)

    def test_a_command_that_was_interrupted_is_not_answered_to_the_next(self):
        class Interrupted(Exception):
            pass

        def interrupt(*_):
            raise Interrupted

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with self.assertRaises(Interrupted):
            self.client.reserve(5)
        self.assertEqual(self.client.put("a").result, "INSERTED")
        self.assertEqual(self.client.reserve(5).text, "a")

    def test_a_connection_whose_tube_was_refused_is_not_used(self):
        listener = socket.create_server((HOST, 0))
        self.addCleanup(listener.close)

        def serve():
            for number, first in enumerate((b"OUT_OF_MEMORY\r\n", b"USING t\r\n")):
                connection, _ = listener.accept()
                self.addCleanup(connection.close)
                lines = connection.makefile("rb")
                lines.readline()
                connection.sendall(first)
                if lines.readline():
                    connection.sendall(b"INSERTED %d\r\n" % number)

        threading.Thread(target=serve, daemon=True).start()
        client = Client(HOST, listener.getsockname()[1], tube="t")
        self.addCleanup(client.close)
        with self.assertRaises(carillon.Refused):
            client.put("a")
        self.assertEqual(client.put("a").id, 1)

    def test_a_server_that_is_not_there_is_no_unknown_outcome(self):
        with socket.create_server((HOST, 0)) as listener:
            nobody = Client(HOST, listener.getsockname()[1], timeout=5)
        with self.assertRaises(carillon.ConnectionLost) as lost:
            nobody.put("x")
        self.assertFalse(lost.exception.unknown)


class SchedulesTest(ClientCase):
    def test_a_schedule(self):
        name = self.tube + "-" * (200 - len(self.tube))
        self.client.set_schedule(name, "sales", cron="30 8 * * MON-FRI", time_zone="Europe/Berlin")
        self.assertIn(name, [one["name"] for one in self.client.list_schedules()])
        shown = self.client.show_schedule(name)
        self.assertEqual((shown["cron"], shown["paused"]), ("30 8 * * MON-FRI", False))
        self.assertEqual((shown["job"]["tube"], shown["job"]["body"]), (self.tube, "sales"))
        self.client.pause_schedule(name)
        self.assertIs(self.client.show_schedule(name)["paused"], True)
        job = self.client.trigger_schedule(name)
        self.assertEqual(self.client.reserve(5).id, job)
        self.client.resume_schedule(name)
        metadata = {"max": 5, "text": "\u00fc"}
        self.client.set_schedule(name, b"\xff", every=3600, group="g" * 200, metadata=metadata)
        shown = self.client.show_schedule(name)
        self.assertEqual((shown["every"], shown["job"]["metadata"]), ("3600s", metadata))
        self.assertEqual(shown["job"]["body"], b"\xff")
        self.client.delete_schedule(name)
        with self.assertRaises(carillon.NotFound):
            self.client.show_schedule(name)
        with self.assertRaisesRegex(carillon.Refused, "400 /every: "):
            self.client.set_schedule(name, "x", every="soon")


class HttpTest(ClientCase):
    """How the requests of operators reach the server."""

    def far(self):
        proxy = Proxy(PORT + 80)
        self.addCleanup(proxy.close)
        return proxy, self.a_client(http=(HOST, proxy.port), timeout=5)

    def test_what_may_be_repeated_is(self):
        proxy, far = self.far()
        self.client.put("x", delay=60)
        proxy.keeps_replies = True
        self.assertEqual(len(list(far.list_jobs(self.tube))), 1)
        proxy.keeps_replies = True
        with self.assertRaises(carillon.ConnectionLost) as lost:
            far.cancel_jobs(self.tube)
        self.assertTrue(lost.exception.unknown)
        self.assertEqual(list(far.list_jobs(self.tube)), [])

    def test_a_server_without_http_is_not_there(self):
        with socket.create_server((HOST, 0)) as listener:
            nobody = self.a_client(http=listener.getsockname())
        with self.assertRaisesRegex(carillon.ConnectionLost, "GET /v1/jobs/1: ") as lost:
            nobody.show(1)
        self.assertFalse(lost.exception.unknown)

    def test_another_thread_interrupts_a_request(self):
        with socket.create_server((HOST, 0)) as silent:
            client = self.a_client(http=silent.getsockname())
            threading.Timer(0.2, client.interrupt).start()
            for _ in range(2):
                with self.assertRaises(carillon.ConnectionLost):
                    client.show(1)

    def test_it_is_beside_the_other_address(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/socket"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path + ".http")
                listener.listen()
                threading.Thread(target=self.answer_once, args=(listener,), daemon=True).start()
                client = Client(path=path, token="secret")
                self.assertEqual(client.show(7), {"id": 7})
        self.assertEqual(self.request[0], b"GET /v1/jobs/7 HTTP/1.1")
        self.assertIn(b"Authorization: Bearer secret", self.request)

    def answer_once(self, listener):
        connection, _ = listener.accept()
        with connection:
            self.request = connection.recv(4096).split(b"\r\n")
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"id":7}')


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
