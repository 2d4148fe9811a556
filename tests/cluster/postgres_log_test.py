"""The shared log in a real PostgreSQL: what it appends, and what it says when the server is slow,
stopped, killed or replaced."""

import os
import socket
import subprocess
import time
import unittest

import postgres
from postgres import daemon

# No call may take longer, in seconds: SharedLog::kPatience, and some for a busy machine.
PATIENCE = 5.0 + 3.0


class Driver:
    """A PostgresLog in a process of its own (postgres/main.cpp)."""

    def __init__(self, test, url):
        self.process = subprocess.Popen(
            [os.environ["CARILLON_POSTGRES_LOG"], url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        test.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.communicate()

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def answer(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def first_word(self, *words):
        return self.ask(*words).split(" ")[0]


class PostgresCase(unittest.TestCase):
    settings = {}

    @classmethod
    def setUpClass(cls):
        if postgres.MISSING:
            raise unittest.SkipTest(postgres.MISSING)
        cls.server = cls.enterClassContext(postgres.Postgres(**cls.settings))

    def setUp(self):
        self.url = self.server.new_database()
        self.database = self.url.split("/")[-1]
        self.init()

    def init(self):
        done = daemon.run_carillon("cluster", "init", self.url)
        self.assertEqual(done.returncode, 0, done.stderr)

    def driver(self, url=None):
        return Driver(self, url or self.url)

    def owner(self, epoch=1, name=7):
        """Returns a driver that has claimed the shard."""
        driver = self.driver()
        self.assertTrue(driver.ask("follow").startswith("ok"))
        self.assertTrue(driver.ask("claim", epoch, name).startswith("ok"))
        return driver

    def sql(self, command):
        return self.server.sql(command, self.database)

    def refuses(self, answer, beginning):
        self.assertEqual(answer[: len(beginning)], beginning)

    def backend(self, where):
        """Waits for a backend that `where` describes. Returns its process id."""
        query = (
            f"select coalesce(max(pid), 0) from pg_stat_activity where datname = '{self.database}'"
            f" and application_name = 'carillon' and {where}"
        )
        deadline = time.monotonic() + 20
        while (pid := int(self.server.sql(query))) == 0:
            self.assertLess(time.monotonic(), deadline, where)
            time.sleep(0.01)
        return pid


class Appends(PostgresCase):
    settings = {"fsync": "off"}

    def test_entries_follow_each_other(self):
        driver = self.driver()
        self.assertEqual(driver.ask("place", 0), "ok there")
        self.assertEqual(driver.ask("claim", 1, 7), "ok 1")
        self.assertEqual(driver.ask("window", 10), "ok 2")
        self.assertEqual(driver.ask("window", 0), "ok 3")
        self.assertEqual(driver.ask("claim", 2, 7), "ok 4")
        self.assertEqual(driver.ask("window", 100_000), "ok 5")
        self.assertEqual(self.driver().ask("follow"), "ok 5 to 5")
        self.assertEqual(
            self.sql("select position, epoch, next from carillon.log order by position"),
            "0|0|1\n1|1|1\n2|1|2\n3|1|3\n4|2|3\n5|2|4",
        )

    def test_one_of_two_rivals_appends(self):
        first = self.owner(1, 7)
        self.assertEqual(first.ask("window", 1), "ok 2")
        second = self.driver()
        self.assertEqual(second.ask("follow"), "ok 2 to 2")
        self.assertEqual(second.ask("claim", 1, 8), "refused the log is in epoch 1")
        self.assertEqual(second.ask("claim", 3, 8), "refused the log is in epoch 1")
        self.assertEqual(first.ask("window", 1), "ok 3")
        # A claim compares the epoch alone.
        self.assertEqual(second.ask("claim", 2, 8), "ok 4")
        self.refuses(first.ask("window", 1), "refused ")
        self.refuses(first.ask("window", 1), "refused ")
        self.assertEqual(second.ask("window", 1), "ok 5")
        self.assertEqual(self.driver().ask("follow"), "ok 5 to 5")

    def test_a_claim_gets_through_between_windows(self):
        first = self.owner(1, 7)
        first.send("measure", 1_000_000, 10)
        second = self.driver()
        self.refuses(second.ask("claim", 2, 8), "ok ")
        self.refuses(first.answer(), "refused ")
        self.refuses(self.driver().ask("follow"), "ok ")

    def test_one_of_many_claims_at_once_is_taken(self):
        rivals = [self.driver() for _ in range(6)]
        for epoch in range(1, 21):
            for name, rival in enumerate(rivals):
                rival.send("claim", epoch, name + 1)
            answers = sorted(rival.answer().split(" ")[0] for rival in rivals)
            self.assertEqual(answers, ["ok"] + ["refused"] * 5)
        self.assertEqual(self.driver().ask("follow"), "ok 20 to 20")

    def test_an_owner_whose_log_was_cut_is_refused(self):
        driver = self.owner()
        driver.ask("window", 1)
        driver.ask("window", 1)
        self.sql("delete from carillon.log where position = 3")
        self.refuses(driver.ask("window", 1), "refused ")
        self.assertEqual(driver.ask("place", 3), "ok ends before")

    def test_read_is_bounded(self):
        driver = self.owner()
        for _ in range(6):
            self.assertEqual(driver.first_word("window", 3_000_000), "ok")
        self.assertRegex(driver.ask("read", 1), r"^ok 3 entries 9\d+ bytes from 2 to 4$")
        self.assertRegex(driver.ask("read", 4), r"^ok 3 entries 9\d+ bytes from 5 to 7$")
        self.assertEqual(driver.first_word("window", 20_000_000), "ok")
        self.assertRegex(driver.ask("read", 7), r"^ok 1 entries 20\d+ bytes from 8 to 8$")
        self.assertEqual(driver.ask("read", 8), "ok 0 entries 0 bytes")
        self.assertEqual(self.driver().ask("follow"), "ok 8 to 8")

    def test_places(self):
        driver = self.owner()
        for _ in range(3):
            driver.ask("window", 1)
        self.assertEqual(driver.ask("place", 0), "ok there")
        self.assertEqual(driver.ask("place", 3), "ok there")
        self.assertEqual(driver.ask("place", 3, "other"), "ok another")
        self.assertEqual(driver.ask("place", 5), "ok ends before")
        self.assertEqual(driver.ask("trim", 3), "ok")
        self.assertEqual(driver.ask("place", 1), "ok there")  # a part of a partition stays

    def test_partitions_are_made_and_dropped(self):
        driver = self.owner()
        # As if there were many entries.
        self.sql("update carillon.log set position = 16380 where position = 1")
        reader = self.driver()
        self.assertEqual(driver.ask("place", 0), "ok begins after")
        driver = self.driver()
        self.refuses(driver.ask("claim", 2, 7), "ok 16381")
        for _ in range(5):
            self.assertEqual(driver.first_word("window", 10), "ok")
        partitions = "select count(*) from pg_partition_tree('carillon.log') where isleaf"
        self.assertEqual(self.sql(partitions), "2")
        self.assertEqual(driver.ask("report", 1, "a:1", 0, 0), "ok")
        self.assertEqual(self.sql(partitions), "4")
        self.assertEqual(driver.ask("report", 1, "a:1", 0, 0), "ok")
        self.assertEqual(self.sql(partitions), "4")
        self.assertRegex(reader.ask("read", 16380), r"^ok 6 entries \d+ bytes from 16381 to 16386$")
        self.assertEqual(driver.ask("place", 16383), "ok there")
        self.assertEqual(driver.ask("trim", 16383), "ok")
        self.assertEqual(driver.ask("place", 16383), "ok there")
        self.assertEqual(driver.ask("trim", 16386), "ok")
        self.assertEqual(self.sql(partitions), "3")
        self.assertEqual(driver.ask("place", 16383), "ok begins after")
        self.assertEqual(driver.ask("place", 16384), "ok there")
        self.assertEqual(driver.ask("place", 0), "ok begins after")
        self.assertEqual(driver.ask("window", 10), "ok 16387")

    def test_the_last_entry_is_never_trimmed(self):
        driver = self.owner()
        self.assertEqual(driver.ask("report", 1, "a:1", 0, 0), "ok")
        self.assertEqual(driver.ask("trim", 1_000_000), "ok")
        self.assertEqual(driver.ask("window", 1), "ok 2")

    def test_a_trim_waits_for_nobody_long(self):
        driver = self.owner()
        self.assertEqual(driver.ask("report", 1, "a:1", 0, 0), "ok")
        self.sql("update carillon.log set position = 16390 where position = 1")
        # The last one has moved: an owner of before would be refused.
        driver = self.driver()
        self.assertEqual(driver.ask("claim", 2, 7), "ok 16391")
        backup = subprocess.Popen(
            [f"{postgres.BIN}/psql", "-XAtq", self.url, "-c", "begin"]
            + ["-c", "select count(*) from carillon.log", "-c", "select pg_sleep(60)"],
            stdout=subprocess.DEVNULL,
        )
        self.addCleanup(backup.wait)
        self.addCleanup(backup.kill)
        self.server.wait_for_sql(
            f"select count(*) from pg_stat_activity where datname = '{self.database}'"
            " and wait_event = 'PgSleep'",
            "1",
        )
        began = time.monotonic()
        self.assertEqual(driver.ask("trim", 16391), "ok")
        self.assertEqual(driver.ask("window", 1), "ok 16392")
        self.assertLess(time.monotonic() - began, PATIENCE)
        self.assertEqual(driver.ask("place", 0), "ok begins after")
        self.assertEqual(self.sql("select count(*) from carillon.log where position < 16384"), "1")

    def test_nodes(self):
        driver = self.owner(1, 7)
        self.assertEqual(driver.ask("nodes"), "ok")
        self.assertEqual(driver.ask("report", 2**64 - 1, "b:1", 5, 4), "ok")
        self.assertEqual(driver.ask("report", 3, "a:1", 5, 4), "ok")
        self.assertEqual(driver.ask("report", 3, "a:2", 6, 5), "ok")
        self.assertEqual(driver.ask("nodes"), f"ok 3,7,a:2,6,5,now {2**64 - 1},7,b:1,5,4,now")
        self.sql("update carillon.node set seen = seen - interval '1 minute'")
        self.assertIn("before", driver.ask("nodes"))

    def test_the_clock_of_the_server(self):
        driver = self.driver()
        self.assertEqual(driver.ask("skew"), "ok 0")

    def test_ids_differ(self):
        first = self.driver().ask("id")
        self.url = self.server.new_database()
        self.init()
        self.assertNotEqual(self.driver().ask("id"), first)

    def test_another_version_is_refused(self):
        driver = self.driver()
        self.sql("update carillon.version set version = 2")
        line = (
            f"the tables in 127.0.0.1:{self.server.port}/{self.database} have version 2, and this "
            "carillon knows version 1; use a carillon that knows version 2"
        )
        self.assertEqual(driver.ask("check"), "not started " + line)
        self.assertEqual(driver.ask("id"), "unavailable " + line)
        self.assertEqual(driver.ask("claim", 1, 7), "unavailable " + line)

    def test_without_tables_the_next_step_is_named(self):
        url = self.server.new_database()
        self.assertEqual(
            self.driver(url).ask("check"),
            f"not started there is no cluster in {url.split('@')[1]} yet; make it by: "
            "carillon cluster init URL",
        )

    def test_weak_settings_are_refused_unless_allowed(self):
        driver = self.driver()
        answer = driver.ask("check")
        self.refuses(answer, "not started the log in ")
        self.assertIn("synchronous_standby_names = '': ", answer)
        self.assertIn("--allow-weak-cluster fsync", answer)
        self.assertNotIn("synchronous_commit = ", answer)
        self.assertEqual(driver.ask("check", "synchronous_standby_names", "fsync"), "ok")
        self.sql(f"alter database {self.database} set synchronous_commit = 'remote_write'")
        answer = self.driver().ask("check", "synchronous_standby_names", "fsync")
        self.assertIn("synchronous_commit = 'remote_write': ", answer)

    def test_another_user_is_refused(self):
        self.server.sql("create role guest login")
        self.addCleanup(self.server.sql, "drop role guest")
        url = self.url.replace("postgres@", "guest@")
        self.assertRegex(
            self.driver(url).ask("check"),
            'not started user "guest" may not use the schema carillon in .*; connect as the user',
        )
        self.sql("grant usage on schema carillon to guest")
        self.sql("grant select on carillon.version to guest")
        self.assertEqual(
            self.driver(url).ask("check"),
            'not started user "guest" does not own the tables of the cluster; connect as user '
            "postgres",
        )
        self.sql("drop owned by guest")

    def test_how_long_an_append_takes(self):
        driver = self.owner()
        driver.ask("measure", 200, 1000)
        answer = driver.ask("measure", 2000, 1000)
        self.refuses(answer, "ok ")
        print(f"append of 1 KB: p50 and p99 in ms: {answer[3:]}")


class Outages(PostgresCase):
    def window_meanwhile(self, driver, act, size=10):
        """Sends a window, calls `act` while the server has it, and returns the answer."""
        driver.send("window", size)
        act()
        began = time.monotonic()
        answer = driver.answer()
        self.assertLess(time.monotonic() - began, PATIENCE)
        return answer

    def test_a_stopped_server_leaves_it_unknown_and_lands_it_later(self):
        driver = self.owner()
        self.assertEqual(driver.ask("window", 1), "ok 2")
        self.server.pause()
        self.addCleanup(self.server.resume)
        began = time.monotonic()
        self.assertEqual(driver.first_word("window", 1), "unknown")
        # Without a connection nothing was sent.
        self.assertEqual(driver.first_word("window", 1), "unavailable")
        self.assertEqual(driver.first_word("read", 0), "unavailable")
        self.assertLess(time.monotonic() - began, 3 * PATIENCE)
        self.server.resume()
        self.server.wait_for_sql(
            "select max(position) from carillon.log", "3", database=self.database
        )
        self.refuses(driver.ask("window", 1), "refused ")
        self.assertEqual(driver.ask("claim", 2, 7), "ok 4")
        self.assertEqual(self.driver().ask("follow"), "ok 4 to 4")

    def test_a_killed_backend_is_no_refusal(self):
        driver = self.owner()
        self.assertEqual(driver.ask("window", 1), "ok 2")
        # A connection that was lost while nobody used it: nothing was sent on it.
        self.sql(f"select pg_terminate_backend({self.backend('true')})")
        self.server.wait_for_sql(
            "select count(*) from pg_stat_activity where application_name = 'carillon'", "0"
        )
        self.assertEqual(driver.ask("window", 1), "ok 3")

    def test_an_append_that_waits_for_a_lock(self):
        driver = self.owner()
        self.assertEqual(driver.ask("window", 1), "ok 2")
        blocker = subprocess.Popen(
            [f"{postgres.BIN}/psql", "-XAtq", self.url, "-c", "begin"]
            + ["-c", "lock table carillon.log", "-c", "select pg_sleep(60)"],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(blocker.wait)
        self.addCleanup(blocker.kill)
        waiting = f"select count(*) from pg_stat_activity where datname = '{self.database}' and "
        self.server.wait_for_sql(waiting + "wait_event = 'PgSleep'", "1")
        self.refuses(driver.ask("window", 1), "unavailable ")
        # Killed while it waits: nobody says what became of it.
        answer = self.window_meanwhile(
            driver,
            lambda: self.sql(
                "select pg_terminate_backend(" + str(self.backend("wait_event_type = 'Lock'")) + ")"
            ),
        )
        self.refuses(answer, "unknown ")
        self.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'"
        )
        self.server.wait_for_sql(waiting + "wait_event = 'PgSleep'", "0")
        self.assertEqual(driver.ask("window", 1), "ok 3")

    def test_a_killed_server(self):
        driver = self.owner()
        self.assertEqual(driver.ask("follow"), "ok 0 to 1")
        self.assertEqual(driver.ask("place", 1), "ok there")
        self.server.kill()
        self.refuses(driver.ask("window", 1), "un")
        self.assertEqual(driver.first_word("window", 1), "unavailable")
        self.server.start()
        # Perhaps it is another server now: the place must be checked again.
        self.assertEqual(driver.first_word("read", 0), "unavailable")
        self.assertEqual(driver.ask("place", 1), "ok there")
        self.assertEqual(driver.first_word("read", 0), "ok")

    def test_a_host_that_does_not_answer_holds_nobody_up_long(self):
        # A listener that accepts nothing more stands for a host that is gone.
        deaf = socket.create_server((postgres.HOST, 0), backlog=0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
            fillers.append(filler)
        self.addCleanup(deaf.close)
        url = f"postgresql://postgres@{postgres.HOST}:{deaf.getsockname()[1]},"
        url += f"{postgres.HOST}:{self.server.port}/{self.database}"
        driver = self.driver(url)
        began = time.monotonic()
        self.assertEqual(driver.ask("place", 0), "ok there")
        self.assertGreater(time.monotonic() - began, 1.0)
        self.assertLess(time.monotonic() - began, PATIENCE)
        for filler in fillers:
            filler.close()


class StandbyCase(PostgresCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.standby = cls.enterClassContext(cls.server.standby("b"))
        cls.server.wait_for_standbys("b")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.standby.resume)


class Standby(StandbyCase):
    def wait_for_sync(self):
        return self.backend("wait_event = 'SyncRep'")

    def test_a_server_with_a_standby_is_strong(self):
        self.assertEqual(self.driver().ask("check"), "ok")

    def test_a_commit_that_waits_for_its_standby_is_unknown(self):
        driver = self.owner()
        self.standby.pause()
        driver.send("window", 1)
        self.wait_for_sync()
        self.refuses(driver.answer(), "unknown ")
        # Others do not see it yet, and wait for what becomes of it.
        rival = self.driver()
        self.assertEqual(rival.ask("follow"), "ok 1 to 1")
        self.refuses(rival.ask("claim", 2, 8), "unavailable ")
        self.standby.resume()
        self.server.wait_for_sql(
            "select max(position) from carillon.log", "2", database=self.database
        )
        self.assertEqual(rival.ask("claim", 2, 8), "ok 3")
        self.assertEqual(self.driver().ask("follow"), "ok 3 to 3")

    def test_a_wait_that_somebody_cancels_is_unknown(self):
        for act in ("pg_cancel_backend", "pg_terminate_backend"):
            with self.subTest(act):
                driver = self.driver()
                driver.ask("follow")
                epoch = int(self.sql("select max(epoch) from carillon.log")) + 1
                self.refuses(driver.ask("claim", epoch, 7), "ok ")
                self.standby.pause()
                driver.send("window", 1)
                # Its caller is not synchronous: it must not wait for the standby.
                self.sql(f"select {act}({self.wait_for_sync()})")
                answer = driver.answer()
                self.refuses(answer, "unknown ")
                self.assertNotIn("no answer in time", answer)
                self.standby.resume()

    def test_a_standby_alone_takes_nothing(self):
        driver = self.driver(self.standby.url(self.database))
        self.refuses(driver.ask("claim", 1, 7), "unavailable ")


class Promotion(StandbyCase):
    def test_a_promoted_standby_goes_on(self):
        url = postgres.url_of(self.server, self.standby, database=self.database)
        driver = self.driver(url)
        self.assertEqual(driver.ask("claim", 1, 7), "ok 1")
        self.assertEqual(driver.ask("window", 1), "ok 2")
        self.server.kill()
        self.refuses(driver.ask("window", 1), "un")
        self.standby.promote()
        self.assertEqual(driver.ask("claim", 2, 7), "ok 3")
        self.assertEqual(self.driver(url).ask("follow"), "ok 3 to 3")


if __name__ == "__main__":
    unittest.main()
