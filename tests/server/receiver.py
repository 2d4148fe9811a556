"""HTTP servers that get pushed jobs, and answer them as no library would."""

import socket
import threading

import daemon


def answer(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Receiver:
    """An HTTP server, written by hand so that it can do what no library lets it do. `behave` is
    called with the connection and the number of the request, and answers it."""

    def __init__(self, behave, context=None, host=daemon.HOST, port=0):
        self.behave = behave
        self.context = context
        self.requests = []
        self.connections = 0  # so far
        self.open = 0
        self.now = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server((host, port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open += 1
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            if self.context:
                client = self.context.wrap_socket(client, server_side=True)
            with client, client.makefile("rb") as lines:
                while self.one(client, lines):
                    pass
        except OSError:
            pass
        finally:
            with self.lock:
                self.open -= 1

    def one(self, client, lines):
        first = lines.readline().decode().strip()
        if not first:
            return False
        headers = {}
        while line := lines.readline().decode().strip():
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        body = lines.read(int(headers.get("content-length", 0)))
        with self.lock:
            self.requests.append((first, headers, body))
            number = len(self.requests)
            self.now += 1
            self.most_at_once = max(self.most_at_once, self.now)
        try:
            return self.behave(client, number) is not False
        finally:
            with self.lock:
                self.now -= 1

    def close(self):
        self.listener.close()


def always(reply):
    return lambda client, number: client.sendall(reply)
