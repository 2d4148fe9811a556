"""The events of the real server: many listeners, a slow one, a restart, and a stop."""

import json
import socket
import time
import unittest
import urllib.request

import daemon
from http_case import HttpCase


class Listener:
    """Reads the events of one stream."""

    def __init__(self, port, last_event_id="", receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((daemon.HOST, port))
        last = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
        request = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{last}\r\n"
        self.socket.sendall(request.encode())
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def head(self):
        return b"".join(iter(self.file.readline, b"\r\n")).decode()

    def event(self):
        """Returns the next event as a dict; an empty one at the end of the stream."""
        fields = {}
        while line := self.file.readline().decode():
            if line == "\n" and fields:
                return fields
            name, _, value = line.strip().partition(": ")
            if name and name != ":":
                fields[name] = value
        return {}


class EventsTest(HttpCase):
    def listen(self, last_event_id="", receive_buffer=0):
        listener = Listener(self.port, last_event_id, receive_buffer)
        self.addCleanup(listener.close)
        return listener

    def post(self, path, body=b""):
        url = f"http://{daemon.HOST}:{self.port}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, body, method="POST")) as reply:
            return reply.status

    def test_200_clients_hear_the_same_and_a_slow_one_holds_up_nobody(self):
        self.listen(receive_buffer=4096)  # it reads nothing
        listeners = [self.listen() for _ in range(200)]
        for listener in listeners:
            self.assertIn("text/event-stream", listener.head())
            listener.event()
        self.assertEqual(self.post("/v1/tubes/mail/jobs", b"hello"), 201)
        self.assertEqual(self.post("/v1/tubes/mail:pause"), 200)
        heard = set()
        for listener in listeners:
            while (event := listener.event())["event"] != "audit":
                pass
            heard.add(tuple(event.items()))
        self.assertEqual(len(heard), 1)
        action = json.loads(dict(heard.pop())["data"])
        self.assertEqual([action["action"], action["target"]], ["tube:pause", "mail"])
        begin = time.monotonic()
        self.assertEqual(self.server.terminate(), 0)
        self.assertLess(time.monotonic() - begin, 4)

    def test_a_listener_goes_on_where_it_was_also_after_a_restart(self):
        listener = self.listen()
        listener.head()
        first, second = listener.event(), listener.event()
        again = self.listen(first["id"])
        again.head()
        self.assertEqual(again.event(), second)
        self.assertEqual(self.server.terminate(), 0)
        while listener.event():
            pass
        self.serve()
        after = self.listen(second["id"])
        after.head()
        event = after.event()
        self.assertTrue(event["id"].endswith("-1"), event)
        self.assertNotEqual(event["id"].split("-")[0], second["id"].split("-")[0])


if __name__ == "__main__":
    unittest.main()
