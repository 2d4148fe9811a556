"""Kills the server with SIGKILL at random moments under load, restarts it on the same data, and
accounts for every acknowledged job.

No job is lost, early or changed, no job that was acknowledged as deleted comes back, and no id is
given twice. CARILLON_SEED replays the choices (not the timing). CARILLON_ROUNDS sets how often the
server is killed.
"""

import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))
import daemon  # noqa: E402
from ledger import Ids, Violation  # noqa: E402
from loaded_client import IN_MILLISECONDS, IN_SECONDS, LoadedClient  # noqa: E402
from wire import setting  # noqa: E402

_ROUNDS = setting("CARILLON_ROUNDS", 12)
_SEED = setting("CARILLON_SEED", random.SystemRandom().randrange(2**32))
_CLIENTS = 4
_UNTIL_ALL_NEAR_JOBS_ARE_DUE = 2.5  # seconds


class CrashTest(unittest.TestCase):
    def test_sigkill_under_load(self):
        print(f"CARILLON_SEED={_SEED} CARILLON_ROUNDS={_ROUNDS}", flush=True)
        rng = random.Random(_SEED)
        ids = Ids()
        clients = [
            LoadedClient(f"client-{n}", rng.randrange(2**32), IN_MILLISECONDS, ids)
            for n in range(_CLIENTS)
        ]
        kills = Counter()
        with tempfile.TemporaryDirectory() as data:
            for _ in range(_ROUNDS):
                if rng.random() < 0.3:
                    kills["while starting"] += self._kill_while_starting(
                        data, rng.uniform(0.0, 0.05)
                    )
                self._round(daemon.carillon_serve(data), clients, rng.uniform(0.05, 1.0))
                kills["under load"] += 1
            self._account(data, clients)
        total = sum((c.counts for c in clients), Counter())
        print(
            f"kills: {dict(kills)}; "
            + ", ".join(f"{name} {count}" for name, count in total.items())
            + f"; ids {len(ids)}"
        )
        self.assertGreater(
            total["puts acknowledged"], 100 * _ROUNDS, "too little load to show anything"
        )
        self.assertGreater(total["delete"], 20 * _ROUNDS, "too little load to show anything")

    def test_a_server_that_forgets_is_found_out(self):
        clients = [LoadedClient("client", _SEED, IN_SECONDS, Ids())]
        forgetful = daemon.carillon_beanstalkd
        self._round(forgetful(), clients, 0.2)
        with self.assertRaisesRegex(Violation, "gone where it must be"):
            self._round(forgetful(), clients, 0.2)

    def _round(self, server: daemon.Server, clients: list, seconds: float) -> None:
        """Starts the server, checks the jobs, and kills it after `seconds` of work."""
        with server:
            for client in clients:
                client.connect(server.connect())
            self._all_at_once([client.verify for client in clients], lambda: None)
            self._all_at_once(
                [client.work for client in clients], lambda: (time.sleep(seconds), server.kill())
            )
            for client in clients:
                client.crashed()

    def _kill_while_starting(self, data: str, seconds: float) -> int:
        process = subprocess.Popen(
            daemon.carillon_serve(data).command_line(daemon.free_port()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "it ended by itself")
        process.kill()
        process.wait()
        return 1

    def _account(self, data: str, clients: list) -> None:
        """Accounts for all jobs at the end: reads each, takes those that are due, counts the
        rest, deletes all, and checks after one more crash that none comes back."""
        with daemon.carillon_serve(data) as server:
            for client in clients:
                client.connect(server.connect())
            self._all_at_once([client.verify_everything for client in clients], lambda: None)
            time.sleep(_UNTIL_ALL_NEAR_JOBS_ARE_DUE)
            for client in clients:
                client.take_everything()
                client.count_what_is_left()
                client.delete_the_rest()
            server.kill()
            for client in clients:
                client.crashed()
        with daemon.carillon_serve(data) as server:
            for client in clients:
                client.connect(server.connect())
                client.verify_everything()
                client.take_everything()
                client.count_what_is_left()

    def _all_at_once(self, tasks: list, meanwhile) -> None:
        """Runs each task in a thread of its own, and `meanwhile` in this one. Raises the first
        failure."""
        failures = []

        def guarded(task):
            try:
                task()
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        meanwhile()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


if __name__ == "__main__":
    unittest.main()
