"""System tests of the commands, except work: output, errors, exit codes and times."""

import datetime
import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest

from cli_case import SLACK, CliCase, daemon


def _utc(seconds_from_now, offset_hours=0):
    """Returns a time in RFC 3339 with microseconds and the given offset from UTC."""
    zone = datetime.timezone(datetime.timedelta(hours=offset_hours))
    moment = datetime.datetime.now(zone) + datetime.timedelta(seconds=seconds_from_now)
    return moment.isoformat(timespec="microseconds")


class NewcomerTest(CliCase):
    """The first steps of the README, with a shorter delay."""

    def test_put_with_a_delay_and_reserve(self):
        before = time.monotonic()
        job_id = self.carillon("put", "--delay", "1s", "hello")
        after = time.monotonic()
        self.assertEqual(job_id, "1\n")
        done = self.run_carillon("reserve")
        reserved = time.monotonic()
        self.assertEqual(done.stdout, b"hello")
        self.assertEqual(
            done.stderr.decode(),
            "job 1 from tube default: it goes back to ready when this command ends "
            "(use --delete to finish it)\n",
        )
        self.assertGreaterEqual(reserved, before + 1.0)
        self.assertLess(reserved, after + 1.0 + SLACK)

        # The job went back to ready, and is handed out again. Then it is deleted.
        self.assertEqual(self.carillon("reserve", "--timeout", "10s"), "hello")
        done = self.run_carillon("reserve", "--timeout", "10s", "--delete")
        self.assertEqual(
            (done.stdout, done.stderr), (b"hello", b"job 1 from tube default: deleted\n")
        )
        self.fails("carillon reserve: no job is ready", "reserve", "--timeout", "0")


class RestartTest(CliCase):
    def test_a_job_comes_on_time_although_the_server_was_killed(self):
        before = time.monotonic()
        self.put("--delay", "2s", "hello")
        after = time.monotonic()
        self.kill_server()
        self.server.start()
        self.assertEqual(self.carillon("reserve", "--tube", self.tube), "hello")
        reserved = time.monotonic()
        self.assertGreaterEqual(reserved, before + 2.0)
        self.assertLess(reserved, after + 2.0 + SLACK)


class PutTest(CliCase):
    def body_of(self, job_id):
        return self.run_carillon("peek", job_id).stdout

    def test_the_body_is_the_argument_byte_for_byte(self):
        for body in (
            "hello",
            "",
            "two words\n",
            "[1,2]",
            "%%",
            "stats",
            "put",
            "naïve ☃",
            '"quoted"',
            "a=b",
            "{}",
        ):
            self.assertEqual(self.body_of(self.put(body)), body.encode(), body)

    def test_a_body_may_start_with_a_dash_after_a_double_dash(self):
        self.assertEqual(self.body_of(self.put("--", "--json")), b"--json")
        self.assertEqual(self.body_of(self.put("-5")), b"-5")

    def test_the_body_is_standard_input_without_an_argument_or_with_a_dash(self):
        body = bytes(range(256)) + b"\r\n\n"
        self.assertEqual(self.body_of(self.put(body=body)), body)
        self.assertEqual(self.body_of(self.put("-", body=body)), body)
        self.assertEqual(self.body_of(self.put(body=b"")), b"")

    def test_the_largest_body_and_one_more_byte(self):
        self.assertEqual(len(self.body_of(self.put(body=b"x" * 65535))), 65535)
        self.fails(
            "carillon put: the body has 65536 bytes; "
            f"the limit of {daemon.HOST}:{self.server.port} is 65535",
            "put",
            body=b"x" * 65536,
        )

    def test_priority_ttr_and_delay_reach_the_job(self):
        job = self.job(self.put("--pri", "5", "--ttr", "1m30s", "--delay", "40d", "x"))
        self.assertEqual((job["pri"], job["ttr"], job["delay"]), (5, 90, 40 * 86400))
        job = self.job(self.put("x"))
        self.assertEqual((job["pri"], job["ttr"], job["delay"]), (65536, 60, 0))

    def test_a_delay_of_milliseconds(self):
        before = time.monotonic()
        self.put("--delay", "250ms", "x")
        after = time.monotonic()
        self.carillon("reserve", "--tube", self.tube, "--delete")
        reserved = time.monotonic()
        self.assertGreaterEqual(reserved, before + 0.25)
        self.assertLess(reserved, after + 0.25 + SLACK)

    def test_an_absolute_time_in_any_offset(self):
        for offset in (0, 2, -8):
            due = time.time() + 0.7
            self.put("--at", _utc(0.7, offset), "x")
            self.carillon("reserve", "--tube", self.tube, "--delete", "--timeout", "30s")
            reserved = time.time()
            self.assertGreaterEqual(reserved, due)
            self.assertLess(reserved, due + SLACK)

    def test_a_time_in_the_past_is_now(self):
        self.put("--at", "1999-12-31T23:59:59Z", "x")
        self.carillon("reserve", "--tube", self.tube, "--timeout", "0")
        self.put("--at", "1969-12-31T23:59:59Z", "y")
        self.assertEqual(
            self.carillon("reserve", "--tube", self.tube, "--timeout", "0", "--delete"), "x"
        )
        self.assertEqual(
            self.carillon("reserve", "--tube", self.tube, "--timeout", "0", "--delete"), "y"
        )

    def test_json_of_a_time_in_the_past_is_now(self):
        for past in ("2020-01-01T00:00:00Z", "1969-12-31T23:59:59Z"):
            before = time.time()
            put = json.loads(self.carillon("put", "--json", "--at", past, "--tube", self.tube, "x"))
            due = datetime.datetime.fromisoformat(put["due"].replace("Z", "+00:00")).timestamp()
            self.assertGreaterEqual(due, before - 0.001)  # written in whole milliseconds
            self.assertLessEqual(due, time.time())

    def test_json_of_a_delay(self):
        before = time.time()
        put = json.loads(self.carillon("put", "--json", "--delay", "40d", "--tube", self.tube, "x"))
        after = time.time()
        self.assertEqual(list(put), ["id", "tube", "due"])
        self.assertEqual((type(put["id"]), put["tube"]), (int, self.tube))
        self.assertRegex(put["due"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        due = datetime.datetime.fromisoformat(put["due"].replace("Z", "+00:00")).timestamp()
        self.assertGreaterEqual(due, before + 40 * 86400 - 0.001)  # written in whole milliseconds
        self.assertLessEqual(due, after + 40 * 86400)

    def test_json_of_a_time(self):
        put = json.loads(
            self.carillon(
                "put", "--json", "--at", "2130-01-01T09:00:00.25+02:00", "--tube", self.tube, "x"
            )
        )
        self.assertEqual(put["due"], "2130-01-01T07:00:00.250Z")

    def test_a_due_time_after_the_year_9999_is_refused(self):
        line = "carillon put: the job would be due after the year 9999; the server refused it"
        self.fails(line, "put", "--tube", self.tube, "--delay", "4000000d", "x")
        self.fails(line, "put", "--tube", self.tube, "--delay", "106751991167d", "x")
        self.fails(line, "put", "--tube", self.tube, "--at", "9999-12-31T23:59:59-01:00", "x")
        self.put("--at", "9999-12-31T23:59:59.999Z", "x")
        self.assertEqual(self.stats("--tube", self.tube)["total-jobs"], 1)


class ReserveTest(CliCase):
    def test_only_the_named_tubes(self):
        self.carillon("put", "in default")
        self.put("--pri", "2", "a")
        self.carillon("put", "--tube", self.tube + "2", "--pri", "1", "b")
        tubes = ("--tube", self.tube, "--tube", self.tube + "2")
        done = self.run_carillon("reserve", "--delete", *tubes)
        self.assertEqual(done.stdout, b"b")
        self.assertRegex(done.stderr.decode(), rf"^job \d+ from tube {self.tube}2: deleted\n$")
        self.assertEqual(self.carillon("reserve", "--delete", *tubes), "a")
        self.fails("carillon reserve: no job within 0.10s", "reserve", "--timeout", "100ms", *tubes)

    def test_a_timeout_is_not_early(self):
        before = time.monotonic()
        self.fails(
            "carillon reserve: no job within 0.30s",
            "reserve",
            "--timeout",
            "300ms",
            "--tube",
            self.tube,
        )
        self.assertGreaterEqual(time.monotonic() - before, 0.3)

    def test_json(self):
        job_id = self.put("line\n\u2603")
        self.assertEqual(
            json.loads(self.carillon("reserve", "--json", "--tube", self.tube, "--delete")),
            {"id": int(job_id), "tube": self.tube, "body": "line\n\u2603"},
        )

    def test_json_of_bytes_that_are_not_text(self):
        job_id = self.put(body=b"\xff\x00\x01")
        self.assertEqual(
            json.loads(self.carillon("reserve", "--json", "--tube", self.tube)),
            {"id": int(job_id), "tube": self.tube, "body_base64": "/wAB"},
        )

    def test_a_line_end_is_added_on_a_terminal_only(self):
        self.put("hello")
        terminal, other_end = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.run_carillon("reserve", "--tube", self.tube, stdout=other_end)
        os.close(other_end)
        self.assertEqual(os.read(terminal, 100), b"hello\r\n")  # a terminal turns \n into \r\n
        self.assertEqual(self.carillon("reserve", "--tube", self.tube), "hello")

    def test_a_job_that_cannot_be_printed_is_not_deleted(self):
        job_id = self.put("hello")
        with open("/dev/full", "wb") as full:
            done = self.run_carillon("reserve", "--delete", "--tube", self.tube, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            b"carillon reserve: cannot write to standard output: no space left on device\n",
        )
        self.wait_until(lambda: self.job(job_id)["state"] == "ready", "the job goes back to ready")

    def test_a_killed_reserve_gives_its_job_to_the_next(self):
        waiting = self.start("reserve", "--tube", self.tube)
        self.wait_until(
            lambda: self.has_tube() and self.stats("--tube", self.tube)["current-waiting"] == 1,
            "it waits",
        )
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(30), -signal.SIGINT)
        self.put("hello")
        self.assertEqual(self.carillon("reserve", "--tube", self.tube, "--timeout", "10s"), "hello")

    def has_tube(self):
        return self.run_carillon("stats", "--tube", self.tube).returncode == 0


class JobsTest(CliCase):
    """delete, kick, peek and stats."""

    def bury(self, job_id):
        """Buries a job over a connection of its own: of carillon's commands only work can bury."""
        connection = self.server.connect()
        self.assertEqual(connection.call(f"reserve-job {job_id}".encode()).word, b"RESERVED")
        self.assertEqual(connection.call(f"bury {job_id} 5".encode()).word, b"BURIED")

    def test_delete_continues_after_a_job_that_does_not_exist(self):
        first, last = self.put("x"), self.put("--delay", "1h", "y")
        done = self.run_carillon("delete", first, "999999", last)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.decode(), f"deleted {first}\ndeleted {last}\n")
        self.assertEqual(
            done.stderr, b"carillon delete: job 999999 does not exist, or a worker holds it\n"
        )
        self.fails(f"carillon stats: job {first} does not exist", "stats", "--job", first)

    def test_kick_delayed_jobs(self):
        for delay in ("3h", "1h", "2h"):
            self.put("--delay", delay, delay)
        self.assertEqual(self.carillon("kick", "--tube", self.tube), "1\n")
        self.assertEqual(self.carillon("reserve", "--delete", "--tube", self.tube), "1h")
        self.assertEqual(self.carillon("kick", "10", "--tube", self.tube), "2\n")
        self.assertEqual(self.carillon("kick", "10", "--tube", self.tube), "0\n")

    def test_kick_one_job(self):
        job_id = self.put("--delay", "1h", "x")
        self.assertEqual(self.carillon("kick", "--job", job_id), "1\n")
        self.assertEqual(self.job(job_id)["state"], "ready")
        self.fails(
            f"carillon kick: job {job_id} does not exist, or is neither buried nor delayed",
            "kick",
            "--job",
            job_id,
        )

    def test_peek_by_id_and_by_state(self):
        ready = self.put("is ready")
        delayed = self.put("--delay", "90s", "is delayed")
        buried = self.put("is buried")
        self.bury(buried)
        for arguments, job_id, state in (
            (["--ready", "--tube", self.tube], ready, "ready"),
            (["--delayed", "--tube", self.tube], delayed, "delayed"),
            (["--buried", "--tube", self.tube], buried, "buried"),
            ([ready], ready, "ready"),
            ([delayed], delayed, "delayed"),
            ([buried], buried, "buried"),
        ):
            done = self.run_carillon("peek", *arguments)
            self.assertEqual((done.returncode, done.stdout.decode()), (0, f"is {state}"))
            left = r", \d+ s left" if state == "delayed" else ""
            self.assertRegex(
                done.stderr.decode(), rf"^job {job_id} in tube {self.tube}: {state}{left}\n$"
            )
            self.assertEqual(
                json.loads(self.carillon("peek", "--json", *arguments)),
                {"id": int(job_id), "tube": self.tube, "state": state, "body": f"is {state}"},
            )

    def test_peek_finds_nothing(self):
        self.fails("carillon peek: job 999999 does not exist", "peek", "999999")
        for state in ("ready", "delayed", "buried"):
            self.fails(
                f"carillon peek: no {state} job in tube {self.tube}",
                "peek",
                f"--{state}",
                "--tube",
                self.tube,
            )

    def test_stats_for_people(self):
        job_id = self.put("x")
        for arguments in ([], ["--tube", self.tube], ["--job", job_id]):
            lines = self.carillon("stats", *arguments).splitlines()
            column = max(len(line.split()[0]) for line in lines) + 2
            for line in lines:
                self.assertRegex(line, rf"^[a-z-]+ +(?<=^.{{{column}}})\S")
                self.assertLessEqual(len(line), 80)
        self.assertIn(f"tube       {self.tube}\n", self.carillon("stats", "--job", job_id))

    def test_stats_for_machines(self):
        job_id = self.put("--pri", "7", "x")
        server = self.stats()
        self.assertEqual((type(server["cmd-put"]), type(server["rusage-utime"])), (int, float))
        self.assertEqual(
            (server["draining"], type(server["id"]), type(server["version"])), (False, str, str)
        )
        tube = self.stats("--tube", self.tube)
        self.assertEqual(
            (tube["name"], tube["current-jobs-ready"], tube["current-jobs-urgent"]),
            (self.tube, 1, 1),
        )
        job = self.job(job_id)
        self.assertEqual((job["id"], job["state"], job["pri"]), (int(job_id), "ready", 7))

    def test_a_tube_named_like_a_number(self):
        self.carillon("put", "--tube", "123", "x")
        self.assertEqual(self.stats("--tube", "123")["name"], "123")

    def test_stats_of_nothing(self):
        self.fails("carillon stats: job 999999 does not exist", "stats", "--job", "999999")
        self.fails(
            "carillon stats: tube nowhere does not exist: it has no jobs, "
            "and nobody uses or watches it",
            "stats",
            "--tube",
            "nowhere",
        )


class ServerTrouble(CliCase):
    COMMANDS = (
        ["put", "x"],
        ["reserve"],
        ["delete", "1"],
        ["kick"],
        ["peek", "1"],
        ["stats"],
        ["work", "--", "true"],
    )

    def test_nobody_listens(self):
        address = f"{daemon.HOST}:{daemon.free_port()}"
        for command in self.COMMANDS:
            self.fails(
                f"carillon {command[0]}: cannot connect to {address}: connection refused; "
                f"start one with: carillon serve --listen {address}",
                *command,
                env=self.environment(CARILLON_SERVER=address),
            )

    def test_no_such_socket_file(self):
        path = str(self.directory / "none.sock")
        self.fails(
            f"carillon stats: cannot connect to unix:{path}: no such file or directory; "
            f"start one with: carillon serve --listen unix:{path}",
            "stats",
            "--server",
            f"unix:{path}",
        )

    def test_a_unix_socket(self):
        path = str(self.directory / "c.sock")
        data = str(self.directory / "data")
        serving = self.start("serve", "--data", data, "--listen", f"unix:{path}")
        self.wait_until(
            lambda: os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode), "it listens"
        )
        self.assertEqual(self.carillon("put", "--server", f"unix:{path}", "x"), "1\n")
        serving.terminate()
        self.assertEqual(serving.wait(30), 0)

    def test_a_server_of_another_protocol(self):
        with socket.create_server((daemon.HOST, 0)) as listener:
            address = f"{daemon.HOST}:{listener.getsockname()[1]}"

            def answer():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    connection.recv(1000)  # returns when the client closes

            thread = threading.Thread(target=answer)
            thread.start()
            self.fails(
                f'carillon stats: {address} answered "HTTP/1.1 400 Bad Request" to "stats", '
                "which is not the beanstalk protocol",
                "stats",
                "--server",
                address,
            )
            thread.join()

    def test_beanstalkd_is_not_carillon(self):
        with daemon.beanstalkd() as other:
            address = f"{daemon.HOST}:{other.port}"
            self.fails(
                f'carillon put: {address} does not know "put-ms": '
                "it is not Carillon, or an older one",
                "put",
                "--server",
                address,
                "x",
            )
            # Commands that need none of Carillon's own verbs work with every server.
            self.carillon("stats", "--server", address)

    def test_a_draining_server(self):
        with daemon.carillon_serve(str(self.directory / "data")) as draining:
            draining.process.send_signal(signal.SIGUSR1)
            address = f"{daemon.HOST}:{draining.port}"
            self.wait_until(lambda: self.stats("--server", address)["draining"], "it drains")
            self.fails(
                f"carillon put: {address} is draining: it takes no new jobs",
                "put",
                "--server",
                address,
                "x",
            )

    def test_a_server_that_dies_during_a_reserve(self):
        with daemon.carillon_serve(str(self.directory / "data")) as dying:
            address = f"{daemon.HOST}:{dying.port}"
            waiting = self.start("reserve", "--server", address)
            self.wait_until(
                lambda: self.stats("--server", address)["current-waiting"] == 1, "it waits"
            )
            dying.kill()
            self.assertEqual(waiting.wait(30), 1)
            self.assertRegex(
                waiting.stderr.read().decode(),
                rf"^carillon reserve: lost the connection to {re.escape(address)}: \S.*\n$",
            )

    def test_a_wrong_server_in_the_environment_names_the_variable(self):
        done = self.run_carillon("stats", env=self.environment(CARILLON_SERVER="a:b"))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr.decode(), r'^carillon stats: CARILLON_SERVER "a:b": .+\n$')


class NameTest(CliCase):
    """`carillon beanstalkd …`, and carillon started by the name beanstalkd."""

    def test_both_take_beanstalkds_flags(self):
        as_command = self.run_carillon("beanstalkd", "-h")
        self.assertEqual(as_command.returncode, 0)
        self.assertIn(b" -b DIR", as_command.stdout)
        link = self.directory / "beanstalkd"
        link.symlink_to(daemon.carillon_path())
        by_name = subprocess.run([link, "-h"], stdout=subprocess.PIPE, timeout=60, check=True)
        self.assertIn(b" -b DIR", by_name.stdout)


if __name__ == "__main__":
    unittest.main()
