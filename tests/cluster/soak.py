#!/usr/bin/env python3
"""Three nodes on PostgreSQL with a synchronous standby, under load of both protocols, while nodes,
database servers and the lines between them fail. A ledger accounts for every job.

    tests/cluster/soak.py --carillon build/carillon --seconds 600

It prints its seed, what happened, and its figures. The exit code is 1 if a promise was broken: the
last lines say which, with the history of the job. --seed repeats the choices, not the timing.
--fsync makes the database sync its disk, as it must where its machine may lose power.
"""

import argparse
import contextlib
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter

import nodes
import postgres
import proxy
import soak_clients
from accounts import Accounts, Violation

# What a node says that has found no database at its start.
_NO_DATABASE = re.compile(r"carillon serve: (connection to server|127\.0\.0\.1:)")
_CLIENTS = (
    soak_clients.WebProducer,
    soak_clients.WebProducer,
    soak_clients.LineProducer,
    soak_clients.LineProducer,
    soak_clients.WebWorker,
    soak_clients.WebWorker,
    soak_clients.WebWorker,
    soak_clients.LineWorker,
    soak_clients.LineWorker,
    soak_clients.LineWorker,
    soak_clients.Lister,
)


class Databases:
    """A primary and its synchronous standby. When the primary is lost for good, the standby takes
    its place, and gets a new standby before anything else may fail."""

    def __init__(self, lines: proxy.Proxy, fsync: bool):
        self._lines = lines
        self._settings = {"fsync": "on" if fsync else "off", "max_connections": "60"}
        self._stack = contextlib.ExitStack()
        self._names = iter(f"s{n}" for n in range(1, 10_000))
        self.primary = None
        self.standby = None
        self._slot = 0  # the primary's

    def __enter__(self):
        self.primary = self._stack.enter_context(postgres.Postgres(**self._settings))
        self._add_standby()
        self._lines.lead(0, self.primary.port)
        return self

    def __exit__(self, *_):
        self._stack.__exit__(None, None, None)

    def _add_standby(self):
        name = next(self._names)
        self.standby = self._stack.enter_context(self.primary.standby(name))
        self._lines.lead(1 - self._slot, self.standby.port)
        self.primary.wait_for_standbys(name)

    def promote(self):
        """The primary is gone before the standby is promoted."""
        self.primary.kill()
        self.standby.promote()
        self.primary = self.standby
        self._slot = 1 - self._slot
        self._add_standby()


class Events:
    """What fails: one thing after another, and some of it while another still does."""

    def __init__(self, seed: int, cluster, databases, lines, say):
        self.random = random.Random(seed)
        self.cluster = cluster
        self.databases = databases
        self.lines = lines
        self.say = say
        self.counts = Counter()
        self._later = []  # (when, what undoes it)

    def run(self, until: float, is_over):
        while time.monotonic() < until and not is_over():
            self.one()
            pause = time.monotonic() + self.random.uniform(0.2, 2.5)
            while time.monotonic() < pause and not is_over():
                self.undo(time.monotonic())
                time.sleep(0.05)
                self.check_nodes()
        self.undo(float("inf"))

    def undo(self, now: float):
        for one in sorted(self._later, key=lambda one: one[0]):
            if one[0] <= now:
                self._later.remove(one)
                one[1]()

    def later(self, seconds: float, act):
        self._later.append((time.monotonic() + seconds, act))

    def check_nodes(self):
        """A node ends by itself only if it finds no database at its start: it is started again."""
        for node in self.cluster.nodes:
            if node.process.returncode is not None or node.process.poll() is None:
                continue
            last = node.log().splitlines()[-1]
            if not _NO_DATABASE.match(last):
                raise Violation(f"node {node.name} has ended with {node.process.poll()}: {last}")
            self.counts["starts without a database"] += 1
            self.later(0.5, node.start)

    def one(self):
        kinds = ("kill", "kill", "pause", "pause", "restart", "cut", "cut", "stall", "stall")
        kinds += ("delay", "database_kill", "database_pause", "standby_pause", "promote")
        kind = self.random.choice(kinds)
        is_of_a_node = kind in ("kill", "pause", "restart", "cut", "stall", "delay")
        node = self.pick_node() if is_of_a_node else None
        if is_of_a_node and (node is None or node.is_hurt):
            return
        if not is_of_a_node and self._later and self.random.random() < 0.7:
            return  # mostly alone, so that something is served at all
        self.counts[kind] += 1
        self.say(f"{kind} {node.name if node else ''}")
        getattr(self, "do_" + kind)(*([node] if node else []))

    def pick_node(self):
        owner = self.cluster.owner() if self.random.random() < 0.6 else None
        return owner or self.random.choice(self.cluster.nodes)

    def hurt(self, node, seconds: float, heal):
        node.is_hurt = True

        def undo():
            heal()
            node.is_hurt = False
            self.say(f"{node.name} is back")

        self.later(seconds, undo)

    # --- Nodes

    def do_kill(self, node):
        node.kill()
        self.hurt(node, self.random.uniform(0, 3), node.start)

    def do_restart(self, node):
        code = node.terminate()
        if code != 0:
            self.say(f"{node.name} has ended with {code} at SIGTERM")
            self.counts["restarts with an exit code"] += 1
        self.hurt(node, self.random.uniform(0, 1), node.start)

    def do_pause(self, node):
        node.pause()
        self.hurt(node, self.random.uniform(0.1, 5), node.resume)

    # --- Lines

    def do_cut(self, node):
        self.lines.set(node.name, "cut")
        self.hurt(node, self.random.uniform(0, 4), lambda: self.lines.set(node.name, "pass"))

    def do_stall(self, node):
        self.lines.set(node.name, "stall")
        self.hurt(node, self.random.uniform(0.3, 7), lambda: self.lines.set(node.name, "pass"))

    def do_delay(self, node):
        self.lines.set(node.name, "delay", self.random.choice((0.005, 0.03, 0.2)))
        self.hurt(node, self.random.uniform(1, 4), lambda: self.lines.set(node.name, "pass"))

    # --- Database servers

    def do_database_kill(self):
        self.databases.primary.kill()
        time.sleep(self.random.uniform(0, 2))
        self.databases.primary.start()

    def do_database_pause(self):
        self.databases.primary.pause()
        time.sleep(self.random.uniform(0.2, 6))
        self.databases.primary.resume()

    def do_standby_pause(self):
        self.databases.standby.pause()
        time.sleep(self.random.uniform(0.2, 6))
        self.databases.standby.resume()

    def do_promote(self):
        self.databases.promote()
        self.cluster.url = self.databases.primary.url(self.cluster.url.split("/")[-1])


class Soak:
    """One run. `say` gets a line for each thing that happens."""

    def __init__(self, seconds: float, seed: int, fsync: bool = False, say=lambda line: None):
        self.seconds = seconds
        self.seed = seed
        self.fsync = fsync
        self.say = say
        self.accounts = Accounts()
        self.failures = []
        self.events = None
        self.epochs = 0
        self.is_well = False
        self.lines = []

    def run(self):
        """Raises Violation if a promise was broken."""
        names = ("a", "b", "c")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="carillon-soak."))
            lines = stack.enter_context(proxy.Proxy(names, 2))
            databases = stack.enter_context(Databases(lines, self.fsync))
            url = databases.primary.new_database()
            cluster = nodes.Cluster(folder, url, *names)
            for node in cluster.nodes:
                hosts = ",".join(f"{postgres.HOST}:{lines.port(node.name, n)}" for n in (0, 1))
                node.url = f"postgresql://postgres@{hosts}/{url.split('/')[-1]}"
                node.is_hurt = False
            stack.enter_context(cluster)
            try:
                self._run(cluster, databases, lines)
            finally:
                self.lines = [f"{n.name}: {line}" for n in cluster.nodes for line in n.lines()]
                self._keep_logs(cluster)
        return self

    def _keep_logs(self, cluster):
        if folder := os.environ.get("CARILLON_SOAK_LOGS"):
            for node in cluster.nodes:
                with open(os.path.join(folder, node.name + ".log"), "w", encoding="utf-8") as file:
                    file.write(node.log())

    def _run(self, cluster, databases, lines):
        cluster.wait_for_owner()
        self.accounts.last_answer = time.monotonic()
        clients = [
            kind(cluster, self.accounts, self.seed * 100 + n, self._failed)
            for n, kind in enumerate(_CLIENTS)
        ]
        for client in clients:
            client.start()
        self.events = Events(self.seed, cluster, databases, lines, self.say)
        self.events.run(time.monotonic() + self.seconds, lambda: bool(self.failures))
        if not self.failures:
            cluster.wait_for_owner(seconds=60.0)
            time.sleep(2.0)
        soak_clients.end_all(clients)
        self._raise()
        last = soak_clients.Lister(cluster, self.accounts, 0, self._failed)
        last.ending.set()
        deadline = time.monotonic() + 30.0
        while not last.list():
            if time.monotonic() > deadline:
                raise Violation("nobody serves 30 s after the last event")
        last.hang_up()
        self.epochs = cluster.status()["epoch"]
        self.events.check_nodes()
        self.is_well = True

    def _failed(self, error):
        self.failures.append(error)
        self.say(f"{type(error).__name__}: {error}")

    def _raise(self):
        if self.failures:
            raise self.failures[0]

    def figures(self) -> str:
        counts = ", ".join(f"{name} {n}" for name, n in sorted(self.accounts.counts.items()))
        events = ", ".join(f"{name} {n}" for name, n in sorted(self.events.counts.items()))
        return (
            f"seed {self.seed}, {self.seconds:.0f} s: {counts}\n"
            f"events: {events}\n"
            f"take-overs {max(self.epochs - 1, 0)}, longest gap {self.accounts.longest_gap:.1f} s, "
            + ("0 lost, 0 doubled" if self.is_well else "a promise was broken")
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--carillon", default=os.environ.get("CARILLON_BIN", "build/carillon"))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--fsync", action="store_true")
    parser.add_argument("--quiet", action="store_true", help="print the figures alone")
    asked = parser.parse_args()
    if postgres.MISSING:
        sys.exit(postgres.MISSING)
    os.environ["CARILLON_BIN"] = os.path.abspath(asked.carillon)
    began = time.monotonic()

    def say(line):
        if not asked.quiet:
            print(f"{time.monotonic() - began:7.2f} {time.time() % 1000:.3f} {line}", flush=True)

    print(f"seed {asked.seed}", flush=True)
    soak = Soak(asked.seconds, asked.seed, asked.fsync, say)
    try:
        soak.run()
    except Violation as violation:
        print(soak.figures() if soak.events else "")
        sys.exit(f"{violation}")
    finally:
        for line, count in Counter(" ".join(line.split()) for line in soak.lines).most_common(60):
            print(f"{count:4} {line}")
    print(soak.figures())


if __name__ == "__main__":
    main()
