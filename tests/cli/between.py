"""What stands between a client and a server, for tests of what a client does if the server answers
otherwise than it does today."""

import socket
import threading

from cli_case import daemon


class Between(threading.Thread):
    """Passes bytes between clients and the server at `port`: as `asked` and `answered` return
    them."""

    def __init__(self, port, asked=bytes, answered=bytes):
        super().__init__(daemon=True)
        self.listener = socket.create_server((daemon.HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.to = (daemon.HOST, port)
        self.asked = asked
        self.answered = answered
        self.start()

    def run(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.create_connection(self.to)
            for way in ((client, server, self.asked), (server, client, self.answered)):
                threading.Thread(target=self.passes, args=way, daemon=True).start()

    @staticmethod
    def passes(source, target, change):
        while data := source.recv(1 << 16):
            target.sendall(change(data))
        target.shutdown(socket.SHUT_WR)
