"""Starting and stopping: a server that cannot start says why in one line; signals; beanstalkd's
flags."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

import daemon
import side_by_side
from daemon import HOST
from wire import Connection, said


def _run(*arguments: str, program: str = ""):
    """Runs carillon to its end; returns (exit code, standard output, standard error)."""
    done = subprocess.run(
        [program or daemon.carillon_path(), *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


class RefusalTest(daemon.DataCase):
    def refuses(self, naming: str, *arguments: str) -> None:
        """The program fails with exactly one line on standard error, which names the culprit."""
        code, _, errors = _run(*arguments)
        self.assertNotEqual(code, 0)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(naming, errors)

    def test_a_taken_port(self):
        with socket.socket() as taken:
            taken.bind((HOST, 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.refuses(port, "serve", "--data", self.data, "--listen", f"{HOST}:{port}")
            self.refuses(port, "beanstalkd", "-l", HOST, "-p", port)

    def test_a_taken_port_for_http_beside_it(self):
        port = daemon.free_port()
        with socket.socket() as taken:
            taken.bind((HOST, port + daemon.HTTP_BESIDE))
            taken.listen()
            listen = ("serve", "--data", self.data, "--listen", f"{HOST}:{port}")
            self.refuses(f"{port + daemon.HTTP_BESIDE}: another program", *listen)
            self.refuses("--http names other addresses, --http none does without it", *listen)
            with daemon.carillon_serve(self.data, "--http", "none") as server:
                server.connect().put(b"x")
                self.assertNotIn("(HTTP", server.log())

    def test_http_is_answered_beside_each_address(self):
        with daemon.carillon_serve(self.data) as server:
            self.assertEqual(server.http_port(), server.port + daemon.HTTP_BESIDE)
        both = ("--listen", f"{HOST}:0", "--http", "none", "--http", f"{HOST}:0")
        self.refuses("--http none was given with other addresses", "serve", *both)
        self.refuses("there is no port 65580", "serve", "--listen", f"{HOST}:65500")

    def test_sockets_that_systemd_passes(self):
        """One that is called http answers HTTP, and then --http is ignored."""
        pass_on = (
            "import fcntl, os, sys\n"
            "fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 20) for fd in sys.argv[1:3]]\n"
            "for place, fd in enumerate(fds): os.dup2(fd, 3 + place)\n"
            "names = {'LISTEN_FDS': '2', 'LISTEN_FDNAMES': 'carillon.socket:http'}\n"
            "os.environ.update(names, LISTEN_PID=str(os.getpid()))\n"
            "os.execv(sys.argv[3], sys.argv[3:])\n"
        )
        with socket.create_server((HOST, 0)) as line, socket.create_server((HOST, 0)) as http:
            fds = (line.fileno(), http.fileno())
            serve = (daemon.carillon_path(), "serve", "--data", self.data, "--http", "192.0.2.1:1")
            with subprocess.Popen(
                [sys.executable, "-c", pass_on, *map(str, fds), *serve],
                pass_fds=fds,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                try:
                    with Connection(line.getsockname()) as client:
                        client.put(b"x")
                    with socket.create_connection(http.getsockname()) as client:
                        client.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
                        self.assertIn(b"200 OK", client.recv(100))
                finally:
                    process.terminate()

    def test_an_address_of_another_machine(self):
        self.refuses("192.0.2.1", "serve", "--data", self.data, "--listen", "192.0.2.1:11300")

    def test_malformed_addresses(self):
        for address, culprit in (
            ("no.such.host.invalid:1", "no.such.host"),
            (f"{HOST}:x", "x"),
            (f"{HOST}:65536", "65536"),
        ):
            self.refuses(culprit, "serve", "--data", self.data, "--listen", address)

    def test_a_data_directory_locked_by_another_process(self):
        with daemon.carillon_serve(self.data) as first:
            job = first.connect().put(b"x")
            self.refuses(
                self.data, "serve", "--data", self.data, "--listen", f"{HOST}:{daemon.free_port()}"
            )
            self.refuses(
                self.data, "beanstalkd", "-b", self.data, "-l", HOST, "-p", str(daemon.free_port())
            )
            # The first server is not disturbed.
            self.assertEqual(first.connect().call(b"peek %d" % job).body, b"x")

    def test_a_lock_does_not_outlive_its_process(self):
        with daemon.carillon_serve(self.data) as first:
            first.kill()
        with daemon.carillon_serve(self.data) as second:
            second.connect().put(b"x")

    def test_an_impossible_data_directory(self):
        file = os.path.join(self.folder, "file")
        with open(file, "w", encoding="ascii") as f:
            f.write("not a directory")
        for path in (file, os.path.join(file, "data"), "/proc/carillon"):
            self.refuses(path, "serve", "--data", path, "--listen", f"{HOST}:{daemon.free_port()}")

    def test_unknown_flags_and_commands(self):
        self.refuses("--no-such-flag", "serve", "--no-such-flag")
        self.refuses("unknown flag: -Q ", "beanstalkd", "-Q")
        self.refuses("unknown flag: -Q ", "beanstalkd", "-FQ")
        self.refuses("unknown flag: --sync ", "beanstalkd", "--sync", "always")
        self.refuses("no-such-command", "no-such-command")

    def test_flags_without_a_good_value(self):
        self.refuses("-z", "beanstalkd", "-z")
        self.refuses("12x", "beanstalkd", "-z", "12x")
        self.refuses("70000", "beanstalkd", "-p", "70000")
        self.refuses("--listen", "serve", "--listen")

    def test_serves_in_4_gib_of_addresses(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, hard))  # the server inherits it
        try:
            with daemon.carillon_serve(self.data) as server:
                server.connect().put(b"x")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def test_a_port_in_use_leaves_no_data_behind(self):
        with socket.socket() as taken:
            taken.bind((HOST, 0))
            taken.listen()
            _run("serve", "--data", self.data, "--listen", f"{HOST}:{taken.getsockname()[1]}")
        with daemon.carillon_serve(self.data) as server:  # there is no lock either
            server.connect().put(b"x")


class DrainingTest(daemon.DataCase):
    def test_sigusr1_drains_for_good(self):
        with daemon.carillon_beanstalkd() as server:
            c = server.connect()
            job = c.put(b"x")
            server.process.send_signal(signal.SIGUSR1)
            self.wait_until(lambda: c.stats()["draining"] == "true")
            # The body is read before the answer, whatever is in it.
            c.send(b"put 0 0 60 14\r\nlist-tube-used\r\nlist-tube-used\r\n")
            self.assertEqual([c.reply(), c.reply()], [said(b"DRAINING"), said(b"USING default")])
            self.assertEqual(c.call(b"put 0 0 60 70000", b"z" * 70000), said(b"JOB_TOO_BIG"))
            c.send(b"put 0 0 60 2\r\nabcd")
            self.assertEqual(c.reply(), said(b"EXPECTED_CRLF"))
            self.assertEqual(server.connect().call(b"put 0 0 60 1", b"x"), said(b"DRAINING"))
            # Everything else goes on.
            self.assertEqual(c.call(b"reserve").number(), job)
            self.assertEqual(c.call(b"release %d 0 0" % job), said(b"RELEASED"))
            self.assertEqual(c.call(b"delete %d" % job), said(b"DELETED"))
            server.process.send_signal(signal.SIGUSR1)
            self.assertEqual(c.call(b"put 0 0 60 1", b"x"), said(b"DRAINING"))
            self.assertEqual(c.stats()["total-jobs"], "1")


class LogTest(daemon.DataCase):
    def test_each_line_is_an_object_on_request(self):
        with daemon.carillon_serve(self.data, "--log-format", "json") as server:
            server.connect().put(b"x")
            self.assertEqual(server.terminate(), 0)
            lines = [json.loads(line) for line in server.log().splitlines()]
        for line in lines:
            self.assertEqual(list(line), ["time", "level", "message"])
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(lines[-1]["message"], "stopped")
        self.assertEqual(lines[-1]["level"], "info")

    def test_there_is_no_other_form(self):
        code, _, errors = _run("serve", "--log-format", "xml")
        self.assertEqual(code, 2)
        self.assertIn('"xml": write text or json', errors)


class TerminationTest(daemon.DataCase):
    def test_sigterm_ends_with_exit_code_0(self):
        with daemon.carillon_beanstalkd() as server:
            waiting = server.connect()
            waiting.send(b"reserve\r\n")
            self.assertEqual(server.terminate(), 0)
            waiting.wait_for_end()
            with self.assertRaises(OSError):
                Connection(server.address)

    def test_sighup_stops_in_order_even_if_it_comes_twice(self):
        """When a terminal closes, the kernel sends SIGHUP, and the shell sends it once more. Other
        programs send it after SIGTERM."""
        for first, name in ((signal.SIGHUP, "SIGHUP"), (signal.SIGTERM, "SIGTERM")):
            with self.subTest(name), daemon.carillon_serve(self.data) as server:
                job = server.connect().put(b"x" * 60_000)
                # A client that takes none of its replies prolongs the stop, so that the second
                # signal comes during it.
                server.connect().send(b"peek %d\r\n" % job * 1000)
                server.process.send_signal(first)
                self.wait_for_line(server, f"stopping ({name})")
                server.process.send_signal(signal.SIGHUP)
                self.assertEqual(server.process.wait(20), 0)
                self.assertTrue(server.log().endswith("stopped\n"), server.log())

    def test_sighup_that_was_ignored_at_the_start_stays_ignored(self):
        ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", daemon.carillon_path()]
        nohup = lambda port: [*ignoring, *f"beanstalkd -V -p {port}".split()]
        with daemon.Server(nohup) as server:
            server.process.send_signal(signal.SIGHUP)
            c = server.connect()
            job = c.put(b"x")
            self.assertEqual(c.call(b"peek %d" % job).body, b"x")
            self.assertEqual(server.terminate(), 0)
            self.assertIn("stopping (SIGTERM)", server.log())

    def test_jobs_acknowledged_before_sigterm_are_kept(self):
        with daemon.carillon_serve(self.data) as server:
            c = server.connect()
            c.send(b"".join(b"put 0 0 60 4\r\n%04d\r\n" % n for n in range(5000)))
            acknowledged = {c.reply().number(): n for n in range(100)}
            self.assertEqual(server.terminate(), 0)
            # Jobs that were answered later, before the connection closed, count as well.
            rest = [line for line in c.wait_for_end().split(b"\r\n") if line]
            acknowledged.update({int(line.split(b" ")[1]): 100 + n for n, line in enumerate(rest)})
        with daemon.carillon_serve(self.data) as server:
            c = server.connect()
            for job, n in acknowledged.items():
                self.assertEqual(c.call(b"peek %d" % job).body, b"%04d" % n)

    def test_sigterm_as_soon_as_it_listens(self):
        for _ in range(10):
            with daemon.carillon_serve(self.data) as server:
                self.assertEqual(server.terminate(), 0)

    def test_sigusr1_as_soon_as_it_listens(self):
        for _ in range(10):
            with daemon.carillon_serve(self.data) as server:
                server.process.send_signal(signal.SIGUSR1)
                # The loop may meet the connection before the signal, and the signal soon after.
                client = server.connect()
                self.wait_until(lambda: client.stats()["draining"] == "true")

    def test_sigterm_while_nothing_happens(self):
        with daemon.carillon_serve(self.data) as server:
            self.assertEqual(server.terminate(), 0)


class BeanstalkdFlagsTest(daemon.DataCase):
    def test_version_and_help(self):
        code, out, _ = _run("beanstalkd", "-v")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\d+\.\d+")
        code, out, errors = _run("beanstalkd", "-h")
        self.assertEqual(code, 0)
        for flag in ("-b", "-f", "-F", "-l", "-p", "-s", "-u", "-V", "-v", "-z"):
            self.assertIn(flag, out + errors)

    def test_flags_with_their_values_attached(self):
        flags = lambda port: f"beanstalkd -l{HOST} -p{port} -z100 -VVV".split()
        with daemon.Server(lambda port: [daemon.carillon_path(), *flags(port)]) as server:
            self.assertEqual(server.connect().stats()["max-job-size"], "100")

    def test_z_is_64_mebibytes_at_most(self):
        for size, most in (("1000000", "1000000"), ("2000000000", "67108864"), ("0", "0")):
            with daemon.carillon_beanstalkd("-z", size) as server:
                self.assertEqual(server.connect().stats()["max-job-size"], most)

    def test_flags_without_an_effect(self):
        with daemon.carillon_beanstalkd("-c", "-n", "-s", "10485760"):
            pass

    def test_b_keeps_the_jobs(self):
        for flags in ((), ("-f", "0"), ("-f0",), ("-f", "50"), ("-F",)):
            with daemon.carillon_beanstalkd("-b", self.data, *flags) as server:
                job = server.connect().put(b"kept")
                self.assertEqual(server.terminate(), 0)
            with daemon.carillon_beanstalkd("-b", self.data, *flags) as server:
                self.assertEqual(server.connect().call(b"peek %d" % job).body, b"kept")

    def test_without_b_nothing_is_kept(self):
        flags = lambda port: f"beanstalkd -l {HOST} -p {port}".split()
        server = daemon.Server(lambda port: [daemon.carillon_path(), *flags(port)], cwd=self.folder)
        with server:
            server.connect().put(b"x")
            self.assertEqual(server.terminate(), 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_unix_socket(self):
        path = os.path.join(self.folder, "socket")
        process = subprocess.Popen(
            [daemon.carillon_path(), "beanstalkd", "-l", f"unix:{path}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with _connect_when_listening(path) as c:
                job = c.put(b"x")
                self.assertEqual(c.call(b"reserve").number(), job)
        finally:
            process.terminate()
            self.assertEqual(process.wait(20), 0)

    def test_called_by_the_name_beanstalkd(self):
        name = os.path.join(self.folder, "beanstalkd")
        os.symlink(os.path.realpath(daemon.carillon_path()), name)
        with daemon.Server(lambda port: [name, "-l", HOST, "-p", str(port), "-z", "77"]) as server:
            self.assertEqual(server.connect().stats()["max-job-size"], "77")

    def test_it_listens_within_a_tenth_of_a_second(self):
        """The test suites of clients wait no longer. The best of ten starts counts, because other
        tests run on the same machine."""
        best = min(self._seconds_to_listen() for _ in range(10))
        self.assertLess(best, 0.1)

    @staticmethod
    def _seconds_to_listen() -> float:
        port = daemon.free_port()
        started = time.monotonic()
        process = subprocess.Popen(
            [daemon.carillon_path(), "beanstalkd", "-l", HOST, "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _connect_when_listening((HOST, port)).close()
            return time.monotonic() - started
        finally:
            process.terminate()
            process.wait(20)


def _connect_when_listening(address) -> Connection:
    deadline = time.monotonic() + 20
    while True:
        try:
            return Connection(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


if __name__ == "__main__":
    side_by_side.main()
