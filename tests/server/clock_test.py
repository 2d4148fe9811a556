"""A wall clock that is wrong for a moment, ahead and behind, by little and by much: no job is early
by the right clock, none is much later than it should be, and none comes twice. In all combinations,
at the same time, each on a server of its own.

The lower bound is exact. The upper bound is generous, because other tests run on the same machine.
"""

import concurrent.futures
import http.client
import tempfile
import time
import unittest

import daemon
import wrong_clock
from wire import TIMED_OUT, said

_LATE = 2.5  # seconds
_ERRORS = (1.1, 20, 3_600, 315_576_000)  # seconds, ahead and behind
_LOAD_AHEAD = "400ms"
_NEAR, _FAR = 0.3, 1.2  # seconds: in memory at once, and not
_AT_ONCE = 16


def _now() -> float:
    """The right time."""
    return time.time_ns() / 1e9


class _Case:
    """One server, and the jobs that it owes."""

    def __init__(self, error: float):
        self.error = error
        self.clock = wrong_clock.Clock()
        self.directory = tempfile.TemporaryDirectory()
        self.due = {}  # by job
        self.server = None
        self.right_since = 0.0
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        self.clock.close()
        self.directory.cleanup()

    def start(self):
        data = self.directory.name + "/data"
        self.server = daemon.carillon_serve(
            data,
            "--load-ahead",
            _LOAD_AHEAD,
            "--http",
            f"{daemon.HOST}:0",
            environment=self.clock.environment,
        ).start()
        self.client = self.server.connect()

    def stop(self):
        self.server.__exit__()

    def set(self, error: float):
        self.clock.set(error)
        self.client.stats()  # the server notices

    def ask(self, method: str, path: str, body: str, key: str):
        """Sends a request with an Idempotency-Key. Returns the status, the text, and whether it was
        answered before."""
        client = http.client.HTTPConnection(daemon.HOST, self.server.http_port(), timeout=20)
        headers = {"Idempotency-Key": f'"{key}"', "Content-Type": "application/json"}
        client.request(method, path, body, headers)
        reply = client.getresponse()
        text = reply.read()
        client.close()
        return reply.status, text, reply.getheader("Idempotent-Replayed") == "true"

    def put_all(self):
        """Delays and moments, near and far, and a job that is ready at once."""
        for delay in (0, _NEAR, _FAR):
            sent = _now()
            self.due[self.client.put_ms(b"delay", 0, int(delay * 1000))] = sent + delay
        for delay in (_NEAR, _FAR):
            due_ms = int((_now() + delay) * 1000)
            job = self.client.call(b"put-at 0 %d 60000 6" % due_ms, b"moment").number()
            self.due[job] = due_ms / 1000

    def take_all(self, check: unittest.TestCase):
        """Every job comes, in time, and once."""
        until = max(self.due.values()) + _LATE
        while self.due and _now() < until:
            reply = self.client.call(b"reserve-with-timeout-ms 500")
            now = _now()
            if reply == TIMED_OUT:
                continue
            job = reply.number()
            what = f"{reply.body} {job}, error {self.error}"
            check.assertIn(job, self.due, f"twice: {what}")
            due = self.due.pop(job)
            check.assertGreaterEqual(now, due, f"early: {what}")
            check.assertLess(now, max(due, self.right_since) + _LATE, f"late: {what}")
            check.assertEqual(self.client.call(b"delete %d" % job), said(b"DELETED"))
        check.assertEqual(self.due, {}, f"did not come, error {self.error}")
        check.assertEqual(self.client.call(b"reserve-with-timeout-ms 100"), TIMED_OUT)

    def put_right(self):
        self.set(0)
        self.right_since = _now()


@unittest.skipUnless(wrong_clock.library(), "the library does not work in this build")
class ClockTest(unittest.TestCase):
    def each(self, scenario, errors=(*_ERRORS, *(-error for error in _ERRORS))):
        """Runs the scenario with every error."""

        def run(error):
            with _Case(error) as case:
                scenario(case)

        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as threads:
            for done in [threads.submit(run, error) for error in errors]:
                done.result()

    def test_a_moment(self):
        def scenario(case):
            case.put_all()
            case.set(case.error)
            case.put_all()
            case.put_right()
            case.put_all()
            case.take_all(self)
            log = case.server.log()
            self.assertEqual(log.count("the wall clock was set forward by"), 1, log)
            self.assertEqual(log.count("the wall clock was set back by"), 1, log)

        self.each(scenario)

    def test_a_restart_while_it_is_wrong(self):
        def scenario(case):
            case.put_all()
            case.set(case.error)
            case.put_all()
            case.stop()
            case.start()
            case.put_all()
            case.put_right()
            case.put_all()
            case.take_all(self)

        self.each(scenario)

    def test_the_machine_boots_with_a_wrong_clock(self):
        def scenario(case):
            case.put_all()
            case.stop()
            case.clock.boot()
            case.clock.set(case.error)
            case.start()
            case.put_right()
            case.put_all()
            case.take_all(self)

        self.each(scenario)

    def test_what_is_put_once_is_not_put_again_after_a_second_of_a_clock_ahead(self):
        batch = b"1 delay=1h\r\na\r\n"
        requests = (
            ("POST", "/v1/tubes/t/jobs", '{"delay": "1h"}', "job"),
            ("POST", "/v1/tubes/t/jobs:batch", '{"jobs": [{"delay": "1h"}]}', "batch"),
        )

        def put(case):
            """Returns the answers: of each verb the word, and all of HTTP."""
            key = case.client.call(b"put-job 1 key=k key-window=1h", b"a").word
            once = case.client.call(b"put-jobs %d once=order-7 window=36h" % len(batch), batch).word
            case.client.reply()  # the line of the job
            return key, once, [case.ask(*request) for request in requests]

        def scenario(case):
            key, once, first = put(case)
            self.assertEqual([key, once], [b"INSERTED", b"JOBS"])
            self.assertEqual([answer[0] for answer in first], [201, 200])
            job = case.client.call(b"reserve-with-timeout-ms 5000").number()
            self.assertEqual(case.client.call(b"delete %d" % job), said(b"DELETED"))
            other = case.client.put(b"deleted by HTTP", 0, 0, 60)
            delete = ("DELETE", f"/v1/jobs/{other}", "", "delete")
            self.assertEqual(case.ask(*delete), (204, b"", False))

            def all_are_known():
                key, once, again = put(case)
                self.assertEqual([key, once], [b"EXISTS", b"ALREADY"])
                for one, before in zip(again, first):
                    self.assertEqual(one, (*before[:2], True))

            case.set(case.error)
            time.sleep(1)
            case.set(0)
            self.assertEqual(case.ask(*delete), (204, b"", True))
            all_are_known()
            case.stop()
            case.start()
            all_are_known()
            case.set(case.error)
            case.stop()
            case.start()
            all_are_known()
            case.set(0)
            case.stop()
            case.start()
            all_are_known()

        self.each(scenario, (2 * 3_600, 2 * 86_400))


if __name__ == "__main__":
    unittest.main()
