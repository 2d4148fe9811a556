"""Short scripts that must wait for time to pass. The replies to each must be the same on every
server.

All scripts run at once on all servers, each on a tube of its own, so the whole takes as long as the
longest script.
"""

import time
from concurrent.futures import ThreadPoolExecutor

_RESERVE_SECONDS = 15.0  # a reply that takes longer is a failure


class _Script:
    """A client of one server. It writes down the replies, with ids replaced by the order of the
    puts."""

    def __init__(self, server, tube: bytes):
        self._server = server
        self._tube = tube
        self._ids = []
        self.transcript = []
        self._connections = []

    def connect(self):
        connection = self._server.connect()
        self._connections.append(connection)
        for command in (b"use " + self._tube, b"watch " + self._tube, b"ignore default"):
            connection.call(command)
        return connection

    def put(self, connection, head: bytes) -> bytes:
        reply = connection.call(head + b" 1", b"x")
        self._ids.append(reply.number())
        return b"%d" % reply.number()

    def do(self, connection, command: bytes) -> None:
        connection.send(command + b"\r\n")
        self.expect(connection)

    def expect(self, connection) -> None:
        reply = connection.reply(_RESERVE_SECONDS)
        if reply.word in (b"RESERVED", b"FOUND"):
            self.transcript.append((reply.word.decode(), self._ids.index(reply.number())))
        else:
            self.transcript.append(reply.line.decode())

    @staticmethod
    def poke(connection) -> None:
        """Makes beanstalkd check this connection's jobs once more. If a ttr ends in the very
        microsecond in which beanstalkd checks, it does nothing until the connection's next
        command."""
        connection.call(b"list-tube-used")

    def job_stats(self, connection, job_id: bytes, *keys: str) -> None:
        stats = connection.stats(b"stats-job " + job_id)
        self.transcript.append([(key, stats[key]) for key in keys])

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def _deadline_soon_at_once(s: _Script) -> None:
    c = s.connect()
    s.put(c, b"put 0 0 2")
    s.do(c, b"reserve")
    time.sleep(1.3)
    s.do(c, b"reserve")  # DEADLINE_SOON
    s.do(c, b"reserve-with-timeout 0")  # DEADLINE_SOON, before the time-out
    s.put(c, b"put 0 0 60")
    s.do(c, b"reserve")  # a ready job goes before the warning
    s.do(c, b"reserve")  # DEADLINE_SOON


def _deadline_soon_ends_a_wait(s: _Script) -> None:
    c = s.connect()
    first = s.put(c, b"put 0 0 2")
    s.do(c, b"reserve")
    s.do(c, b"reserve-with-timeout 10")  # DEADLINE_SOON after 1 s
    s.do(c, b"reserve")  # DEADLINE_SOON, at once
    time.sleep(1.4)
    s.poke(c)
    s.job_stats(c, first, "state", "reserves", "timeouts", "time-left")
    s.do(c, b"touch " + first)  # NOT_FOUND: no longer ours
    s.do(c, b"delete " + first)  # DELETED: ready


def _reserve_job_never_warns(s: _Script) -> None:
    c = s.connect()
    s.put(c, b"put 0 0 1")
    other = s.put(c, b"put 0 1000 60")
    s.do(c, b"reserve")
    s.do(c, b"reserve-job " + other)
    s.do(c, b"reserve")  # DEADLINE_SOON: a ttr of 1 s is all margin


def _an_expired_job_goes_to_the_next_worker(s: _Script) -> None:
    first, second = s.connect(), s.connect()
    job = s.put(first, b"put 5 0 0")  # ttr 0 becomes 1 s
    s.job_stats(first, job, "ttr")
    s.do(first, b"reserve")
    second.send(b"reserve\r\n")
    time.sleep(1.3)
    s.poke(first)
    s.expect(second)
    s.do(first, b"delete " + job)  # NOT_FOUND: it is the second's
    s.do(first, b"release " + job + b" 0 0")
    s.do(first, b"bury " + job + b" 0")
    s.do(second, b"bury " + job + b" 9")
    s.job_stats(second, job, "state", "pri", "reserves", "timeouts", "buries", "time-left")


def _touch_gives_another_ttr(s: _Script) -> None:
    c = s.connect()
    job = s.put(c, b"put 0 0 2")
    s.do(c, b"reserve")
    time.sleep(1.2)
    s.do(c, b"reserve-with-timeout 0")  # DEADLINE_SOON
    s.do(c, b"touch " + job)
    s.do(c, b"reserve-with-timeout 0")  # TIMED_OUT: there is time again
    time.sleep(0.5)
    s.do(c, b"reserve-with-timeout 0")
    s.do(c, b"delete " + job)


def _delays_end_in_order(s: _Script) -> None:
    producer, worker = s.connect(), s.connect()
    for delay in (2, 1, 1):
        s.put(producer, b"put 0 %d 60" % delay)
    s.put(producer, b"put 9 0 60")
    for _ in range(4):
        s.do(worker, b"reserve")
    s.do(worker, b"reserve-with-timeout 0")


def _a_released_job_comes_back_after_its_delay(s: _Script) -> None:
    c = s.connect()
    job = s.put(c, b"put 0 0 60")
    s.do(c, b"reserve")
    s.do(c, b"release " + job + b" 77 1")
    s.job_stats(c, job, "state", "pri", "delay", "releases")
    s.do(c, b"reserve-with-timeout 0")
    s.do(c, b"reserve-with-timeout 5")
    s.job_stats(c, job, "state", "pri", "delay", "reserves", "releases")


def _a_pause_holds_waiting_workers_and_new_jobs(s: _Script) -> None:
    producer, worker = s.connect(), s.connect()
    s.do(producer, b"pause-tube " + s._tube + b" 2")
    s.put(producer, b"put 0 0 60")
    s.put(producer, b"put 0 0 60")
    s.do(producer, b"peek-ready")
    s.do(worker, b"reserve-with-timeout 1")  # TIMED_OUT
    s.do(worker, b"reserve")  # when the pause ends
    s.do(worker, b"reserve")
    stats = worker.stats(b"stats-tube " + s._tube)
    s.transcript.append(
        [
            stats[key]
            for key in ("cmd-pause-tube", "pause", "pause-time-left", "current-jobs-reserved")
        ]
    )


def _a_pause_is_lifted_by_a_pause_of_zero(s: _Script) -> None:
    producer, worker = s.connect(), s.connect()
    s.do(producer, b"pause-tube " + s._tube + b" 1000")
    s.put(producer, b"put 0 0 60")
    worker.send(b"reserve\r\n")
    time.sleep(0.2)
    s.do(producer, b"pause-tube " + s._tube + b" 0")
    s.expect(worker)


def _a_time_out_after_a_second(s: _Script) -> None:
    c = s.connect()
    s.do(c, b"reserve-with-timeout 1")
    s.do(c, b"reserve-with-timeout 0")


def _a_worker_that_goes_gives_its_jobs_back(s: _Script) -> None:
    holder, worker = s.connect(), s.connect()
    for pri in (3, 1, 2):
        s.put(holder, b"put %d 0 60" % pri)
    for _ in range(3):
        s.do(holder, b"reserve")
    holder.close()
    time.sleep(0.3)
    for _ in range(3):
        s.do(worker, b"reserve-with-timeout 5")


SCENARIOS = {
    scenario.__name__.strip("_"): scenario
    for scenario in (
        _deadline_soon_at_once,
        _deadline_soon_ends_a_wait,
        _reserve_job_never_warns,
        _an_expired_job_goes_to_the_next_worker,
        _touch_gives_another_ttr,
        _delays_end_in_order,
        _a_released_job_comes_back_after_its_delay,
        _a_pause_holds_waiting_workers_and_new_jobs,
        _a_pause_is_lifted_by_a_pause_of_zero,
        _a_time_out_after_a_second,
        _a_worker_that_goes_gives_its_jobs_back,
    )
}


def _play(server, name: str) -> list:
    script = _Script(server, name.encode())
    try:
        SCENARIOS[name](script)
    except Exception as failure:  # the failure is compared too
        script.transcript.append(repr(failure))
    script.close()
    return script.transcript


def play_all(servers: list) -> list:
    """Plays every scenario on every server. Returns one {name: transcript} per server."""
    with ThreadPoolExecutor(max_workers=len(servers) * len(SCENARIOS)) as pool:
        plays = [
            {name: pool.submit(_play, server, name) for name in SCENARIOS} for server in servers
        ]
        return [{name: play.result() for name, play in one.items()} for one in plays]
