"""System tests of commands that start with descriptor 0, 1 or 2 closed.

A shell closes them with `>&-`, and some daemons close them for their children.
"""

import os
import signal
import subprocess
import unittest

from cli_case import CliCase, daemon

CLOSED_OUTPUT = "cannot write to standard output: it is closed"


class ClosedDescriptorsTest(CliCase):
    def run_closed(self, redirection, *arguments):
        """Runs carillon with a shell's redirection such as `>&-`.

        Returns (exit code, standard output, standard error).
        """
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" "$@" {redirection}', daemon.carillon_path(), *arguments],
            input=b"from standard input",
            capture_output=True,
            env=self.environment(),
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def jobs_ever(self):
        return self.stats()["total-jobs"]

    def test_a_body_does_not_reach_the_server_and_its_job_is_kept(self):
        job_id = self.put(body=b"put 0 0 60 3\r\nbad\r\n")
        before = self.jobs_ever()
        for form in ([], ["--json"]):
            self.assertEqual(
                self.run_closed(">&-", "reserve", "--delete", "--tube", self.tube, *form),
                (1, "", f"carillon reserve: {CLOSED_OUTPUT}\n"),
            )
            self.wait_until(
                lambda: self.job(job_id)["state"] == "ready", "the job goes back to ready"
            )
        self.assertEqual(self.jobs_ever(), before)

    def test_an_id_that_cannot_be_printed_is_reported(self):
        code, out, errors = self.run_closed(">&-", "put", "--tube", self.tube, "hello")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(
            errors,
            rf"^carillon put: job \d+ was put, but its id was not printed: {CLOSED_OUTPUT}\n$",
        )
        self.assertEqual(self.carillon("reserve", "--tube", self.tube, "--delete"), "hello")

    def test_help_that_cannot_be_printed(self):
        self.assertEqual(
            self.run_closed(">&-", "put", "--help"), (1, "", f"carillon put: {CLOSED_OUTPUT}\n")
        )

    def test_a_closed_standard_input_is_not_an_empty_body(self):
        before = self.jobs_ever()
        line = "carillon put: cannot read standard input: it is closed\n"
        self.assertEqual(self.run_closed("<&-", "put"), (1, "", line))
        self.assertEqual(self.jobs_ever(), before)

    def test_messages_do_not_reach_the_server(self):
        self.put("hello")
        self.assertEqual(
            self.run_closed("2>&-", "reserve", "--tube", self.tube, "--delete"), (0, "hello", "")
        )
        before = self.stats()["cmd-stats"]
        self.assertEqual(
            self.run_closed("<&- >&- 2>&-", "reserve", "--tube", self.tube, "--timeout", "0")[0], 1
        )
        self.assertEqual(self.stats()["cmd-stats"], before + 1)

    def test_a_workers_command_gets_the_body_and_no_socket(self):
        self.put("hello")
        seen = self.directory / "seen"
        script = f"cat > {seen}; echo to nobody; ls -l /proc/$$/fd > {seen}.fd; exit 0"
        code, _, _ = self.run_closed(
            "<&- >&- 2>&-", "work", "--tube", self.tube, "--once", "--", "sh", "-c", script
        )
        self.assertEqual(code, 0)
        self.assertEqual(seen.read_text(), "hello")
        self.assertNotIn("socket:", (self.directory / "seen.fd").read_text())

    def test_a_server_with_all_three_closed(self):
        for name, arguments in (
            ("serve", ["serve", "--data"]),
            ("beanstalkd", ["beanstalkd", "-V", "-b"]),
        ):
            with self.subTest(name):
                self.serve_closed(arguments, self.directory / name)

    def serve_closed(self, arguments, data):
        port = daemon.free_port()
        where = (
            ["--listen", f"{daemon.HOST}:{port}"] if arguments[0] == "serve" else ["-p", str(port)]
        )
        script = 'exec "$0" "$@" <&- >&- 2>&-'
        serving = subprocess.Popen(
            ["sh", "-c", script, daemon.carillon_path(), *arguments, str(data), *where]
        )
        try:
            there = ("--server", f"{daemon.HOST}:{port}")
            self.wait_until(
                lambda: self.run_carillon("stats", *there).returncode == 0, "it listens"
            )
            self.assertEqual(
                [os.readlink(f"/proc/{serving.pid}/fd/{number}") for number in range(3)],
                ["/dev/null"] * 3,
            )
            self.assertEqual(self.carillon("put", *there, "x"), "1\n")
            serving.send_signal(signal.SIGTERM)
            self.assertEqual(serving.wait(30), 0)
        finally:
            serving.kill()
            serving.wait()
        for file in data.iterdir():
            self.assertNotIn(b"listening on", file.read_bytes(), file.name)


if __name__ == "__main__":
    unittest.main()
