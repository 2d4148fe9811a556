"""Base class for tests of pushes: a real server, receivers that do as they are told, and a check of
signatures that shares no code with the server."""

import base64
import datetime
import hashlib
import hmac

import daemon
from http_case import HttpCase
from receiver import Receiver

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def verify(headers, body, secret):
    """Standard Webhooks, written from its specification."""
    content = b"%s.%s." % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode())
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.new(key, content + body, hashlib.sha256).digest()).decode()
    return f"v1,{wanted}" in headers["webhook-signature"].split(" ")


def parse_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class PushCase(HttpCase):
    options = ("--push-allow", "127.0.0.0/8")

    def receive(self, behave, context=None, host=daemon.HOST, port=0):
        receiver = Receiver(behave, context, host, port)
        self.addCleanup(receiver.close)
        return receiver

    def endpoint(self, receiver, scheme="http", host=daemon.HOST, **fields):
        url = f"{scheme}://{host}:{receiver.port}/hook"
        wanted = {"url": url, "tube": "t", "secrets": [SECRET], **fields}
        status, told = self.ask("PUT", "/v1/endpoints/e", wanted)
        self.assertIn(status, (200, 201), told)
        return told

    def put(self, body="hello", **fields):
        fields = {"retry": {"max_attempts": 1}, **fields}
        if body is not None:
            fields["body"] = body
        status, job = self.ask("POST", "/v1/tubes/t/jobs", fields)
        self.assertEqual(status, 201, job)
        return job["id"]

    def wait_for(self, what):
        return self.wait_until(what, lambda: self.ask("GET", "/v1/endpoints/e"))

    def gone(self, job):
        self.wait_for(lambda: self.ask("GET", f"/v1/jobs/{job}")[0] == 404)

    def error_of(self, job):
        def dead():
            told = self.ask("GET", f"/v1/jobs/{job}")[1]
            return told if told["state"] == "dead" else None

        return self.wait_for(dead)["attempts"][-1]["error"]
