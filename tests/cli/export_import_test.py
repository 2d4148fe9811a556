"""`carillon export` and `carillon import FILE`: what was exported, imported into another server and
exported again is the same; what is interrupted or killed goes on; wrong lines are named.
Row Q20 of the product's table."""

import base64
import http.client
import json
import random
import sys
import tempfile
import unittest

from cli_case import CliCase

import daemon
from wire import setting

FAR = 40 * 86_400_000  # ms


def jobs_of(path):
    """The job lines of an export, without what cannot be the same in another server. Ready jobs
    are ready at once after an import, whenever they were due."""
    jobs = []
    for line in path.read_text().splitlines():
        job = json.loads(line)
        if job["type"] != "job":
            continue
        for name in ("id", "created", "reserves", "timeouts", "releases", "buries", "kicks"):
            job.pop(name, None)
        if job["state"] == "reserved":
            job["state"] = "ready"
        job.pop("worker", None)
        if job["state"] not in ("delayed", "buried"):
            job.pop("due"), job.pop("due_ms")
        jobs.append(json.dumps(job, sort_keys=True))
    return sorted(jobs)


class ExportImportTest(CliCase):
    def setUp(self):
        super().setUp()
        self.first, self.second = self.a_server(), self.a_server()
        self.out = self.directory / "jobs.jsonl"

    def a_server(self, *options):
        """A server with a directory of its own, besides the one of the class."""
        directory = self.enterContext(tempfile.TemporaryDirectory())
        return self.enterContext(daemon.carillon_serve(directory, *options))

    def at(self, server):
        return "--server", f"{daemon.HOST}:{server.port}"

    def export(self, server, path, *more):
        return json.loads(
            self.carillon("export", "--json", "--out", str(path), *more, *self.at(server))
        )

    def import_file(self, path, *more, server=None):
        return json.loads(
            self.carillon("import", str(path), "--json", *more, *self.at(server or self.second))
        )

    def ask(self, server, method, path, fields=None):
        """Asks the HTTP API; returns what it answers."""
        connection = http.client.HTTPConnection(daemon.HOST, server.http_port(), timeout=20)
        headers = {"Content-Type": "application/json"}
        connection.request(method, "/v1/" + path, json.dumps(fields) if fields else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        self.assertEqual(answer.status // 100, 2, text)
        return json.loads(text) if text else None

    def put(self, connection, options, body=b"x"):
        reply = connection.call(b"put-job %d %s" % (len(body), options.encode()), body)
        self.assertEqual(reply.word, b"INSERTED", reply)
        return reply.number()

    def fill(self, chance, tubes=3, jobs=300):
        """Puts random jobs into the first server."""
        c = self.first.connect()
        for number in range(jobs):
            c.call(b"use tube-%d" % chance.randrange(tubes))
            body = chance.choice(
                (
                    b"job %d" % number,
                    b"",
                    b"\xff\x00" + chance.randbytes(chance.randrange(30)),
                    'glyphs \u20ac \U0001f514 " \\ \r\n\t'.encode(),
                    b"z" * chance.randrange(3000),
                )
            )
            options = [f"pri={chance.choice((0, 5, 65536, 4294967295))}"]
            if chance.random() < 0.6:
                options.append(f"delay={FAR + chance.randrange(FAR)}ms")
            if chance.random() < 0.5:
                options.append(f"ttr={chance.randrange(1000, 10**9)}ms")
            if chance.random() < 0.4:
                options.append(f"key=k\u00fcche-{number}")
                if chance.random() < 0.5:
                    options.append(f"key-window={chance.randrange(1, 10**6)}ms")
            if chance.random() < 0.3:
                options.append(
                    f"max-attempts={chance.randrange(9)} backoff=1500ms..{chance.randrange(2, 90)}s"
                    f" jitter={chance.randrange(101)}% lost={chance.choice(('fails', 'returns'))}"
                )
            if chance.random() < 0.3:
                options.append('attributes={"n":%d,"t":"a\\u0020\u00fc"}' % number)
            job_id = self.put(c, " ".join(options), body)
            if chance.random() < 0.15 and c.call(b"reserve-job %d" % job_id).word == b"RESERVED":
                c.call(b"bury %d %d" % (job_id, chance.randrange(9)))
        return c

    def test_what_is_exported_imported_and_exported_again_is_the_same(self):
        seed = setting("CARILLON_SEED", random.randrange(1 << 32))
        print(f"seed {seed}", file=sys.stderr)
        chance = random.Random(seed)
        self.fill(chance)
        c = self.first.connect()
        large = b"L" * 65_535
        self.put(c, f"delay={FAR}ms", large)
        done = self.export(self.first, self.out)
        self.assertEqual(done["jobs"], 301)
        self.assertEqual(self.import_file(self.out)["jobs"], 301)
        again = self.directory / "again.jsonl"
        self.assertEqual(self.export(self.second, again)["jobs"], 301)
        self.assertEqual(jobs_of(again), jobs_of(self.out))
        # The order of the burials is kept, too.
        tops = []
        for server in (self.first, self.second):
            connection = server.connect()
            connection.call(b"use tube-0")
            tops.append(connection.call(b"peek-buried").body)
        self.assertEqual(*tops)
        # Once more: nothing is doubled.
        summary = self.import_file(self.out)
        self.assertEqual((summary["jobs"], summary["already"]), (0, 301))
        third = self.directory / "third.jsonl"
        self.export(self.second, third)
        self.assertEqual(jobs_of(third), jobs_of(self.out))

    # What is set in the first server; bytes that are no UTF-8 as well.
    SETTINGS = {
        "tubes/mail": {
            "retry": {
                "max_attempts": 5,
                "backoff": {"type": "exponential", "initial": "1s", "max": "1m", "jitter": 10},
                "lost_fails": True,
            },
            "limits": {"max_running": 3, "rate": {"jobs": 100, "per": "1m", "burst": 7}},
        },
        "tubes/mail/groups/acme": {"weight": 3, "limits": {"max_running": 2}},
        "tubes/mail/groups/%FF": {"limits": {"rate": {"jobs": 5, "per": "1s"}}},
        "tubes/empty": {"retry": {"backoff": {"type": "fixed", "initial": "30s"}}},
        "tubes/full": {
            "draining": True,
            "limits": {"put_rate": {"jobs": 2, "per": "1h", "burst": 3}},
            "retention": "7d",
        },
    }
    SCHEDULES = {
        "report": {
            "cron": "30 8 * * MON-FRI",
            "time_zone": "Europe/Berlin",
            "gap": "after",
            "catch_up": "all",
            "catch_up_window": "1h",
            "overlap": "queue",
            "spread": "5m",
            "paused": True,
            "job": {
                "tube": "cron",
                "group": "acme",
                "retry": {"max_attempts": 3},
                "attributes": {"n": "a b"},
                "content_type": "text/plain",
                "expires_in": "2h",
                "at_expiry": "dead",
                "body_base64": base64.b64encode(b"\xff\x00x").decode(),
            },
        },
        "sweep": {
            "every": "90m",
            "start": "2030-01-01T00:00:00Z",
            "job": {"tube": "cron", "body": "sweep"},
        },
    }

    def settings_of(self, server):
        """What the server says about tubes, groups and schedules."""
        tubes = [self.ask(server, "GET", "tubes/" + name) for name in ("mail", "empty", "full")]
        groups = self.ask(server, "GET", "tubes/mail/groups")["groups"]
        schedules = [self.ask(server, "GET", "schedules/" + name) for name in self.SCHEDULES]
        kept = ("name", "tube", "weight", "limits", "retry", "retention", "draining", "name_base64")
        settings = [{name: one[name] for name in kept if name in one} for one in tubes + groups]
        for schedule in schedules:
            schedule.pop("created")
        return sorted(settings, key=json.dumps), schedules

    def test_settings_and_schedules_come_along(self):
        self.first, self.second = (self.a_server("--max-job-size", "3M") for _ in range(2))
        c = self.first.connect()
        c.call(b"use full")
        for number in range(3):
            self.put(c, f"delay={FAR}ms", b"x" * (270_000 if number == 1 else 5))
        c.call(b"use mail")
        self.put(c, "group=acme")
        for path, fields in self.SETTINGS.items():
            self.ask(self.first, "PATCH", path, fields)
        for name, fields in self.SCHEDULES.items():
            self.ask(self.first, "PUT", "schedules/" + name, fields)
        done = self.export(self.first, self.out)
        self.assertEqual((done["jobs"], done["schedules"]), (4, 2))
        for jobs in (4, 0):  # once more: nothing is doubled
            summary = self.import_file(self.out)
            self.assertEqual((summary["jobs"], summary["jobs"] + summary["already"]), (jobs, 4))
            self.assertEqual((summary["settings"], summary["schedules"]), (5, 2))
            self.assertEqual(self.settings_of(self.second), self.settings_of(self.first))
        again = self.directory / "again.jsonl"
        self.assertEqual(self.export(self.second, again)["jobs"], 4)
        # The tubes that are chosen, by their new names.
        self.import_file(self.out, "--tube", "mail=post", "--tube", "cron=clock")
        post = self.ask(self.second, "GET", "tubes/post")
        self.assertEqual(post["retry"]["max_attempts"], 5)
        self.assertEqual(self.ask(self.second, "GET", "tubes/post/groups/acme")["weight"], 3)
        sweep = self.ask(self.second, "GET", "schedules/sweep")
        self.assertEqual(sweep["job"]["tube"], "clock")
        part = self.directory / "part.jsonl"
        self.assertEqual(self.export(self.first, part, "--tube", "mail")["schedules"], 0)

    def test_a_named_tube_that_does_not_exist_is_an_error(self):
        with self.first.connect() as c:
            c.call(b"use mail")
            self.put(c, "")
        self.ask(
            self.first, "PUT", "schedules/s", {"every": "1d", "job": {"tube": "s", "body": "x"}}
        )
        self.fails(
            "carillon export: " + CliCase.no_such_tube("nosuch"),
            *("export", "--tube", "mail", "--tube", "nosuch", "--out", str(self.out)),
            *self.at(self.first),
        )
        self.assertFalse(self.out.exists())
        done = self.export(self.first, self.out, "--tube", "mail", "--tube", "s")
        self.assertEqual((done["jobs"], done["schedules"]), (1, 1))

    def test_a_token_for_a_tube_exports_and_imports_what_is_its_own(self):
        tokens = str(self.directory / "tokens")
        new = ("token", "new", "--file", tokens)
        everything = self.carillon(*new, "--name", "all", "--scope", "admin").strip()
        own = self.carillon(*new, "--name", "a", "--scope", "admin", "--tube", "a").strip()
        data = self.enterContext(tempfile.TemporaryDirectory())
        server = self.enterContext(daemon.carillon_serve(data, "--tokens", tokens))
        run = lambda token, *words: self.run_carillon(
            *words, *self.at(server), env=self.environment(CARILLON_TOKEN=token)
        )
        for tube in ("a", "b"):
            run(everything, "put", "--tube", tube, tube)
            run(everything, "tube", "set", tube, "--max-attempts", "3")
            run(everything, "schedule", "set", tube, "--every", "1d", "--tube", tube, tube)
        done = run(own, "export", "--out", str(self.out))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        lines = [json.loads(line) for line in self.out.read_text().splitlines()]
        types = [line["type"] for line in lines]
        self.assertEqual(types, ["export", "tube", "job", "page", "schedule", "end"])
        again = ("import", str(self.out), "--tube", "a")
        self.assertEqual(run(own, *again).returncode, 0)
        done = run(own, "import", str(self.out), "--tube", "a=b")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.out} line 2: ", done.stderr.decode())

    def test_an_export_that_was_cut_off_has_each_setting_once(self):
        c = self.first.connect()
        for number in range(3):
            c.call(b"use tube-%d" % number)
            attempts = {"retry": {"max_attempts": 2}}
            self.ask(self.first, "PATCH", f"tubes/tube-{number}", attempts)
            self.ask(self.first, "PATCH", f"tubes/tube-{number}/groups/a", {"weight": 2})
            self.put(c, f"delay={FAR}ms")
        self.ask(self.first, "PUT", "schedules/s", {"every": "1d", "job": {"body": "x"}})
        self.export(self.first, self.out)
        whole = self.out.read_text().splitlines(keepends=True)
        for lines in range(1, len(whole)):
            with self.subTest(lines=lines):
                part = self.directory / "part.jsonl"
                part.write_text("".join(whole[:lines]) + whole[lines][:9])
                self.export(self.first, part, "--resume")
                self.assertEqual(part.read_text().splitlines(keepends=True), whole)

    def test_bodies_that_fit_into_no_batch(self):
        first, second = (self.a_server("--max-job-size", "3M") for _ in range(2))
        c = first.connect()
        bodies = [random.randbytes(size) for size in (70_000, 262_144, 262_145, 2_000_000)]
        for number, body in enumerate(bodies):
            self.put(c, f"delay={FAR}ms" + (" key=own" if number == 3 else ""), body)
        self.export(first, self.out)
        self.assertEqual(self.import_file(self.out, server=second)["jobs"], 4)
        summary = self.import_file(self.out, server=second)
        self.assertEqual((summary["jobs"], summary["already"] + summary["exist"]), (0, 4))
        c = second.connect()
        found = [c.call(b"peek %d" % job_id) for job_id in range(1, 12)]
        self.assertEqual([r.body for r in found if r.body is not None], bodies)

    def test_an_export_that_was_cut_off_goes_on(self):
        chance = random.Random(7)
        self.fill(chance, jobs=900)
        self.export(self.first, self.out)
        whole = self.out.read_bytes()
        wanted = jobs_of(self.out)
        for _ in range(6):
            part = self.directory / "part.jsonl"
            part.write_bytes(whole[: chance.randrange(len(whole))])
            done = self.export(self.first, part, "--resume")
            self.assertEqual(done["jobs"], 900)
            self.assertEqual(jobs_of(part), wanted)
            lines = [json.loads(line) for line in part.read_text().splitlines()]
            ids = [line["id"] for line in lines if line["type"] == "job"]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertEqual(lines[-1], {"type": "end", "jobs": 900, "tubes": done["tubes"]})
        done = self.run_carillon("export", "--out", str(part), "--resume", *self.at(self.first))
        self.assertEqual((done.returncode, done.stderr.decode()), (0, f"{part} is whole already\n"))
        self.fails(
            f"carillon export: cannot write {part}: file exists; add --resume if it is an export "
            "to be finished",
            "export",
            "--out",
            str(part),
        )

    def test_an_export_goes_on_with_its_own_server_alone(self):
        self.first.connect().put(b"x")
        self.export(self.first, self.out)
        lines = self.out.read_text().splitlines(keepends=True)
        self.out.write_text(lines[0])  # it was cut off
        done = daemon.run_carillon(
            "export", "--out", str(self.out), "--resume", *self.at(self.second)
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"is an export of {daemon.HOST}:{self.first.port}, and not of", done.stderr)
        self.assertEqual(self.out.read_text(), lines[0])

    def test_a_large_body_that_is_damaged_is_named_and_the_others_are_exported(self):
        data = self.directory / "damaged"
        with daemon.carillon_serve(str(data), "--max-job-size", "1M") as server:
            c = server.connect()
            jobs = [c.put(bytes([65 + n]) * 100_000) for n in range(3)] + [c.put(b"small")]
            self.assertEqual(server.terminate(), 0)
        (blobs,) = data.glob("*.blob")
        stored = bytearray(blobs.read_bytes())
        stored[len(stored) // 2] ^= 1
        blobs.write_bytes(stored)
        server = self.enterContext(daemon.carillon_serve(str(data), "--scrub", "0"))
        done = daemon.run_carillon("export", "--out", str(self.out), *self.at(server))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"job \d+ is not in it: its body is damaged")
        lines = [json.loads(line) for line in self.out.read_text().splitlines()]
        whole = [line["id"] for line in lines if line["type"] == "job"]
        self.assertEqual(len(whole), len(jobs) - 1)

    def test_an_id_of_a_file_that_is_no_word_is_refused(self):
        self.out.write_text(
            json.dumps({"type": "export", "version": 1, "id": "x\r\ndelete 1\r\n"})
            + '\n{"tube":"a","body":"x"}\n'
        )
        done = daemon.run_carillon("import", str(self.out), *self.at(self.second))
        self.assertEqual(done.returncode, 1)
        self.assertIn('line 1: "id": 13 bytes; an export has', done.stderr)

    def test_an_export_whose_server_dies_says_how_far_it_came(self):
        self.fill(random.Random(9), tubes=1, jobs=5_000)
        process = self.start("export", *self.at(self.first))
        lines = [process.stdout.readline() for _ in range(10)]
        # The pipe is full, and the next page is not asked for before it is read.
        self.first.kill()
        lines += process.stdout.readlines()
        jobs = sum(b'"type":"job"' in line for line in lines)
        self.assertGreater(jobs, 0)
        self.assertLess(jobs, 5_000)
        self.assertRegex(
            process.stderr.read().decode(),
            rf"^carillon export: cannot connect to .* refused; .*, after {jobs} jobs\n$",
        )
        self.assertEqual(process.wait(), 1)

    def test_an_unfinished_export_is_imported_as_far_as_it_goes_and_later_the_rest(self):
        chance = random.Random(8)
        self.fill(chance, jobs=900)
        self.export(self.first, self.out)
        whole = self.out.read_bytes()
        part = self.directory / "part.jsonl"
        part.write_bytes(whole[: whole.rindex(b"\n", 0, len(whole) * 2 // 3) + 1])
        done = self.run_carillon("import", str(part), *self.at(self.second))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"has no last line: the export was not finished", done.stderr)
        self.export(self.first, part, "--resume")
        summary = self.import_file(part)
        self.assertEqual(summary["jobs"] + summary["already"], 900)
        again = self.directory / "again.jsonl"
        self.export(self.second, again)
        self.assertEqual(jobs_of(again), jobs_of(self.out))

    def test_imports_that_are_killed_lose_and_double_nothing(self):
        seed = setting("CARILLON_SEED", random.randrange(1 << 32))
        print(f"seed {seed}", file=sys.stderr)
        chance = random.Random(seed)
        self.fill(chance, jobs=2500)
        self.export(self.first, self.out)
        stats = self.second.connect()
        total = lambda: int(stats.stats(b"stats")["total-jobs"])
        kills = 0
        for round in range(8):
            process = self.start("import", str(self.out), *self.at(self.second))
            # The ports change when a server is killed.
            until = total() + chance.randrange(0, 400)
            self.wait_until(
                lambda: total() >= until or process.poll() is not None, "the import goes on"
            )
            kills += process.poll() is None
            if round % 3 == 2:
                self.second.kill()
            process.kill()
            process.wait()
            if round % 3 == 2:
                self.second.start()
                stats = self.second.connect()
        self.import_file(self.out)
        print(f"{kills} kills", file=sys.stderr)
        again = self.directory / "again.jsonl"
        self.export(self.second, again)
        self.assertEqual(jobs_of(again), jobs_of(self.out))

    def test_an_export_under_load_has_each_job_that_stays_once(self):
        c = self.first.connect()
        c.call(b"use stays")
        ids = [self.put(c, f"delay={FAR + n}ms") for n in range(2000)]
        ids += [self.put(c, "pri=9") for _ in range(200)]
        worker = self.start(
            "work", "--tube", "moves", "--jobs", "2", *self.at(self.first), "--", "true"
        )
        c.call(b"use moves")
        for _ in range(300):
            self.put(c, "pri=0 max-attempts=3")
        for round in range(3):
            path = self.directory / f"{round}.jsonl"
            self.export(self.first, path)
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found = [line["id"] for line in lines if line["type"] == "job"]
            self.assertEqual(len(found), len(set(found)))
            self.assertLessEqual(set(ids), set(found))
        worker.kill()

    def test_lines_of_ones_own_tubes_by_other_names_and_what_is_past(self):
        lines = [
            {"tube": "mail", "body": "now"},
            {"tube": "mail", "body_base64": base64.b64encode(b"\xff").decode(), "pri": 3},
            {"tube": "news", "body": "not this one"},
            {
                "tube": "img",
                "body": "past",
                "due": "2001-01-01T00:00:00Z",
                "key": "k 1".replace(" ", "-"),
            },
            {"tube": "img", "body": "later", "delay": "40d", "max_attempts": 3, "ttr": "90s"},
        ]
        self.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        arguments = ("--tube", "mail", "--tube", "img=images")
        self.assertEqual(self.import_file(self.out, "--dry-run", *arguments)["jobs"], 4)
        self.assertEqual(self.import_file(self.out, *arguments)["jobs"], 4)
        c = self.second.connect()
        self.assertEqual(int(c.stats(b"stats-tube mail")["current-jobs-ready"]), 2)
        images = c.stats(b"stats-tube images")
        self.assertEqual((images["current-jobs-ready"], images["current-jobs-delayed"]), ("1", "1"))
        self.assertEqual(c.call(b"stats-tube news").line, b"NOT_FOUND")
        self.assertEqual(self.import_file(self.out, *arguments)["already"], 4)
        # The file has changed: it is not taken for the same, and nothing is doubled.
        lines[1]["pri"] = 4
        self.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = self.run_carillon("import", str(self.out), *arguments, *self.at(self.second))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"line 1: up to line 2: was imported before, with another", done.stderr)

    def write(self, *jobs):
        self.out.write_text("".join(json.dumps(job) + "\n" for job in jobs))

    def test_large_bodies_behind_the_same_first_line_are_all_put(self):
        server = self.a_server("--max-job-size", "1M")
        for letter, jobs in (("a", (2, 0)), ("b", (1, 1)), ("b", (0, 2))):
            self.write({"body": "first"}, {"body": letter * 300_000})
            summary = self.import_file(self.out, server=server)
            self.assertEqual((summary["jobs"], summary["already"]), jobs)
        c = server.connect()
        bodies = [c.call(b"reserve-with-timeout 0").body for _ in range(3)]
        self.assertEqual(bodies, [b"first", b"a" * 300_000, b"b" * 300_000])

    def test_a_large_body_without_a_key_gets_one_and_that_is_said(self):
        server = self.a_server("--max-job-size", "1M")
        self.write({"body": "L" * 300_000}, {"body": "M" * 300_000, "key": "mine"}, {"body": "s"})
        arguments = ("import", str(self.out), *self.at(server))
        done = self.run_carillon(*arguments)
        self.assertEqual(
            done.stderr.decode(),
            "1 job of more than 256 KiB had no key and got one, import:...: so a run again does "
            "not put it twice\n",
        )
        jobs = [self.ask(server, "GET", f"jobs/{job}") for job in (1, 2, 3)]
        keys = sorted(job.get("key", "") for job in jobs)
        self.assertEqual(keys[0], "")
        self.assertRegex(keys[1], "^import:")
        self.assertEqual(keys[2], "mine")
        self.assertEqual(json.loads(self.carillon(*arguments, "--json"))["keyed"], 0)

    def test_a_job_that_expires_before_it_is_due_is_left_out_or_buried(self):
        c = self.first.connect()
        for end in ("drop", "dead"):
            job = self.put(c, f"expires-in=1h at-expiry={end}", end.encode())
            self.assertEqual(c.call(b"reserve-job %d" % job).word, b"RESERVED")
            self.assertEqual(c.call(b"release %d 0 7200" % job).line, b"RELEASED")
        self.assertEqual(self.export(self.first, self.out)["jobs"], 2)
        done = self.run_carillon("import", str(self.out), *self.at(self.second))
        self.assertEqual(
            (done.returncode, done.stderr.decode()),
            (
                0,
                "2 jobs would expire before the due time: buried if at-expiry is dead, else left "
                "out\n",
            ),
        )
        self.assertEqual(self.import_file(self.out)["never_run"], 2)
        there = self.second.connect()
        self.assertEqual(there.call(b"peek-buried").body, b"dead")
        self.assertEqual(there.stats()["total-jobs"], "1")

    def test_a_line_by_hand_that_expires_before_it_is_due_is_refused(self):
        server = self.a_server("--max-job-size", "1M")
        late, later = "2031-01-01T00:00:00Z", "2031-01-01T01:00:00Z"
        for times in (
            {"delay": "1h", "expires_in": "30m"},
            {"delay": "1h", "expires_at": "2020-01-01T00:00:00Z"},
            {"due": later, "expires_in": "30m"},
            {"due": later, "expires_at": late},
            {"due": late, "expires_at": late, "at_expiry": "dead"},
            {"due_ms": 1924992000000, "expires_at": late, "body": 300_000 * "x"},
        ):
            with self.subTest(times):
                self.write({"body": "first"}, {"tube": "b", "body": "x", **times})
                done = self.run_carillon("import", str(self.out), *self.at(server))
                self.assertEqual(done.returncode, 1, done)
                self.assertRegex(
                    done.stderr.decode(),
                    r"line 2: .*the job would expire in \d+ ms, and be due in \d+ ms: no worker",
                )
        self.assertEqual(server.connect().stats()["total-jobs"], "1")

    def test_a_file_goes_into_another_tube_as_well(self):
        self.write({"tube": "mail", "body": "x"}, {"tube": "mail", "body": "y" * 60_000})
        for name, jobs in (("mail", 2), ("mail=post", 2), ("mail", 0), ("mail=post", 0)):
            summary = self.import_file(self.out, "--tube", name)
            self.assertEqual((summary["jobs"], summary["already"]), (jobs, 2 - jobs))
        for tube in (b"mail", b"post"):
            stats = self.second.connect().stats(b"stats-tube " + tube)
            self.assertEqual(stats["current-jobs-ready"], "2")

    def test_an_import_waits_for_the_rate_of_a_tube(self):
        rate = {"jobs": 30, "per": "1s", "burst": 7}
        self.ask(self.second, "PATCH", "tubes/slow", {"limits": {"put_rate": rate}})
        self.write(*({"tube": "slow", "body": str(n)} for n in range(25)))
        for put in (25, 0):
            summary = self.import_file(self.out)
            self.assertEqual((summary["jobs"], summary["already"]), (put, 25 - put))
        slow = self.ask(self.second, "GET", "tubes/slow")
        self.assertEqual(slow["jobs"]["ready"], 25)
        self.assertNotEqual(slow["puts_too_fast"], 0)

    def test_a_buried_job_that_replaces_another_is_buried(self):
        server = self.a_server("--max-job-size", "1M")
        c = server.connect()
        ids = [self.put(c, f"key={key}", b"old") for key in "ab"]
        self.write(
            {"state": "buried", "on_conflict": "replace", "key": "a", "body": "new"},
            {"state": "buried", "on_conflict": "replace", "key": "b", "body": "L" * 300_000},
        )
        summary = self.import_file(self.out, server=server)
        self.assertEqual((summary["jobs"], summary["exist"]), (2, 0))
        for job_id in ids:
            self.assertEqual(c.stats(b"stats-job %d" % job_id)["state"], "buried")
        self.assertEqual(c.call(b"peek-job key=a").body, b"new")

    def test_a_job_whose_key_is_taken_is_reported(self):
        c = self.second.connect()
        self.put(c, "key=a delay=40d", b"mine")
        self.out.write_text('{"body":"theirs","key":"a"}\n{"body":"other","key":"b"}\n')
        summary = self.import_file(self.out)
        self.assertEqual((summary["jobs"], summary["exist"]), (1, 1))
        self.assertEqual(c.call(b"peek-job key=a").body, b"mine")

    def test_the_first_of_jobs_with_one_key_is_put(self):
        self.out.write_text('{"key":"k","body":"a"}\n{"body":"b"}\n{"key":"k","body":"c"}\n')
        summary = self.import_file(self.out)
        self.assertEqual([summary["jobs"], summary["exist"]], [2, 1])
        summary = self.import_file(self.out)
        self.assertEqual([summary["jobs"], summary["already"]], [0, 3])

    def test_a_tube_that_the_file_does_not_have_is_an_error(self):
        self.out.write_text('{"tube":"mail","body":"a"}\n{"tube":"images","body":"b"}\n')
        done = self.run_carillon(
            *("import", str(self.out), "--tube", "mail", "--tube", "mial", "--json"),
            *self.at(self.second),
        )
        self.assertEqual((done.returncode, json.loads(done.stdout)["jobs"]), (1, 1))
        why = f"{self.out} has nothing for tube mial; it has lines for images, mail"
        self.assertEqual(done.stderr.decode(), f"carillon import: {why}\n")

    def test_wrong_lines_are_named_and_nothing_of_their_batch_is_put(self):
        good = '{"body":"x"}\n'
        cases = {
            "{": "not JSON: incomplete JSON",
            "[1]": "not a JSON object",
            '{"tube":"a b","body":""}': '"a b": a tube\'s name is made of letters, digits and '
            "- + / ; . $ _ ( )",
            '{"tube":"a"}': 'the job has no "body"',
            '{"body":7}': '"body": not a text',
            '{"body_base64":"a"}': '"body_base64": not Base64',
            '{"body":"","pri":-1}': '"pri": not a whole number',
            '{"body":"","pri":4294967296}': '"pri": more than 4294967295',
            '{"body":"","delya":"3s"}': '"delya": no such option; there are ',
            '{"body":"","delay":"3 parsecs"}': "delay: ",
            '{"body":"","due":1893456000}': "due: ",
            '{"body":"","due":1893456000000,"delay":"3s"}': '"delay": there is a due or a delay',
            '{"body":"","state":"dead"}': '"state": write delayed, ready, reserved or buried',
            '{"type":"tube","max_attempts":3}': '"tube": is missing',
            '{"type":"tube","tube":"a","max_attempt":3}': '"max_attempt": no such option; there ',
            '{"type":"group","tube":"a","weight":3}': '"group": is missing',
            '{"type":"schedule","tube":"a","name":"s","every":"1h"}': '"body": is missing',
            '{"type":"schedule","tube":"a","name":"s","body":""}': "cron: write it, or `every`",
            '{"type":"export","version":2,"id":"x"}': '"version": is 2; this Carillon knows 1',
        }
        for wrong, why in cases.items():
            with self.subTest(wrong=wrong):
                self.out.write_text(good * 2 + wrong + "\n" + good)
                for dry in ((), ("--dry-run",)):
                    done = self.run_carillon("import", str(self.out), *dry, *self.at(self.second))
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(f"{self.out} line 3: {why}", done.stderr.decode())
        stats = self.second.connect().stats(b"stats")
        # The last case has put the jobs that stand before its export.
        self.assertLessEqual(int(stats["total-jobs"]), 2)

    def test_what_the_server_refuses_is_named_by_its_line(self):
        self.out.write_text('{"body":"x"}\n{"body":"%s"}\n' % ("y" * 70_000))
        self.fails(
            f"carillon import: {self.out} line 2: the body has 70000 bytes, more than the "
            "server takes; nothing of lines 1 to 2 was put; 0 jobs put so far, run it again to "
            "go on",
            "import",
            str(self.out),
            *self.at(self.second),
        )

    def test_one_job_is_reported_in_the_singular(self):
        c = self.first.connect()
        self.put(c, "key=k")
        self.ask(self.first, "PUT", "schedules/s", {"every": "1d", "job": {"body": "x"}})
        self.ask(self.first, "PATCH", "tubes/default", {"retry": {"max_attempts": 2}})
        exported = self.carillon("export", "--out", str(self.out), *self.at(self.first))
        self.assertRegex(exported, r": 1 job of 1 tube and 1 schedule in \S+\n$")
        put = self.carillon("import", str(self.out), *self.at(self.second))
        self.assertRegex(put, r"^1 job, 1 setting, 1 schedule in \S+\n$")
        again = self.run_carillon("import", str(self.out), *self.at(self.second))
        self.assertEqual(
            again.stderr,
            b"1 other had been put by an import before; --once TOKEN puts them again\n",
        )
        self.write({"key": "k", "body": "new"})
        met = self.run_carillon("import", str(self.out), *self.at(self.second))
        self.assertEqual(met.stderr, b"1 was not put: its tube has a job with its key\n")
        self.write({"type": "later", "x": 1}, {"body": "y"})
        later = self.run_carillon("import", str(self.out), *self.at(self.second))
        self.assertEqual(later.stderr, b'passed over 1 line of type "later"\n')
        self.write({"body": "y" * 70_000})
        self.fails(
            f"carillon import: {self.out} line 1: the body has 70000 bytes, more than the "
            "server takes; nothing of line 1 was put; 0 jobs put so far, run it again to go on",
            *("import", str(self.out), *self.at(self.second)),
        )

    def test_a_file_that_begins_as_another_one_goes_in_by_a_token(self):
        self.write({"body": "first"}, {"body": "monday"}, {"tube": "img", "body": "m" * 300_000})
        server = self.a_server("--max-job-size", "1M")
        self.assertEqual(self.import_file(self.out, server=server)["jobs"], 3)
        self.write({"body": "first"}, {"body": "tuesday"})
        self.fails(
            f"carillon import: {self.out} line 1: up to line 2: was imported before, with another "
            "content; nothing of that was put; if it is another file, add --once TOKEN; 0 jobs "
            "put so far, run it again to go on",
            *("import", str(self.out), *self.at(server)),
        )
        # With a token the file is put, and once only; another token puts it again.
        for token, jobs in (("t", 2), ("t", 0), ("u", 2), ("u", 0), ("t", 0)):
            summary = self.import_file(self.out, "--once", token, server=server)
            self.assertEqual((summary["jobs"], summary["already"]), (jobs, 2 - jobs), token)
        # So is a body that fits into no batch; for another tube, or in an export, it is another
        # job.
        self.write({"tube": "img", "body": "m" * 300_000})
        for more, jobs in (
            (("--once", "t"), 1),
            (("--once", "t"), 0),
            (("--once", "t", "--tube", "img=pictures"), 1),
            (("--once", "t" * 100), 1),
            (("--once", "t" * 100), 0),
        ):
            self.assertEqual(self.import_file(self.out, *more, server=server)["jobs"], jobs, more)
        path = self.directory / "exported.jsonl"
        there = self.export(server, path, "--tube", "default")["jobs"]
        for token, jobs in (("v", there), ("v", 0), ("w", there)):
            summary = self.import_file(path, "--once", token, server=server)
            self.assertEqual(summary["jobs"], jobs)

    def test_a_wrong_token(self):
        for token in ("", "a b", "t" * 101):
            self.fails(
                f'carillon import: --once "{token}": a token has 1 to 100 bytes, and no space',
                *("import", "x", "--once", token),
                code=2,
            )
        self.fails(
            "carillon import: --once goes with FILE",
            *("import", "--beanstalkd", "127.0.0.1:1", "--once", "t"),
            code=2,
        )

    def test_a_file_or_a_beanstalkd(self):
        self.fails(
            "carillon import: write what to import: FILE or --beanstalkd ADDR", "import", code=2
        )
        self.fails(
            "carillon import: cannot read /nowhere/x: no such file or directory",
            "import",
            "/nowhere/x",
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
