"""Backups of a server under load, and of one that is killed meanwhile.

A backup is the state after some beginning of what each client did, which has all that was
acknowledged before the backup was asked for. CARILLON_SEED replays the choices (not the timing).
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))
import daemon  # noqa: E402
from ledger import Ids  # noqa: E402
from loaded_client import IN_MILLISECONDS, LoadedClient  # noqa: E402
from wire import Connection, setting  # noqa: E402

_SEED = setting("CARILLON_SEED", random.SystemRandom().randrange(2**32))
_ROUNDS = setting("CARILLON_ROUNDS", 8)
_CLIENTS = 3


def start_backup(server: daemon.Server, target: str) -> subprocess.Popen:
    address = f"{daemon.HOST}:{server.port}"
    return subprocess.Popen(
        [daemon.carillon_path(), "backup", target, "--server", address, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class HistoryClient:
    """Puts and deletes jobs in a tube of its own, also after a reserve, until it is told to stop.
    It remembers what it did, and when."""

    def __init__(self, name: str, seed: int):
        self.tube = name.encode()
        self._rng = random.Random(seed)
        self.bodies = {}  # id -> body
        self._alive = []
        # (is_put, id, sent, acknowledged), in the order in which the server carried them out. Times
        # are in seconds.
        self.history = []

    def work(self, connection: Connection, stop: threading.Event) -> None:
        for line in (b"use ", b"watch "):
            connection.call(line + self.tube)
        connection.call(b"ignore default")
        while not stop.is_set():
            bodies = [self._body() for _ in range(self._rng.randrange(1, 30))]
            gone = [self._take() for _ in range(self._rng.randrange(len(bodies) + 1))]
            gone = [job for job in gone if job]
            if self._rng.random() < 0.3:
                reply = connection.call(b"reserve-with-timeout 0")
                if reply.word == b"RESERVED" and reply.number() not in gone:
                    self._alive.remove(reply.number())
                    gone.append(reply.number())
            self._exchange(connection, bodies, gone)

    def _exchange(self, connection: Connection, bodies: list, gone: list) -> None:
        sent = time.monotonic()
        connection.send(
            b"".join(b"put 0 %d 60 %d\r\n%s\r\n" % (len(b) % 2, len(b), b) for b in bodies)
            + b"".join(b"delete %d\r\n" % job for job in gone)
        )
        for body in bodies:
            job = connection.reply().number()
            self.history.append((True, job, sent, time.monotonic()))
            self.bodies[job] = body
            self._alive.append(job)
        for job in gone:
            assert connection.reply().line == b"DELETED"
            self.history.append((False, job, sent, time.monotonic()))

    def _body(self) -> bytes:
        return self._rng.randbytes(self._rng.choice([0, 20, 200, 200, 5_000]))

    def _take(self) -> int:
        if not self._alive or self._rng.random() < 0.3:
            return 0
        return self._alive.pop(self._rng.randrange(len(self._alive)))

    def beginning_that_leaves(self, present: set, least: float, most: float) -> int:
        """Returns how many of its changes leave exactly these jobs: none that was sent after
        `most`, and all that were acknowledged before `least`. Raises AssertionError if none do."""
        different = set(present)
        for count, (is_put, job, sent, _) in enumerate(self.history + [(True, 0, most, most)]):
            whole = all(done >= least for _, _, _, done in self.history[count : count + 1])
            if not different and whole:
                return count
            assert sent <= most, f"after {count} changes, these jobs differ: {different}"
            different ^= {job}
        raise AssertionError(f"at its end, these jobs differ: {different}")


class UnderLoadTest(unittest.TestCase):
    def test_a_backup_has_a_beginning_of_what_each_client_did(self):
        print(f"CARILLON_SEED={_SEED}", flush=True)
        rng = random.Random(_SEED)
        directory = self.enterContext(tempfile.TemporaryDirectory())
        server = self.enterContext(daemon.carillon_serve(directory + "/data"))
        clients = [HistoryClient(f"client-{n}", rng.randrange(2**32)) for n in range(_CLIENTS)]
        stop = threading.Event()
        backups = []
        with ThreadPoolExecutor(_CLIENTS) as pool:
            working = [pool.submit(c.work, server.connect(), stop) for c in clients]
            try:
                for number in range(4):
                    time.sleep(rng.uniform(0.1, 0.6))
                    asked = time.monotonic()
                    process = start_backup(server, f"{directory}/backup-{number}")
                    output, error = process.communicate(timeout=60)
                    self.assertEqual(process.returncode, 0, error)
                    backups.append((json.loads(output), asked, time.monotonic()))
            finally:
                stop.set()
            for work in working:
                work.result()
        numbers = [result["number"] for result, _, _ in backups]
        self.assertEqual(numbers, sorted(set(numbers)))
        for result, asked, done in backups:
            self._check(result, clients, asked, done)
        changes = sum(len(client.history) for client in clients)
        print(f"{changes} changes; backups up to {numbers}")
        self.assertGreater(changes, 1_000, "too little load to show anything")

    def _check(self, result: dict, clients: list, asked: float, done: float) -> None:
        with daemon.carillon_serve(result["directory"]) as server:
            connection = server.connect()
            counts = []
            for client in clients:
                present = self._present(connection, client)
                self.assertEqual(self._jobs_in(connection, client.tube), len(present))
                counts.append(client.beginning_that_leaves(present, asked, done))
            self.assertEqual(sum(counts), result["number"], counts)
            for client, count in zip(clients, counts):
                given = max((job for _, job, _, _ in client.history[:count]), default=0)
                self.assertGreater(connection.put(b"new"), given)

    def _present(self, connection: Connection, client: HistoryClient) -> set:
        jobs = list(client.bodies)
        present = set()
        for first in range(0, len(jobs), 500):
            some = jobs[first : first + 500]
            connection.send(b"".join(b"peek %d\r\n" % job for job in some))
            for job in some:
                reply = connection.reply()
                if reply.line == b"NOT_FOUND":
                    continue
                self.assertEqual(reply.body, client.bodies[job])
                present.add(job)
        return present

    def _jobs_in(self, connection: Connection, tube: bytes) -> int:
        reply = connection.call(b"stats-tube " + tube)
        if reply.line == b"NOT_FOUND":
            return 0
        stats = connection.stats(b"stats-tube " + tube)
        return sum(int(stats[f"current-jobs-{state}"]) for state in ("ready", "delayed"))


class KilledTest(unittest.TestCase):
    """The server is killed while backups are made. It loses nothing, nothing of the checkpoints is
    left once it runs again, and each backup is whole or not there."""

    def test_sigkill_while_backups_are_made(self):
        print(f"CARILLON_SEED={_SEED} CARILLON_ROUNDS={_ROUNDS}", flush=True)
        rng = random.Random(_SEED)
        ids = Ids()
        clients = [
            LoadedClient(f"client-{n}", rng.randrange(2**32), IN_MILLISECONDS, ids)
            for n in range(_CLIENTS)
        ]
        counts = Counter()
        with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(_CLIENTS) as pool:
            for number in range(_ROUNDS):
                with daemon.carillon_serve(directory + "/data") as server:
                    for client in clients:
                        client.connect(server.connect())
                    self.assertEqual(self._checkpoints(directory), [])
                    list(pool.map(LoadedClient.verify, clients))
                    working = [pool.submit(client.work) for client in clients]
                    time.sleep(rng.uniform(0.02, 0.4))
                    target = f"{directory}/backup-{number}"
                    backup = start_backup(server, target)
                    time.sleep(rng.uniform(0.0, 0.3))
                    server.kill()
                    counts["checkpoints left"] += len(self._checkpoints(directory))
                    for work in working:
                        work.result()
                    for client in clients:
                        client.crashed()
                self._check_backup(backup, target, counts)
            with daemon.carillon_serve(directory + "/data") as server:
                for client in clients:
                    client.connect(server.connect())
                    client.verify_everything()
                self.assertEqual(self._checkpoints(directory), [])
        print(dict(counts))

    def _checkpoints(self, directory: str) -> list:
        return [name for name in os.listdir(directory + "/data") if name.startswith("checkpoint")]

    def _check_backup(self, backup: subprocess.Popen, target: str, counts: Counter) -> None:
        _, error = backup.communicate(timeout=60)
        self.assertFalse(os.path.exists(target + ".partial"))
        counts[f"exit {backup.returncode}"] += 1
        if backup.returncode == 1:
            self.assertRegex(error, rb"^carillon backup: (lost the connection|cannot connect) ")
            self.assertFalse(os.path.exists(target))
            return
        self.assertEqual(backup.returncode, 0, error)
        with daemon.carillon_serve(target) as server:
            self.assertGreater(int(server.connect().stats()["total-connections"]), 0)
        shutil.rmtree(target)


if __name__ == "__main__":
    unittest.main()
