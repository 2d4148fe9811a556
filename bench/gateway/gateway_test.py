"""What the gateway sends to single connections, byte by byte. GATEWAY_BIN names its program."""

import json
import os
import signal
import socket
import struct
import subprocess
import time
import unittest

TIMEOUT = 0.4
TICK = 0.05
PATIENCE = 10  # seconds to wait for bytes that must come


def frame(kind, payload=b""):
    return struct.pack(">H", 1 + len(payload)) + kind + payload


def user(number):
    return struct.pack(">Q", number)


LOGIN_7 = b"\x00\x09L\x00\x00\x00\x00\x00\x00\x00\x07"
WELCOME = b"\x00\x09W\x00\x00\x01\x90\x00\x00\x00\x32"  # 400 ms, 50 ms
KEEPALIVE = b"\x00\x01K"


class GatewayTest(unittest.TestCase):
    def setUp(self):
        command = [
            os.environ["GATEWAY_BIN"],
            "serve",
            "--json",
            "--timeout",
            str(TIMEOUT),
            "--tick",
            str(TICK),
        ]
        self.gateway = subprocess.Popen(
            command + ["--for", "60", "--every", "0"], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(self.stop)
        self.port = json.loads(self.gateway.stdout.readline())["port"]

    def stop(self):
        """Ends the gateway, and returns its last report."""
        if self.gateway.poll() is None:
            self.gateway.terminate()
        output = "" if self.gateway.stdout.closed else self.gateway.stdout.read()
        self.gateway.stdout.close()
        self.assertEqual(self.gateway.wait(PATIENCE), 0)
        return json.loads(output.splitlines()[-1]) if output else None

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def log_in(self, number):
        connection = self.connect()
        connection.sendall(frame(b"L", user(number)))
        self.assertEqual(self.read(connection, len(WELCOME)), WELCOME)
        return connection

    def read(self, connection, size):
        received = b""
        while len(received) < size:
            piece = connection.recv(size - len(received))
            self.assertTrue(piece, f"closed after {received!r}")
            received += piece
        return received

    def assert_closed(self, connection):
        try:
            self.assertEqual(connection.recv(1), b"")
        except ConnectionResetError:
            pass  # the gateway closed without reading the last bytes that it was sent

    def test_a_login_is_welcomed_with_the_timeout_and_the_tick(self):
        connection = self.connect()
        connection.sendall(LOGIN_7)
        self.assertEqual(self.read(connection, len(WELCOME)), WELCOME)

    def test_a_message_arrives_with_the_name_of_its_sender(self):
        ada, grace = self.log_in(1), self.log_in(2)
        ada.sendall(frame(b"M", user(2) + b"hello"))
        self.assertEqual(self.read(grace, 16), frame(b"M", user(1) + b"hello"))

    def test_a_message_to_nobody_is_answered(self):
        ada = self.log_in(1)
        ada.sendall(frame(b"M", user(3) + b"hello"))
        self.assertEqual(self.read(ada, 11), frame(b"A", user(3)))

    def test_frames_may_come_in_any_pieces(self):
        ada = self.log_in(1)
        both = frame(b"M", user(1) + b"to myself") + frame(b"M", user(1) + b"again")
        for cut in range(1, len(both)):
            ada.sendall(both[:cut])
            ada.sendall(both[cut:])
            self.assertEqual(self.read(ada, len(both)), both)

    def test_a_silent_connection_is_dropped_after_the_timeout_and_not_before(self):
        connection = self.connect()
        began = time.monotonic()
        connection.sendall(LOGIN_7)
        self.read(connection, len(WELCOME))
        self.assert_closed(connection)
        self.assertGreaterEqual(time.monotonic() - began, TIMEOUT)
        report = self.stop()
        self.assertEqual((report["dropped"], report["connections"]), (1, 0))

    def test_a_connection_that_never_logs_in_is_dropped(self):
        self.assert_closed(self.connect())
        self.assertEqual(self.stop()["dropped"], 1)

    def test_an_incomplete_frame_is_no_packet(self):
        ada = self.log_in(1)
        for byte in frame(b"M", user(1) + 4000 * b"x"):  # would take minutes
            try:
                ada.sendall(bytes([byte]))
            except OSError:
                break
            ada.settimeout(0.05)
            try:
                if ada.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionResetError:
                break
        else:
            self.fail("the connection was kept")
        self.assertEqual(self.stop()["dropped"], 1)

    def test_a_packet_that_waits_in_the_socket_while_the_gateway_is_stopped_counts(self):
        ada = self.log_in(1)
        self.gateway.send_signal(signal.SIGSTOP)
        ada.sendall(frame(b"M", user(1) + b"hello"))
        time.sleep(2 * TIMEOUT)  # real time, because the gateway uses the clock of the kernel
        self.gateway.send_signal(signal.SIGCONT)
        self.assertEqual(self.read(ada, 16), frame(b"M", user(1) + b"hello"))
        self.assert_closed(ada)

    def test_a_later_login_replaces_an_earlier_one(self):
        before, after = self.log_in(7), self.log_in(7)
        self.assert_closed(before)
        after.sendall(frame(b"M", user(7) + b"me"))
        self.assertEqual(self.read(after, 13), frame(b"M", user(7) + b"me"))

    def test_a_connection_that_sends_a_wrong_frame_is_closed_at_once(self):
        for nonsense in (
            b"\x00\x00",
            b"\x10\x01K",
            frame(b"L"),
            KEEPALIVE,
            frame(b"?"),
            frame(b"M", user(1)),
        ):
            with self.subTest(nonsense=nonsense):
                connection = self.connect()
                connection.sendall(nonsense)
                self.assert_closed(connection)
        report = self.stop()
        self.assertEqual((report["ended"], report["dropped"]), (6, 0))

    def test_a_user_who_hangs_up_is_forgotten(self):
        self.log_in(1).close()
        ada = self.log_in(2)
        ada.sendall(frame(b"M", user(1) + b"hello"))
        self.assertEqual(self.read(ada, 11), frame(b"A", user(1)))


if __name__ == "__main__":
    unittest.main()
