"""Base class for tests of HTTP: a real server in an empty directory, and requests to it."""

import http.client
import json

import daemon


class HttpCase(daemon.DataCase):
    options = ()  # for the server

    def setUp(self):
        super().setUp()
        self.serve(*self.options)

    def serve(self, *options, environment=None):
        self.server = daemon.carillon_serve(
            self.data, "--http", f"{daemon.HOST}:0", *options, environment=environment
        ).start()
        self.addCleanup(self.server.__exit__)
        self.port = self.server.http_port()

    def client(self):
        client = http.client.HTTPConnection(daemon.HOST, self.port, timeout=20)
        self.addCleanup(client.close)
        return client

    def ask(self, method, path, body=None, **headers):
        """Returns the status, and the body as JSON if there is one."""
        if isinstance(body, dict):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        client = self.client()
        client.request(method, path, body, headers)
        reply = client.getresponse()
        text = reply.read()
        return reply.status, json.loads(text) if text else None
