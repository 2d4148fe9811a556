"""Where jobs are pushed to, and where not: addresses that are not public, and TLS."""

import os
import shutil
import ssl
import subprocess
import tempfile
import unittest

from push_case import PushCase
from receiver import always, answer


class GuardTest(PushCase):
    options = ()

    def assert_refused(self, receiver, host):
        wanted = {"url": f"http://{host}:{receiver.port}/hook", "tube": "t"}
        status, problem = self.ask("PUT", "/v1/endpoints/e", wanted)
        self.assertEqual(status, 400, problem)
        (error,) = problem["errors"]
        self.assertEqual(error["pointer"], "/url")
        self.assertIn(f"{host.strip('[]')} is not public, and not allowed", error["detail"])

    def test_an_address_that_is_not_public_is_refused_however_it_is_written(self):
        receiver = self.receive(always(answer(200)))
        for host in (
            "127.0.0.1",
            "127.0.0.2",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::1]",
            "169.254.169.254",
            "10.0.0.1",
            "[fd00::1]",
            "[fe80::1]",
        ):
            with self.subTest(host):
                self.assert_refused(receiver, host)
        # What a look-up would take for an address, and a browser, is written in one way only.
        for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "127.0.0.1."):
            with self.subTest(host):
                wanted = {"url": f"http://{host}:{receiver.port}/hook", "tube": "t"}
                status, problem = self.ask("PUT", "/v1/endpoints/e", wanted)
                self.assertEqual(status, 400, problem)
                self.assertIn("write it as 127.0.0.1", problem["errors"][0]["detail"])
        self.endpoint(receiver, host="localhost")
        error = self.ask("POST", "/v1/endpoints/e:test")[1]["error"]
        self.assertIn("is not public, and not allowed", error)
        self.assertIn("not public", self.error_of(self.put()))
        self.assertEqual(receiver.connections, 0)

    @unittest.skipUnless(os.environ.get("CARILLON_CHANGING_NAME_LIBRARY"), "not in this build")
    def test_a_name_that_begins_as_an_address_is_looked_up(self):
        name = "127.0.0.1.example.invalid"
        receiver = self.receive(always(answer(200)), host="127.0.0.2")
        self.assertEqual(self.server.terminate(), 0)
        self.serve(
            "--push-allow",
            "127.0.0.0/8",
            environment={
                "LD_PRELOAD": os.environ["CARILLON_CHANGING_NAME_LIBRARY"],
                "CARILLON_NAME": name,
                "CARILLON_ADDRESSES": "127.0.0.2",
            },
        )
        self.endpoint(receiver, host=name)
        self.gone(self.put())
        first, headers, _ = receiver.requests[0]
        self.assertEqual(first, "POST /hook HTTP/1.1")
        self.assertEqual(headers["host"], f"{name}:{receiver.port}")

    def test_a_name_that_is_not_found_is_told(self):
        self.assertEqual(self.server.terminate(), 0)
        self.serve(
            environment={
                "LD_PRELOAD": os.environ["CARILLON_CHANGING_NAME_LIBRARY"],
                "CARILLON_NAME": "gone.example.org",
                "CARILLON_ADDRESSES": "..,..",  # no name server has such a name
            },
        )
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver, host="gone.example.org")
        self.assertRegex(self.error_of(self.put()), r"^cannot look up gone\.example\.org: [A-Z]")

    def test_a_host_that_can_be_no_name_is_refused(self):
        longest = ".".join(3 * [63 * "a"] + [61 * "a"])
        for host, why in (
            ("a..b", "the host has nothing before or between dots"),
            (64 * "a" + ".example", "a part of the host has 64 bytes; between dots are at most 63"),
            (longest + "a", "the host has 254 bytes; a name has at most 253"),
        ):
            with self.subTest(host):
                wanted = {"url": f"https://{host}:8443/hook", "tube": "t"}
                status, problem = self.ask("PUT", "/v1/endpoints/e", wanted)
                self.assertEqual(status, 400)
                (error,) = problem["errors"]
                self.assertEqual(error["pointer"], "/url")
                self.assertIn(f'"{host}:8443": {why}', error["detail"])
        for host in (longest, "my_service.a-.example."):
            wanted = {"url": f"https://{host}/hook", "tube": "t"}
            self.assertIn(self.ask("PUT", "/v1/endpoints/e", wanted)[0], (200, 201), host)

    def test_what_one_network_allows_others_do_not_have(self):
        self.assertEqual(self.server.terminate(), 0)
        self.serve("--push-allow", "127.0.0.1")
        receiver = self.receive(always(answer(200)))
        for host in ("127.0.0.2", "[::ffff:127.0.0.2]", "[::1]"):
            self.assert_refused(receiver, host)
        self.assertEqual(receiver.connections, 0)
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]"):  # it is the same address
            self.endpoint(receiver, host=host)
            self.gone(self.put())
        self.assertEqual(receiver.connections, 2)
        # The endpoint was set while its address was allowed. Now the server does not connect to it.
        self.assertEqual(self.server.terminate(), 0)
        self.serve()
        self.assertIn("not public", self.error_of(self.put()))
        self.assertEqual(receiver.connections, 2)

    def test_a_redirect_is_not_followed(self):
        trap = self.receive(always(answer(200)))
        self.assertEqual(self.server.terminate(), 0)
        self.serve("--push-allow", "127.0.0.1")
        for status in (301, 302, 303, 307, 308):
            where = f"Location: http://127.0.0.1:{trap.port}/"
            self.endpoint(self.receive(always(answer(status, b"", where))))
            self.assertEqual(self.error_of(self.put()), f"HTTP {status}")
        self.assertEqual(trap.connections, 0)

    @unittest.skipUnless(os.environ.get("CARILLON_CHANGING_NAME_LIBRARY"), "not in this build")
    def test_the_address_that_was_checked_is_the_one_that_is_connected_to(self):
        """A name server that answers with an allowed address the first time, and with another one
        from then on."""
        trap = self.receive(always(answer(200)), host="127.0.0.2")
        receiver = self.receive(always(answer(200)), port=trap.port)
        self.assertEqual(self.server.terminate(), 0)
        self.serve(
            "--push-allow",
            "127.0.0.1",
            environment={
                "LD_PRELOAD": os.environ["CARILLON_CHANGING_NAME_LIBRARY"],
                "CARILLON_NAME": "rebound.example",
                "CARILLON_ADDRESSES": "127.0.0.1,127.0.0.2",
            },
        )
        self.endpoint(receiver, host="rebound.example")
        self.gone(self.put())
        # Over the connection that was kept: the name is not looked up again.
        self.gone(self.put())
        self.assertEqual((len(receiver.requests), receiver.connections), (2, 1))
        self.ask("DELETE", "/v1/endpoints/e")
        self.wait_for(lambda: receiver.open == 0)
        self.endpoint(receiver, host="rebound.example")
        self.assertIn("the address 127.0.0.2 of rebound.example", self.error_of(self.put()))
        self.assertEqual(trap.connections, 0)


@unittest.skipUnless(shutil.which("openssl"), "the certificates are made by openssl")
class TlsPushTest(PushCase):
    """The certificate is for localhost, and not for 127.0.0.1."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.certificate = f"{made.name}/c.pem"
        command = f"""openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes
            -keyout {made.name}/k.pem -out {self.certificate} -days 2 -subj /CN=localhost
            -addext subjectAltName=DNS:localhost"""
        subprocess.run(command.split(), check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, f"{made.name}/k.pem")
        self.options = (*PushCase.options, "--push-allow", "::1", "--push-ca", self.certificate)
        super().setUp()

    def test_https(self):
        receiver = self.receive(always(answer(200)), self.context)
        self.endpoint(receiver, scheme="https", host="localhost")
        self.gone(self.put())
        self.endpoint(receiver, scheme="https")
        self.assertIn("certificate is not good for 127.0.0.1", self.error_of(self.put()))
        self.assertEqual(self.server.terminate(), 0)
        self.serve(*self.options[:-2])
        self.endpoint(receiver, scheme="https", host="localhost")
        self.assertIn("self-signed", self.error_of(self.put()))
        self.assertEqual(len(receiver.requests), 1)


if __name__ == "__main__":
    unittest.main()
