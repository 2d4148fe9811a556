"""Nodes of a cluster on a real PostgreSQL: one is killed, stopped, or replaced, or the database is
away, or is not the one that it was."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from contextlib import suppress

import nodes
import postgres
import wrong_clock
from nodes import daemon
from wire import Closed, NoReply, said

# How long a take-over may last here, in seconds: 2 s of silence, and some for a busy machine.
TAKE_OVER = 10.0
REFUSAL = said(b"INTERNAL_ERROR")


# Generous, for a busy machine: a node that stops waits for a call to the database under way.
_REFUSAL_SECONDS = 30.0


class NodesCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if postgres.MISSING:
            raise unittest.SkipTest(postgres.MISSING)
        cls.server = cls.enterClassContext(postgres.Postgres(fsync="off"))

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="carillon-nodes.")
        self.addCleanup(directory.cleanup)
        self.folder = directory.name
        self.url = self.server.new_database()
        self.database = self.url.split("/")[-1]

    def cluster(self, *names, flags=()):
        return self.enterContext(nodes.Cluster(self.folder, self.url, *names, flags=flags))

    def sql(self, command):
        return self.server.sql(command, self.database)

    def fill(self, cluster):
        """Puts jobs of all kinds. Returns the token of a lease."""
        with cluster.connect() as client:
            client.put(b"ready")
            client.put(b"later", delay=3600)
            client.call(b"use work")
            client.put(b"buried")
            client.call(b"watch work")
            client.call(b"ignore default")
            job = client.call(b"reserve-with-timeout 5").number()
            self.assertEqual(client.call(b"bury %d 7" % job), said(b"BURIED"))
            self.assertEqual(
                client.call(b"put-job 1 key=k group=g delay=2h", b"k").word, b"INSERTED"
            )
        every = {"every": "1h", "start": "2026-01-01T00:00:00Z", "job": {"tube": "t", "body": "s"}}
        self.assertEqual(cluster.ask("PUT", "/v1/schedules/hourly", every)[0], 201)
        limits = {"limits": {"max_running": 1, "rate": {"jobs": 1000, "per": "1s"}}}
        self.assertEqual(cluster.ask("PATCH", "/v1/tubes/mail", limits)[0], 200)
        for body in ("first", "second"):
            self.assertEqual(cluster.ask("POST", "/v1/tubes/mail/jobs", {"body": body})[0], 201)
        status, answer = cluster.ask("POST", "/v1/tubes/mail:reserve", {"lease": "5m"})
        self.assertEqual([status, len(answer["jobs"])], [200, 1])
        return answer["jobs"][0]["lease"]

    def check_lease(self, cluster, lease):
        """The worker of fill() goes on, and the tube's limit counts its job."""
        reserve = ("POST", "/v1/tubes/mail:reserve", {"lease": "5m"})
        self.assertEqual(cluster.ask(*reserve), (200, {"jobs": []}))
        self.assertEqual(cluster.ask("POST", f"/v1/leases/{lease}:ack"), (204, None))
        self.assertEqual(len(cluster.ask(*reserve)[1]["jobs"]), 1)

    def tokens_of(self, cluster, tube):
        """The bodies of a tube's jobs."""
        path = f"/v1/tubes/{tube}/jobs?bodies=true&page_size=1000"
        bodies = []
        page = ""
        while page is not None:
            status, answer = cluster.ask("GET", path + (page and f"&page_token={page}"))
            self.assertEqual(status, 200, answer)
            bodies += [job["body"] for job in answer["jobs"]]
            page = answer["next_page_token"]
        return sorted(bodies)


class TakeOver(NodesCase):
    def test_all_is_there_after_a_kill(self):
        cluster = self.cluster("a", "b")
        lease = self.fill(cluster)
        before = cluster.export()
        owner = cluster.wait_for_owner()
        with owner.connect() as client:
            client.call(b"use soon")
            sent = time.time()
            client.put_ms(b"soon", 0, 2_500)
            client.call(b"use held")
            client.put(b"held")
            client.call(b"watch held")
            self.assertEqual(client.call(b"reserve-with-timeout 5").word, b"RESERVED")
            owner.kill()
        began = time.monotonic()
        other = cluster.wait_for_owner(but=owner)
        self.assertLess(time.monotonic() - began, TAKE_OVER)
        after = [line for line in cluster.export() if "soon" not in line and "held" not in line]
        self.assertEqual(after[:-1], before[:-1])
        self.check_lease(cluster, lease)
        with other.connect() as client:
            client.call(b"watch soon")
            client.call(b"watch held")
            client.call(b"ignore default")
            # A reservation ends with its connection, and so with the owner.
            bodies = [client.call(b"reserve-with-timeout 5").body for _ in range(2)]
            self.assertGreaterEqual(time.time(), sent + 2.5 - 0.5)
            self.assertEqual(sorted(bodies), [b"held", b"soon"])
            put = client.call(b"put-job 1 key=again delay=1h", b"x").number()
            self.assertGreater(put, max(job_ids(before)))

    def test_a_schedule_neither_loses_nor_doubles_an_occurrence(self):
        cluster = self.cluster("a", "b")
        every = {"every": "1s", "start": 0, "job": {"tube": "ticks", "body": "tick"}}
        owner = cluster.wait_for_owner()
        status, answer = cluster.ask("PUT", "/v1/schedules/ticks", every)
        self.assertEqual(status, 201, answer)
        time.sleep(1.5)
        owner.kill()
        other = cluster.wait_for_owner(but=owner)
        time.sleep(1.2)
        self.assertEqual(other.terminate(), 0)
        owner.start()
        cluster.wait_for_owner(but=other)
        self.assertEqual(cluster.ask("PATCH", "/v1/schedules/ticks", {"paused": True})[0], 200)
        jobs = cluster.ask("GET", "/v1/tubes/ticks/jobs?page_size=1000")[1]["jobs"]
        fired = cluster.ask("GET", "/v1/schedules/ticks")[1]["fired"]
        self.assertEqual(fired, len(jobs))
        seconds = [job["due"][-7:-5] for job in jobs]
        first = int(seconds[0])
        self.assertEqual(seconds, [f"{(first + n) % 60:02d}" for n in range(len(jobs))])
        self.assertGreaterEqual(len(jobs), 5)

    def test_a_clean_stop_hands_over(self):
        cluster = self.cluster("a", "b")
        lease = self.fill(cluster)
        before = cluster.export()
        owner = cluster.wait_for_owner()
        self.assertEqual(owner.terminate(), 0)
        began = time.monotonic()
        cluster.wait_for_owner(but=owner)
        self.assertLess(time.monotonic() - began, 2.0)
        self.assertEqual(cluster.export(), before)
        self.check_lease(cluster, lease)

    def test_followers_end_at_a_signal(self):
        cluster = self.cluster("a", "b", "c")
        owner = cluster.wait_for_owner()
        for node in cluster.nodes:
            if node is not owner:
                self.assertEqual(node.terminate(), 0)
        self.assertEqual(self.tokens_of(cluster, "default"), [])
        self.assertEqual(owner.terminate(), 0)

    def test_a_stopped_owner_answers_nothing_afterwards(self):
        cluster = self.cluster("a", "b")
        owner = cluster.wait_for_owner()
        busy, idle, late = (self.enterContext(owner.connect()) for _ in range(3))
        for client in (idle, late):
            client.put(b"before")
        # Some of these are answered, some have run, and some were only received.
        puts = b"".join(b"put 0 0 60 5\r\n%05d\r\n" % n for n in range(30_000))
        sender = threading.Thread(target=send_until_closed, args=(busy, puts))
        sender.start()
        answered = [busy.reply() for _ in range(500)]
        owner.pause()
        answered += busy.replies_at_hand()
        late.send(b"put 0 0 60 4\r\nlate\r\nlist-tube-used\r\n")
        other = cluster.wait_for_owner(but=owner)
        others_jobs = self.tokens_of(cluster, "default")
        owner.resume()
        self.assertEqual(idle.wait_for_end(5.0), b"")
        late.wait_for_end(5.0)
        # It may say that it has carried nothing out.
        self.assertLessEqual(set(late.replies_at_hand()), {REFUSAL})
        busy.wait_for_end(5.0)
        sender.join()
        answered += busy.replies_at_hand()  # they were on their way before the pause
        self.assertTrue(all(reply.word == b"INSERTED" for reply in answered), answered[-1])
        self.assertLess(len(answered), 30_000)
        self.assertLessEqual({f"{n:05d}" for n in range(len(answered))}, set(others_jobs))
        self.assertNotIn("late", others_jobs)
        self.assertEqual(self.tokens_of(cluster, "default"), others_jobs)
        before = cluster.export()
        other.kill()
        cluster.wait_for_owner(but=other)
        self.assertEqual(cluster.export(), before)
        self.assertEqual(owner.log().count("another server owns the jobs now"), 1)

    def test_a_node_without_its_data_comes_up_the_same(self):
        cluster = self.cluster("a", "b")
        self.fill(cluster)
        before = cluster.export()
        for _ in range(2):
            owner = cluster.wait_for_owner()
            self.assertEqual(owner.terminate(), 0)
            shutil.rmtree(owner.data)
            cluster.wait_for_owner(but=owner)
            self.assertEqual(cluster.export(), before)
            owner.start()
            self.wait_until_read(cluster, owner)
        owner = cluster.wait_for_owner()
        self.assertEqual(cluster.export(), before)

    def wait_until_read(self, cluster, node):
        """Waits until the node has read some of the log."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            of_it = [n for n in cluster.status()["nodes"] if n["address"] == node.address]
            if any(n["behind"] < 20 and n["seen_ms"] < 1000 for n in of_it):
                return
            time.sleep(0.05)
        self.fail(f"{node.name} does not read the log: {cluster.status()}")


class Outage(NodesCase):
    def away(self, leave, come_back):
        """The database leaves for some seconds. Checks what clients see."""
        cluster = self.cluster("a", "b")
        owner = cluster.wait_for_owner()
        with cluster.connect() as client:
            before = client.put(b"before")
        waiting = self.enterContext(owner.connect())
        leave()
        left = time.monotonic()
        is_back = False
        self.addCleanup(lambda: is_back or come_back())
        waiting.send(b"put 0 0 60 7\r\nwaiting\r\n")
        refused_after = None
        while time.monotonic() < left + 4.5:
            with owner.connect() as client:
                try:
                    self.assertEqual(client.call(b"put 0 0 60 6", b"before", 0.3), REFUSAL)
                    refused_after = refused_after or time.monotonic() - left
                except NoReply:
                    self.assertIsNone(refused_after)
            time.sleep(0.1)
        self.assertIsNotNone(refused_after)
        status, problem, headers = owner.ask("POST", "/v1/tubes/default/jobs", {"body": "x"})
        self.assertEqual(status, 503, problem)
        self.assertGreater(int(headers["Retry-After"]), 0)
        self.assertEqual(waiting.replies_at_hand(), [])
        come_back()
        is_back = True
        back = time.monotonic()
        with cluster.connect() as client:
            served_after = time.monotonic() - back
            self.assertGreater(client.put(b"after"), before)
        try:
            self.assertEqual(waiting.reply(5.0).word, b"INSERTED")
        except Closed:
            pass
        # What was not answered may be there or not.
        jobs = set(self.tokens_of(cluster, "default"))
        self.assertLessEqual({"before", "after"}, jobs)
        self.assertLessEqual(jobs, {"before", "after", "waiting"})
        print(f"refused after {refused_after:.1f} s, served {served_after:.1f} s after the return")
        self.assertLess(refused_after, 2.0 + 1.0)
        self.assertLess(served_after, 2.0 + 1.0)
        for node in cluster.nodes:
            self.assertTrue(node.is_running(), node.log())

    def test_a_database_that_is_down(self):
        self.away(self.server.stop, self.server.start)

    def test_a_database_that_does_not_answer(self):
        self.away(self.server.pause, self.server.resume)


class RefusalsCase(NodesCase):
    def refused(self, node, pattern):
        """The node ends by itself, and its last line says why."""
        self.assertEqual(node.wait_for_end(_REFUSAL_SECONDS), 1, node.log())
        self.assertRegex("\n".join(node.log().splitlines()[-2:]), pattern)

    def new_node(self):
        """A node without a state."""
        node = nodes.Node("new", self.folder, self.url)
        self.addCleanup(lambda: node.is_running() and node.kill())
        return node


class AnotherLog(RefusalsCase):
    """A node that has ended with all in its files, and its database: each test has a copy."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory(prefix="carillon-nodes.")
        cls.addClassCleanup(directory.cleanup)
        cls.first_url = cls.server.new_database()
        with nodes.Cluster(directory.name, cls.first_url, "a") as cluster:
            node = cluster.wait_for_owner()
            for n in range(5):
                cluster.ask("POST", "/v1/tubes/default/jobs", {"body": f"{n}"})
            assert node.terminate() == 0
        cls.first_data = node.data

    def setUp(self):
        super().setUp()
        self.database += "_copy"
        self.url += "_copy"
        first = self.first_url.split("/")[-1]
        self.server.sql(f"create database {self.database} template {first}")

    def old_node(self):
        """The node with its state."""
        shutil.copytree(self.first_data, self.folder + "/new")
        return self.new_node()

    def test_a_log_that_is_as_it_was(self):
        node = self.old_node().start()
        cluster = nodes.Cluster(self.folder, self.url)
        cluster.nodes.append(node)
        self.assertEqual(self.tokens_of(cluster, "default"), ["0", "1", "2", "3", "4"])

    def test_a_log_that_lost_its_end(self):
        last = int(self.sql("select max(position) from carillon.log"))
        self.sql(f"delete from carillon.log where position > {last - 3}")
        self.refused(self.old_node().start(), "the state is ahead of the shared log, which ends")

    def test_a_log_that_lost_its_begin(self):
        self.sql("delete from carillon.log where position < 5")
        self.refused(self.new_node().start(), "the shared log begins after position 0")

    def test_a_log_with_a_hole(self):
        self.sql("delete from carillon.log where position = 5")
        self.refused(self.new_node().start(), "position 6 of the shared log goes on from change")

    def test_a_damaged_entry(self):
        self.sql(
            "update carillon.log set entry = set_byte(entry, 40, 255 - get_byte(entry, 40))"
            " where position = 5"
        )
        damaged = "position 5 of the shared log is damaged: its checksum is wrong"
        self.refused(self.new_node().start(), damaged)

    def test_another_cluster(self):
        self.url = self.server.new_database()
        self.assertEqual(daemon.run_carillon("cluster", "init", self.url).returncode, 0)
        another = "the shared log is another one: its id is [0-9a-f]{32}, and the state is of"
        self.refused(self.old_node().start(), another)

    def test_a_directory_of_a_node_under_a_plain_server(self):
        node = self.old_node()
        done = daemon.run_carillon("serve", "--data", node.data, "--listen", node.address)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "cluster")


class Refusals(RefusalsCase):
    def test_an_older_copy_of_the_database_under_nodes_that_run(self):
        """Both had read what the copy has not, the owner only in its memory."""
        cluster = self.cluster("a", "b")
        owner = cluster.wait_for_owner()
        self.fill(cluster)

        def act():
            self.put_some(cluster)
            last = self.sql("select max(position) from carillon.log")
            have = f"select count(*) from carillon.node where read >= {last}"
            self.server.wait_for_sql(have, "2", self.database)

        self.restore_older(act)
        for node in cluster.nodes:
            self.refused(node, "the state is ahead of the shared log|has another entry at")

    def test_an_older_copy_of_the_database_under_nodes_that_start(self):
        cluster = self.cluster("a")
        node = cluster.wait_for_owner()

        def stop():
            self.put_some(cluster)
            self.assertEqual(node.terminate(), 0)

        self.restore_older(stop)
        self.refused(node.start(), "the state is ahead of the shared log, which ends before posi")

    def put_some(self, cluster):
        """Puts until the node, which may have lost its database for a while, has taken 20 jobs."""
        for n in range(20):
            status, answer = cluster.ask("POST", "/v1/tubes/default/jobs", {"body": f"{n}"})
            self.assertEqual(status, 201, answer)

    def restore_older(self, act):
        """Copies the database, goes on, calls `act`, and puts the copy in its place."""
        data = os.path.join(self.server.directory, "data")
        copy = os.path.join(self.server.directory, "copy")
        self.server.stop()
        subprocess.run(["cp", "-a", data, copy], check=True)
        self.server.start()
        act()
        self.server.stop()
        shutil.rmtree(data)
        os.rename(copy, data)
        self.server.start()

    def test_a_directory_of_a_plain_server(self):
        plain = self.new_node()
        with daemon.carillon_serve(plain.data) as server:
            with server.connect() as client:
                client.put(b"x")
            self.assertEqual(server.terminate(), 0)
        daemon.run_carillon("cluster", "init", self.url)
        self.refused(plain.start(), "the data directory is not of a node of this cluster")

    def test_weak_settings(self):
        daemon.run_carillon("cluster", "init", self.url)
        done = daemon.run_carillon(
            "serve", "--data", self.folder + "/a", "--cluster", self.url, "--listen", "127.0.0.1:0"
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("synchronous_standby_names = ''", done.stderr)
        self.assertIn("--allow-weak-cluster fsync", done.stderr)
        self.assertFalse(os.path.exists(self.folder + "/a"))

    def test_no_database(self):
        port = daemon.free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{port}/x"
        self.refused(
            self.new_node().start(), f'"127.0.0.1", port {port} failed: Connection refused'
        )


@unittest.skipUnless(wrong_clock.library(), "the library does not work in this build")
class Clocks(NodesCase):
    def test_a_clock_that_is_far_off_owns_nothing(self):
        for error in (2.0, -2.0):
            with self.subTest(error=error):
                cluster, clock = self.cluster_with_a_clock(error)
                node = cluster.nodes[0]
                side = "ahead of" if error > 0 else "behind"
                line = f"(19|20)[0-9][0-9] ms {side} the shared log's; beyond 500 ms it may not own"
                deadline = time.monotonic() + 4.0
                while time.monotonic() < deadline:
                    self.assertIsNone(cluster.owner())
                    time.sleep(0.2)
                self.assertRegex(node.log(), line)
                clock.set(0.3)
                self.assertIs(cluster.wait_for_owner(), node)
                self.assertIn("the clock is right again", node.log())
                # An owner whose clock goes wrong gives way.
                clock.set(error)
                other = nodes.Node(f"b{error}", self.folder, self.url)
                cluster.nodes.append(other.start())
                self.assertIs(cluster.wait_for_owner(but=node), other)

    def test_a_clock_that_is_a_little_off_owns(self):
        for error in (0.4, -0.4):
            with self.subTest(error=error):
                cluster, _ = self.cluster_with_a_clock(error)
                self.assertIs(cluster.wait_for_owner(), cluster.nodes[0])

    def cluster_with_a_clock(self, error):
        clock = self.enterContext(wrong_clock.Clock())
        clock.set(error)
        self.url = self.server.new_database()
        cluster = nodes.Cluster(self.folder, self.url, f"a{error}")
        cluster.nodes[0].environment = clock.environment
        return self.enterContext(cluster), clock


def send_until_closed(client, data):
    with suppress(OSError):
        client.send(data)


def job_ids(lines):
    """The ids in the lines of an export."""
    return [int(line.split('"id":')[1].split(",")[0]) for line in lines if '"type":"job"' in line]


if __name__ == "__main__":
    unittest.main()
