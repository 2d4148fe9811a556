"""What tests of TLS have in common: a server with a certificate, and its clients."""

import contextlib
import ssl
import tempfile

import daemon
from certificates import Authority
from wire import Connection


class TlsConnection(Connection):
    """A beanstalk connection by TLS."""

    def __init__(self, address, context, timeout=20.0):
        super().__init__(address, timeout)
        self.socket = context.wrap_socket(self.socket, server_hostname=address[0])


def wait_for_end(connection, seconds=20.0):
    """What comes before the server ends the connection."""
    connection.settimeout(seconds)
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65_536):
            received += more
    return received


class TlsCase(daemon.DataCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory(prefix="carillon-tls.")
        cls.authority = Authority(cls._folder.name)
        cls.certificate, cls.key = cls.authority.sign("server")

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def serve(self, *more, certificate=None, key=None):
        files = ["--tls-cert", certificate or self.certificate, "--tls-key", key or self.key]
        return daemon.carillon_serve(self.data, *files, *more)

    def context(self, authority=None, **versions):
        context = ssl.create_default_context(cafile=(authority or self.authority).file)
        for name, version in versions.items():
            setattr(context, name, version)
        return context

    def connect(self, server, **versions):
        connection = TlsConnection(server.address, self.context(**versions))
        self.addCleanup(connection.close)
        return connection
