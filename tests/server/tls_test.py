"""A real server that speaks TLS: to whom, how it fails, and what a storm of handshakes does.
Row Q19 of the product's table."""

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

import daemon
from certificates import Authority
from daemon import run_carillon as run
from tls_case import TlsCase, TlsConnection, wait_for_end
from wire import Connection

HELLO = bytes.fromhex("16030100c8010000c40303")  # the beginning of a TLS ClientHello


class SpeakingTls(TlsCase):
    def test_both_protocols_and_both_versions(self):
        with self.serve("--http", "127.0.0.1:0") as server:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                client = self.connect(server, minimum_version=version, maximum_version=version)
                self.assertEqual(client.socket.version(), version.name.replace("_", "."))
                self.assertEqual(client.call(b"put 0 0 60 5", b"hello").word, b"INSERTED")
                self.assertEqual(client.call(b"reserve").body, b"hello")
            web = http.client.HTTPSConnection(
                "127.0.0.1", server.http_port(), timeout=20, context=self.context()
            )
            self.addCleanup(web.close)
            for _ in range(3):  # by one connection
                web.request("POST", "/v1/tubes/mail/jobs", b"hello")
                answer = web.getresponse()
                self.assertEqual(answer.status, 201)
                answer.read()
            self.assertEqual(server.terminate(), 0)

    def test_old_versions_are_refused(self):
        with self.serve() as server:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                TlsConnection(server.address, context)
            self.wait_for_line(server, "failed to begin with TLS")
            self.assertEqual(self.connect(server).call(b"use a").line, b"USING a")

    def test_much_in_both_directions(self):
        body = os.urandom(1 << 20)
        with self.serve("--max-job-size", "1M") as server:
            client = self.connect(server)
            for _ in range(8):
                self.assertEqual(client.call(b"put 0 0 60 %d" % len(body), body).word, b"INSERTED")
            # Nobody reads for a while: the socket is full in the middle of a record.
            client.send(b"".join(b"peek %d\r\n" % (1 + n % 8) for n in range(24)))
            other = self.connect(server)
            self.assertEqual(other.call(b"use a").line, b"USING a")
            for _ in range(24):
                self.assertEqual(client.reply().body, body)
            client.send(b"use b\r\n" * 10_000)
            for _ in range(10_000):
                self.assertEqual(client.reply().line, b"USING b")

    def test_a_unix_socket_stays_as_it_is(self):
        path = os.path.join(self.folder, "socket")
        with self.serve("--listen", f"unix:{path}"):
            with Connection(path) as client:
                self.assertEqual(client.call(b"use a").line, b"USING a")

    def test_the_last_replies_arrive_and_the_end_is_told(self):
        with self.serve() as server:
            client = self.connect(server)
            client.send(b"put 0 0 60 1\r\nx\r\nquit\r\n")
            self.assertEqual(client.reply().line, b"INSERTED 1")
            # Without a goodbye of TLS this raises ssl.SSLEOFError.
            client.socket.suppress_ragged_eofs = False
            self.assertEqual(client.socket.recv(1), b"")

    def test_clients_show_certificates_if_they_are_asked(self):
        others = Authority(self.folder, "others")
        certificate, key = others.sign("client")
        with self.serve("--tls-client-ca", others.file) as server:
            context = self.context()
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                # With TLS 1.3 the client learns of it when it reads.
                TlsConnection(server.address, context).socket.recv(1)
            context.load_cert_chain(certificate, key)
            with TlsConnection(server.address, context) as client:
                self.assertEqual(client.call(b"use a").line, b"USING a")
            self.wait_for_line(server, "peer did not return a certificate")
            at = ["put", "--server", f"127.0.0.1:{server.port}", "hello"]
            trust = {"CARILLON_TLS_CA": self.authority.file}
            own = {"CARILLON_TLS_CERT": certificate, "CARILLON_TLS_KEY": key}
            self.assertEqual(run(*at, **trust, **own).stdout, "1\n")
            self.assertIn("it asks for a certificate of the client", run(*at, **trust).stderr)
            half = run(*at, **trust, CARILLON_TLS_KEY=key)
            self.assertIn("CARILLON_TLS_CERT and CARILLON_TLS_KEY go together", half.stderr)
            strange = {"CARILLON_TLS_CERT": certificate, "CARILLON_TLS_KEY": self.key}
            self.assertIn("key values mismatch", run(*at, **trust, **strange).stderr)


class Strangers(TlsCase):
    def test_plain_text_to_a_port_with_tls_is_told_so(self):
        with self.serve("--http", "127.0.0.1:0") as server:
            with socket.create_connection(server.address) as plain:
                plain.sendall(b"put 0 0 60 1\r\nx\r\n")
                self.assertTrue(wait_for_end(plain).startswith(b"FORBIDDEN this port speaks TLS"))
            self.wait_for_line(server, "speaks no TLS to a port that does")
            with socket.create_connection(("127.0.0.1", server.http_port())) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = wait_for_end(plain)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
                self.assertTrue(answer.endswith(b"write https, not http.\n"), answer)
            stats = self.connect(server).call(b"stats").body
            self.assertIn(b"connections-closed-foreign: 2", stats)
            self.assertIn(b"cmd-put: 0", stats)

    def test_a_plain_health_check_of_this_machine_is_no_stranger(self):
        """The health check of the image asks like this, every 10 seconds."""
        with self.serve("--http", "127.0.0.1:0") as server:
            with socket.create_connection(("127.0.0.1", server.http_port())) as plain:
                plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertTrue(wait_for_end(plain).endswith(b"write https, not http.\n"))
            stats = self.connect(server).call(b"stats").body
            self.assertIn(b"connections-closed-foreign: 0", stats)

    def test_tls_to_a_port_without_it_is_closed_at_once(self):
        with daemon.carillon_serve(self.data, "--http", "127.0.0.1:0") as server:
            for port in (server.port, server.http_port()):
                with socket.create_connection(("127.0.0.1", port)) as client:
                    client.sendall(HELLO)
                    self.assertEqual(wait_for_end(client), b"")
            self.wait_for_line(server, "speaks TLS to a port without it")

    def test_a_handshake_has_a_time_out(self):
        with self.serve("--stall-timeout", "1s") as server:
            silent = socket.create_connection(server.address)
            half = socket.create_connection(server.address)
            drips = socket.create_connection(server.address)
            begun = time.monotonic()
            half.sendall(HELLO)
            ended = threading.Event()

            def drip():
                with contextlib.suppress(OSError):
                    for byte in HELLO + bytes(1_000):
                        drips.sendall(bytes([byte]))
                        if ended.wait(0.1):
                            return

            dripping = threading.Thread(target=drip)
            dripping.start()
            for client in (silent, half, drips):
                wait_for_end(client)
                client.close()
            ended.set()
            dripping.join()
            self.assertGreater(time.monotonic() - begun, 0.9)
            client = self.connect(server)
            self.assertEqual(client.call(b"use a").line, b"USING a")

    def test_a_client_that_leaves_in_the_handshake_is_forgotten(self):
        with self.serve() as server:
            for size in (0, 1, 5, len(HELLO)):
                with socket.create_connection(server.address) as client:
                    client.sendall(HELLO[:size])
            watch = self.connect(server)
            alone = b"\ncurrent-connections: 1\n"
            self.wait_until(lambda: alone in watch.call(b"stats").body)


class Storm(TlsCase):
    def test_a_storm_of_handshakes_hurts_nobody(self):
        certificate, key = self.authority.sign("slow", rsa=True)
        with self.serve(certificate=certificate, key=key) as server:
            client = self.connect(server)
            hello = self._hello()
            storm = []
            self.addCleanup(lambda: [one.close() for one in storm])
            for _ in range(400):
                one = socket.create_connection(server.address)
                one.sendall(hello)
                storm.append(one)
            waits = []
            while len(waits) < 50:
                begun = time.monotonic()
                self.assertEqual(client.call(b"put 0 0 60 1", b"x").word, b"INSERTED")
                waits.append(time.monotonic() - begun)
            # 400 signatures with RSA take half a second and more of one processor.
            self.assertLess(sorted(waits)[len(waits) // 2], 0.1)
            for one in storm:  # each is answered
                one.settimeout(20)
                self.assertEqual(one.recv(1), b"\x16")

    def _hello(self):
        """The first flight of a real client."""
        outgoing = ssl.MemoryBIO()
        client = self.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()


class Files(TlsCase):
    def test_sighup_reads_the_certificate_again(self):
        files = [os.path.join(self.folder, name) for name in ("crt", "key")]
        for old, new in zip((self.certificate, self.key), files):
            shutil.copy(old, new)
        others = Authority(self.folder, "others")
        renewed = others.sign("renewed")
        with self.serve(certificate=files[0], key=files[1]) as server:
            before = self.connect(server)
            shutil.copy(renewed[1], files[1])  # it does not belong to the old certificate
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_line(server, "the certificate stays as it was")
            self.assertEqual(self.connect(server).call(b"use a").line, b"USING a")
            shutil.copy(renewed[0], files[0])
            holds = server.log().count("holds until")
            server.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda: server.log().count("holds until") > holds, server.log)
            with self.assertRaises(ssl.SSLCertVerificationError):
                TlsConnection(server.address, self.context())
            with TlsConnection(server.address, self.context(others)) as client:
                self.assertEqual(client.call(b"use a").line, b"USING a")
            self.assertEqual(before.call(b"use b").line, b"USING b")

    def start(self, *words):
        started = run("serve", "--data", self.data, "--listen", "127.0.0.1:0", *words)
        self.assertNotEqual(started.returncode, 0)
        return started.stderr

    def test_says_which_file_is_wrong_and_why(self):
        def why(certificate=self.certificate, key=self.key, *more):
            return self.start("--tls-cert", certificate, "--tls-key", key, *more)

        nothing = os.path.join(self.folder, "nothing")
        self.assertIn(f"{nothing}: No such file", why(certificate=nothing))
        self.assertIn(f"{nothing}: No such file", why(key=nothing))
        self.assertIn(f"{self.folder}: it is not a file", why(key=self.folder))
        self.assertIn(f"{self.key}: it has no certificate", why(certificate=self.key))
        self.assertIn(f"{self.certificate}: it has no private key", why(key=self.certificate))
        other = self.authority.sign("other")[1]
        self.assertIn(
            f"{other}: the key does not belong to the certificate in {self.certificate}",
            why(key=other),
        )
        locked = os.path.join(self.folder, "locked")
        subprocess.run(
            ["openssl", "pkey", "-in", self.key, "-aes256", "-passout", "pass:x", "-out", locked],
            check=True,
        )
        self.assertIn(f"{locked}: the key has a password", why(key=locked))
        self.assertIn(
            f"{nothing}: No such file",
            why(self.certificate, self.key, "--tls-client-ca", nothing),
        )
        self.assertIn("--tls-cert needs --tls-key", self.start("--tls-cert", self.certificate))
        self.assertIn("needs --tls-cert", self.start("--tls-client-ca", self.certificate))

    def test_warns_of_what_clients_would_refuse_and_of_a_key_that_all_may_read(self):
        ended = self.authority.sign("ended", days=-1)
        os.chmod(ended[1], 0o644)
        with self.serve(certificate=ended[0], key=ended[1]) as server:
            self.wait_for_line(server, "has ended: clients refuse it")
            self.wait_for_line(server, "every user may use the key")

    def test_check_reads_the_files(self):
        def look(*words):
            return run(
                "check", "--data", self.data, "--server", "127.0.0.1:1", "--http", "none", *words
            ).stdout

        good = look("--tls-cert", self.certificate, "--tls-key", self.key)
        self.assertIn("fits its key, and is good for 29 days", " ".join(good.split()))
        soon = self.authority.sign("soon", days=3)
        os.chmod(soon[1], 0o644)
        found = " ".join(look("--tls-cert", soon[0], "--tls-key", soon[1]).split())
        self.assertIn("is good for 2 days more", found)
        self.assertIn("every user may use the key", found)
        ended = self.authority.sign("over", days=-1)
        found = " ".join(look("--tls-cert", ended[0], "--tls-key", ended[1]).split())
        self.assertIn("has ended", found)
        found = " ".join(look("--tls-cert", ended[0], "--tls-key", self.key).split())
        self.assertIn("does not belong to the certificate", found)
        tokens = os.path.join(self.folder, "tokens")
        run("token", "new", "--name", "a", "--scope", "put", "--file", tokens)
        self.assertIn(f"1 in {tokens}", " ".join(look("--tokens", tokens).split()))
        os.chmod(tokens, 0o644)
        self.assertIn("chmod 600", " ".join(look("--tokens", tokens).split()))

    def test_refuses_to_be_reached_without_tls_unless_it_is_told_to(self):
        address = f"0.0.0.0:{daemon.free_port()}"
        for more in (["--allow-anonymous"], ["--tokens", "/nowhere"]):
            started = run("serve", "--data", self.data, "--listen", address, *more)
            self.assertEqual(started.returncode, 1)
            self.assertIn("--tls-cert FILE", started.stderr)
            self.assertIn("--allow-plaintext", started.stderr)
        port = address.split(":")[1]
        started = run("beanstalkd", "-l", "0.0.0.0", "-p", port, "--allow-anonymous")
        self.assertIn("--allow-plaintext", started.stderr)

    def test_beanstalkd_has_the_same_flags(self):
        files = ["--tls-cert", self.certificate, "--tls-key", self.key]
        started = run("beanstalkd", "-p", "0", "--tls-client-ca", self.authority.file)
        self.assertEqual(started.returncode, 5)
        self.assertIn("needs --tls-cert and --tls-key", started.stderr)
        started = run("beanstalkd", "-p", "0", *files, "--tls-client-ca", self.key)
        self.assertEqual(started.returncode, 1)
        self.assertIn(f"{self.key}: it has no certificate in PEM", started.stderr)


class Commands(TlsCase):
    def test_commands_check_the_certificate(self):
        with self.serve("--http", "127.0.0.1:0") as server:
            at = ["--server", f"127.0.0.1:{server.port}"]
            trust = ["--tls-ca", self.authority.file]
            self.assertEqual(run("put", *at, *trust, "hello").stdout, "1\n")
            variables = {"CARILLON_TLS_CA": self.authority.file}
            self.assertEqual(run("put", *at, "hello", **variables).stdout, "2\n")
            named = ["--server", f"localhost:{server.port}"]
            self.assertEqual(run("reserve", *named, *trust, "--delete").stdout, "hello")
            for words in (["--tls"], []):
                refused = run("put", *at, *words, "hello", CARILLON_TLS="1")
                self.assertEqual(refused.returncode, 1)
                self.assertIn("its certificate is refused: ", refused.stderr)
                self.assertIn("--tls-ca", refused.stderr)
            plain = run("put", *at, "hello")
            self.assertEqual(plain.returncode, 1)
            self.assertIn("this port speaks TLS", plain.stderr)
            missing = run("put", *at, "--tls-ca", "/nowhere", "hello")
            self.assertIn("cannot read /nowhere", missing.stderr)
            http_address = f"127.0.0.1:{server.http_port()}"
            found = run("check", "--data", self.data, *at, *trust, "--http", http_address).stdout
            self.assertIn(f"answers at {http_address}", " ".join(found.split()))

    def test_commands_that_stay_connected_check_it_too(self):
        tokens = os.path.join(self.folder, "tokens")
        token = run("token", "new", "--name", "ci", "--scope", "admin", "--file", tokens).stdout
        with self.serve("--tokens", tokens) as server:
            at = ["--server", f"127.0.0.1:{server.port}"]
            trust = {"CARILLON_TLS_CA": self.authority.file}
            show = {"CARILLON_TOKEN": token.strip()}
            work = ["work", *at, "--until-empty", "--", "cat"]
            top = ["top", *at, "--once", "--json"]
            self.assertEqual(run("put", *at, "hello", **trust, **show).stdout, "1\n")
            seen = json.loads(run(*top, **trust, **show).stdout)
            self.assertEqual(seen["jobs"]["ready"], 1)
            for words in (work, top):
                stranger = run(*words, CARILLON_TLS="1", **show)
                self.assertIn("its certificate is refused", stranger.stderr)
                nobody = run(*words, **trust)
                self.assertIn("a token is needed", nobody.stderr)
                for refused in (stranger, nobody):
                    self.assertEqual((refused.returncode, refused.stdout), (1, ""))
            done = run(*work, **trust, **show)
            self.assertEqual((done.returncode, done.stdout), (0, "hello"))
            self.assertEqual(json.loads(run(*top, **trust, **show).stdout)["jobs"]["ready"], 0)

    def test_the_certificate_must_be_for_the_server(self):
        other = self.authority.sign("elsewhere", names="DNS:example.org")
        with self.serve(certificate=other[0], key=other[1]) as server:
            for host in ("127.0.0.1", "localhost"):
                words = ["--server", f"{host}:{server.port}", "--tls-ca", self.authority.file]
                refused = run("put", *words, "hello")
                self.assertEqual(refused.returncode, 1)
                self.assertIn("mismatch", refused.stderr)

    def test_what_the_server_prints_to_try_works(self):
        tokens = os.path.join(self.folder, "tokens")
        token = run("token", "new", "--name", "a", "--scope", "admin", "--file", tokens).stdout
        file = os.path.join(self.folder, "token")
        with open(file, "w", encoding="ascii") as out:
            out.write(token)
        with self.serve("--tokens", tokens, "--http", "127.0.0.1:0") as server:
            self.wait_for_line(server, "Ctrl-C stops it")
            lines = server.log().replace("NAME", "localhost").replace("FILE", file).splitlines()
            put = next(shlex.split(line, comments=True) for line in lines if " put " in line)
            done = run(*put[1:], CARILLON_TLS_CA=self.authority.file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("| nc ", server.log())
            self.assertIn("https://NAME:", server.log())

    def test_a_server_without_tls_is_named(self):
        with daemon.carillon_serve(self.data) as server:
            words = ["--server", f"127.0.0.1:{server.port}", "--tls-ca", self.authority.file]
            refused = run("put", *words, "hello")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("lost the connection", refused.stderr)


if __name__ == "__main__":
    unittest.main()
