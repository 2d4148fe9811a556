"""A real server with tokens: who gets in, what SIGHUP does, and where it refuses to listen.
Row Q19 of the product's table."""

import os
import signal
import unittest

import daemon
from daemon import run_carillon as carillon


class TokensTest(daemon.DataCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.folder, "tokens")

    def token(self, name, *more):
        made = carillon("token", "new", "--name", name, "--file", self.file, *more)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.strip()

    def serve(self):
        return daemon.carillon_serve(self.data, "--tokens", self.file)

    def test_commands_show_the_token(self):
        token = self.token("ci", "--scope", "put", "--tube", "mail")
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        with self.serve() as server:
            at = f"127.0.0.1:{server.address[1]}"
            put = ["put", "--server", at, "--tube", "mail", "x"]
            refused = carillon(*put)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("a token is needed", refused.stderr)
            self.assertEqual(carillon(*put, CARILLON_TOKEN=token).stdout, "1\n")
            file = self.file + ".one"
            with open(file, "w", encoding="ascii") as out:
                out.write(token + "\n")
            self.assertEqual(carillon(*put, "--token-file", file).stdout, "2\n")
            wrong = carillon(*put, CARILLON_TOKEN="guess-it")
            self.assertIn("does not know the token", wrong.stderr)
            self.wait_for_line(server, "showed a wrong token")
            self.assertNotIn("guess-it", server.log() + wrong.stderr)
            self.assertNotIn(token, server.log())

    def test_sighup_reads_the_file_again_and_closes_whose_token_is_gone(self):
        gone, stays = (self.token(name, "--scope", "work,put") for name in ("gone", "stays"))
        with self.serve() as server:
            leaver, stayer = server.connect(), server.connect()
            for client, token in ((leaver, gone), (stayer, stays)):
                client.send(f"auth {token}\r\nreserve\r\n".encode())
            self.assertEqual(stayer.reply().line, b"AUTHENTICATED")
            with open(self.file, "a", encoding="ascii") as out:
                out.write("wrong\n")
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_line(server, "the tokens stay as they were")
            with open(self.file, encoding="ascii") as file:
                lines = file.read().splitlines()
            with open(self.file, "w", encoding="ascii") as out:
                out.write(lines[1] + "\n")
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_line(server, "closed 1 connections whose token is gone")
            self.assertEqual(leaver.reply().line, b"AUTHENTICATED")
            leaver.wait_for_end()
            late = server.connect()
            late.send(f"auth {stays}\r\nput 0 0 60 1\r\nx\r\n".encode())
            self.assertEqual(late.reply().line, b"AUTHENTICATED")
            self.assertEqual(late.reply().line, b"INSERTED 1")
            self.assertEqual(stayer.reply().line, b"RESERVED 1 1")
            self.assertEqual(server.terminate(), 0)

    def test_a_new_token_gets_a_line_and_a_name_of_its_own(self):
        self.token("ci", "--scope", "put")
        with open(self.file, "rb+") as file:
            file.truncate(os.path.getsize(self.file) - 1)
        self.token("ops", "--scope", "admin")
        with open(self.file, encoding="ascii") as file:
            self.assertEqual([line.split()[0] for line in file], ["ci", "ops"])
        before = os.path.getsize(self.file)
        again = carillon("token", "new", "--name", "ci", "--scope", "put", "--file", self.file)
        self.assertEqual(again.returncode, 1)
        self.assertIn('has a token "ci" already', again.stderr)
        self.assertEqual(again.stdout, "")
        self.assertEqual(os.path.getsize(self.file), before)

    def test_other_strangers_do_not_hide_a_wrong_token_in_the_log(self):
        self.token("ci", "--scope", "put")
        with self.serve() as server:
            server.connect().send(b"GET / HTTP/1.1\r\n\r\n")
            self.wait_for_line(server, "sent an HTTP request")
            server.connect().send(b"auth guess\r\n")
            self.wait_for_line(server, "showed a wrong token")

    def test_refuses_what_others_can_reach_and_a_file_that_others_can_read(self):
        port = daemon.free_port()
        started = carillon("serve", "--data", self.data, "--listen", f"0.0.0.0:{port}")
        self.assertEqual(started.returncode, 1)
        self.assertIn("--tokens FILE", started.stderr)
        self.assertIn("--allow-anonymous", started.stderr)
        started = carillon("beanstalkd", "-l", "0.0.0.0", "-p", str(port))
        self.assertIn("--allow-anonymous", started.stderr)
        self.token("ci", "--scope", "put")
        os.chmod(self.file, 0o644)
        started = carillon("serve", "--data", self.data, "--tokens", self.file)
        self.assertEqual(started.returncode, 1)
        self.assertIn("chmod 600", started.stderr)


if __name__ == "__main__":
    unittest.main()
