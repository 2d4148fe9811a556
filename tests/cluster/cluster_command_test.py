"""`carillon cluster`: what it makes, what it shows, and what it keeps to itself."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import postgres
from postgres import daemon

SECRET = "Geheim-77"


def run(*words, **environment):
    return daemon.run_carillon("cluster", *words, **environment)


class WithoutPostgres(unittest.TestCase):
    def fails(self, line, *words, code=1, **environment):
        done = run(*words, **environment)
        self.assertEqual(done.stderr, f"carillon cluster: {line}\n")
        self.assertEqual((done.returncode, done.stdout), (code, ""))

    def test_the_library_is_not_loaded_without_a_cluster(self):
        linked = subprocess.run(["ldd", daemon.carillon_path()], capture_output=True, check=True)
        self.assertNotIn(b"libpq", linked.stdout)
        with tempfile.TemporaryDirectory() as directory:
            with daemon.carillon_serve(os.path.join(directory, "data")) as server:
                maps = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
        self.assertIn("librocksdb", maps)
        self.assertNotIn("libpq", maps)

    def test_without_the_library_the_package_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "libpq.so.5").write_text("no library")
            done = run("status", "postgresql:///x", LD_LIBRARY_PATH=directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs its client library, and it cannot be loaded: ", done.stderr)
        self.assertIn("(Debian: apt install libpq5)", done.stderr)

    def test_a_wrong_url_is_refused_without_being_shown(self):
        advice = "; write postgresql://USER@HOST/DATABASE or postgresql://USER@HOST1,HOST2/DATABASE"
        for url, why in (
            (f"host=a password={SECRET}", "does not begin with postgresql://"),
            (
                f"postgresql://u:{SECRET}%zz@h/d",
                "has an unknown option, or a % without two hexadecimal digits",
            ),
            (
                f"postgresql://u:{SECRET}@h/d?colour=red",
                "has an unknown option, or a % without two hexadecimal digits",
            ),
            (f"postgresql://u:{SECRET}", "has a port that is no number"),
            (f"postgresql://u:a/{SECRET}@h/d", "has a port that is no number"),
            (
                f"postgresql://u:1/{SECRET}@h/d",
                "has an @ or a / in its password, which must be %40 or %2F",
            ),
            (
                f"postgresql://u:a@{SECRET}@h/d",
                "has an @ or a / in its password, which must be %40 or %2F",
            ),
        ):
            with self.subTest(url):
                self.fails(f"the cluster's URL {why}{advice}", "status", url)

    def test_a_host_without_a_server_is_named(self):
        port = daemon.free_port()
        done = run("status", f"postgresql://u:{SECRET}@127.0.0.1:{port}/d")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'"127.0.0.1", port {port} failed: Connection refused', done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertNotIn(SECRET, done.stderr)

    def test_words_that_are_missing_or_wrong(self):
        self.fails('ACTION "make": there are init, status', "make", "postgresql:///x", code=2)
        self.assertEqual(run().returncode, 2)


@unittest.skipIf(postgres.MISSING, postgres.MISSING)
class WithPostgres(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(postgres.Postgres(fsync="off"))

    def setUp(self):
        self.url = self.server.new_database()
        self.database = self.url.split("/")[-1]
        self.place = f"127.0.0.1:{self.server.port}/{self.database}"

    def sql(self, command):
        return self.server.sql(command, self.database)

    def test_init_makes_the_tables_once(self):
        first = run("init", self.url)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(
            first.stdout,
            f"^{self.place}: the tables of a new cluster are there, with the log [0-9a-f]{{32}}\n"
            "Start a server on each machine:\n"
            "  carillon serve --listen HOST:11300 --cluster URL\n"
            "See who owns the jobs:\n"
            "  carillon cluster status URL\n$",
        )
        log = re.search("log ([0-9a-f]{32})", first.stdout)[1]
        tables = "select oid, relname from pg_class where oid > 16384 order by oid"
        before = self.sql(tables)
        second = run("init", self.url)
        self.assertEqual(second.returncode, 0)
        self.assertEqual(
            second.stdout,
            f"{self.place}: the tables are there already, with the log {log}; "
            "nothing was changed\n",
        )
        self.assertEqual(self.sql(tables), before)
        self.assertEqual(json.loads(run("init", self.url, "--json").stdout)["new"], False)

    def test_one_of_several_at_once_makes_them(self):
        words = [daemon.carillon_path(), "cluster", "init", self.url, "--json"]
        both = [
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(4)
        ]
        results = [one.communicate() for one in both]
        self.assertEqual([one.returncode for one in both], [0] * 4, results)
        made = [json.loads(out) for out, _ in results]
        self.assertEqual(sorted(one["new"] for one in made), [False] * 3 + [True])
        self.assertEqual(len({one["log"] for one in made}), 1)

    def test_weak_settings_are_warnings(self):
        done = run("init", self.url)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(
            lines[0].startswith("carillon cluster: warning: synchronous_standby_names = '': ")
        )
        self.assertTrue(lines[1].startswith("carillon cluster: warning: fsync = 'off': "))
        self.assertTrue(lines[1].endswith("; --allow-weak-cluster fsync allows it"))
        shown = json.loads(run("status", self.url, "--json").stdout)
        self.assertEqual(len(shown["warnings"]), 2)

    def test_status_of_a_new_cluster(self):
        run("init", self.url)
        done = run("status", self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, f"(?m)^place +{self.place}$")
        self.assertRegex(
            done.stdout, r"(?m)^owner +nobody yet: start carillon serve --cluster URL$"
        )
        self.assertRegex(done.stdout, "(?m)^entries +0$")
        shown = json.loads(run("status", self.url, "--json").stdout)
        self.assertEqual(
            {name: shown[name] for name in ("epoch", "owner", "next", "entries", "nodes")},
            {"epoch": 0, "owner": "", "next": 1, "entries": 0, "nodes": []},
        )

    def test_status_shows_the_nodes(self):
        run("init", self.url)
        with subprocess.Popen(
            [os.environ["CARILLON_POSTGRES_LOG"], self.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as driver:
            driver.communicate("claim 1 7\nwindow 9\nwindow 9\nreport 5 10.0.0.1:11300 3 1\n")
        self.sql(
            "insert into carillon.node (shard, id, owner, address, http, serves, read, flushed,"
            " seen) values (0, 6, decode(repeat('00', 16), 'hex'), 'b', '', false, 1, 1, "
            "clock_timestamp() - '9 s'::interval)"
        )
        shown = json.loads(run("status", self.url, "--json").stdout)
        self.assertEqual(shown["owner"], "10.0.0.1:11300")
        self.assertEqual((shown["epoch"], shown["next"], shown["entries"]), (1, 3, 3))
        first, second = shown["nodes"]
        self.assertEqual(
            (first["address"], first["owner"], first["behind"], first["unflushed"]),
            ("10.0.0.1:11300", True, 0, 2),
        )
        self.assertEqual((second["owner"], second["behind"]), (False, 2))
        self.assertGreater(second["seen_ms"], 8_000)
        text = run("status", self.url).stdout
        self.assertRegex(text, r"(?m)^node  10\.0\.0\.1:11300 +owner +0 behind  seen 0\.\d\ds ago$")
        self.assertRegex(text, r"(?m)^node  b +follower +2 behind  seen 9\.\d\ds ago$")

    def test_status_without_tables_names_the_next_step(self):
        done = run("status", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            f"carillon cluster: there is no cluster in {self.place} yet; make it by: "
            "carillon cluster init URL\n",
        )

    def test_a_missing_right_is_named(self):
        self.server.sql("create role clerk login")
        self.addCleanup(self.server.sql, "drop role clerk")
        url = self.url.replace("postgres@", "clerk@")
        done = run("init", url)
        self.assertEqual(
            (done.returncode, done.stderr),
            (
                1,
                f'carillon cluster: user "clerk" may not make a schema in database '
                f'"{self.database}"; its owner can allow it: grant create on database '
                f'"{self.database}" to "clerk"\n',
            ),
        )
        self.sql("create schema carillon")
        done = run("init", url)
        self.assertEqual(done.returncode, 1)
        self.assertIn('grant usage, create on schema carillon to "clerk"', done.stderr)
        self.sql('grant usage, create on schema carillon to "clerk"')
        done = run("init", url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.sql("drop owned by clerk")

    def test_a_password_is_never_shown(self):
        self.server.sql(f"create role teller login password '{SECRET}'")
        self.addCleanup(self.server.sql, "drop role teller")
        self.sql("grant create on database " + self.database + " to teller")
        url = self.url.replace("postgres@", f"teller:{SECRET}@")
        for words in (
            ("status", url),
            ("init", url),
            ("init", url),
            ("init", url, "--json"),
            ("status", url),
            ("status", url, "--json"),
            ("status", url.replace(self.database, "no_such_database")),
            ("status", url.replace("teller:", "nobody:")),
            ("status", url + "?sslmode=require"),
        ):
            done = run(*words)
            self.assertNotIn(SECRET, done.stdout + done.stderr)
        self.sql("drop owned by teller")


if __name__ == "__main__":
    unittest.main()
