"""System tests of the commands with a server that is absent, strange, draining or dying."""

import os
import re
import signal
import socket
import stat
import threading
import unittest

from cli_case import CliCase, daemon


class ServerTrouble(CliCase):
    COMMANDS = (["put", "x"], ["reserve"], ["stats"], ["work", "--", "true"])
    HTTP_COMMANDS = (
        ["cancel", "1"],
        ["delete", "1"],
        ["peek", "1"],
        ["top"],
        ["kick"],
        ["list"],
        ["pause", "mail"],
        ["endpoint", "list"],
    )

    def test_nobody_listens(self):
        port = daemon.free_port()
        address = f"{daemon.HOST}:{port}"
        http = f"{daemon.HOST}:{port + daemon.HTTP_BESIDE} (HTTP)"
        for commands, at in ((self.COMMANDS, address), (self.HTTP_COMMANDS, http)):
            for command in commands:
                self.fails(
                    f"carillon {command[0]}: cannot connect to {at}: connection refused; "
                    f"start one with: carillon serve --listen {address}",
                    *command,
                    env=self.environment(CARILLON_SERVER=address),
                )

    def test_where_it_answers_http_may_be_named(self):
        job = self.put("x")
        http = f"{daemon.HOST}:{self.server.port + daemon.HTTP_BESIDE}"
        nowhere = {"CARILLON_SERVER": f"{daemon.HOST}:1"}
        self.assertEqual(
            self.run_carillon(
                "kick", "--tube", self.tube, env=self.environment(CARILLON_HTTP=http, **nowhere)
            ).stdout,
            b"0\n",
        )
        # A user who names a server means its HTTP, too.
        env = self.environment(CARILLON_HTTP=f"{daemon.HOST}:1", **nowhere)
        at = ("--server", f"{daemon.HOST}:{self.server.port}")
        self.assertEqual(self.run_carillon("cancel", *at, job, env=env).returncode, 0)
        self.assertIn(
            f"cannot connect to {daemon.HOST}:1 (HTTP): ".encode(),
            self.run_carillon("kick", env=env).stderr,
        )
        self.fails(
            "carillon kick: the command talks HTTP to the server, which --http none forbids",
            *("kick", "--http", "none"),
        )

    def test_a_server_that_answers_no_http(self):
        for http in ("none", f"{daemon.HOST}:{daemon.free_port()}"):
            data = str(self.directory / http[:4])
            with daemon.carillon_serve(data, "--http", http) as server:
                address = f"{daemon.HOST}:{server.port}"
                beside = f"{daemon.HOST}:{server.port + daemon.HTTP_BESIDE}"
                self.fails(
                    f"carillon kick: cannot connect to {beside} (HTTP): connection refused; the "
                    f"server at {address} answers, but nothing answers HTTP there: see carillon "
                    "serve --http, and name its address by --http or CARILLON_HTTP",
                    *("kick", "--server", address),
                )

    def test_a_server_that_does_not_speak_http(self):
        address = f"{daemon.HOST}:{self.server.port}"
        done = self.run_carillon("kick", "--http", address)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(f"{address} (HTTP)".encode(), done.stderr)

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
        at = ("--server", f"unix:{path}")
        self.assertEqual(self.carillon("put", *at, "x"), "1\n")
        # Commands that talk HTTP find the socket beside it.
        self.assertEqual(self.carillon("cancel", *at, "1"), "cancelled job 1\n")
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
            at = ("--server", address)
            self.carillon("put", *at, "--delay", "1s", "--ttr", "90s", "x")
            self.assertEqual(self.carillon("reserve", *at, "--timeout", "9500ms"), "x")
            # A body that looks like a command is not carried out.
            for more in (("--delay", "10ms"), ("--at", "2040-01-01T00:00:00Z"), ("--key", "k")):
                self.fails(
                    f"carillon put: {address} is no Carillon: it takes a body, --pri, and --delay "
                    "and --ttr in whole seconds",
                    *("put", *at, *more, "put 0 0 60 1"),
                )
            self.fails(
                f'carillon put: {address} does not know "put-jobs": '
                "it is not Carillon, or an older one",
                *("put", *at, "--batch"),
                body=b"x\n",
            )
            self.assertEqual(self.stats(*at)["total-jobs"], 1)
            # Commands that need none of Carillon's own verbs work with every server.
            self.carillon("stats", "--server", address)

    def test_a_draining_server(self):
        with daemon.carillon_serve(str(self.directory / "data")) as draining:
            draining.process.send_signal(signal.SIGUSR1)
            address = f"{daemon.HOST}:{draining.port}"
            self.wait_until(lambda: self.stats("--server", address)["draining"], "it drains")
            self.fails(
                f"carillon put: {address} takes no new jobs: it is draining, or the tube is",
                *f"put --server {address} x".split(),
            )
            # The server asks to be asked again. The command does, for five seconds, and says so.
            http = f"{daemon.HOST}:{draining.port + 80} (HTTP)"
            why = f"{http}: the server is draining (SIGUSR1)"
            self.fails(
                f"waiting: {why}\ncarillon schedule: {why}",
                *f"schedule set s --every 1h --server {address} x".split(),
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


if __name__ == "__main__":
    unittest.main()
