"""One raw beanstalk connection: bytes out, replies in. Only the end of a reply is interpreted."""

import os
import socket
import time
from typing import NamedTuple, Optional

# Replies that are followed by a body and CRLF. Their last number is the size of the body.
_WITH_BODY = (b"RESERVED", b"FOUND", b"OK", b"CHECKPOINT")


class Closed(Exception):
    """The server closed the connection before the reply was complete."""


class NoReply(Exception):
    """The server did not answer in time."""


class Reply(NamedTuple):
    line: bytes  # without CRLF
    body: Optional[bytes]  # without CRLF; None if this kind of reply has no body

    @property
    def word(self) -> bytes:
        return self.line.split(b" ", 1)[0]

    def number(self, index: int = 1) -> int:
        """The number at `index` in the reply line: `INSERTED 7` has number(1) == 7."""
        return int(self.line.split(b" ")[index])

    def __str__(self) -> str:
        return repr(self.line)[1:] + ("" if self.body is None else f" + {self.body!r}"[:300])


def said(line: bytes) -> Reply:
    """A reply without a body."""
    return Reply(line, None)


NOT_FOUND = said(b"NOT_FOUND")
TIMED_OUT = said(b"TIMED_OUT")
UNKNOWN_COMMAND = said(b"UNKNOWN_COMMAND")


class Connection:
    """A client connection. Not thread-safe; use one per thread.

    c = Connection(("127.0.0.1", 11300))
    c.call(b"put 0 0 60 5", b"hello")   # Reply(line=b"INSERTED 1", body=None)
    c.call(b"reserve")                  # Reply(line=b"RESERVED 1 5", body=b"hello")
    """

    def __init__(self, address, timeout: float = 20.0, receive_buffer: Optional[int] = None):
        """`address` is (host, port), or a path for a Unix socket. `timeout` is the longest time to
        wait for a reply, in seconds. `receive_buffer` is the number of bytes that the kernel keeps
        while the client does not read; without it the kernel chooses.
        """
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self._received = bytearray()
        self._at_end = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def call(
        self, line: bytes, body: Optional[bytes] = None, timeout: Optional[float] = None
    ) -> Reply:
        """Sends one command, with its body if it has one, and returns the reply."""
        self.send(line + b"\r\n" + (b"" if body is None else body + b"\r\n"))
        return self.reply(timeout)

    def put(self, body: bytes, pri: int = 0, delay: int = 0, ttr: int = 60) -> int:
        """Puts a job and returns its id. Any answer but INSERTED is an error."""
        return self._id_of(self.call(b"put %d %d %d %d" % (pri, delay, ttr, len(body)), body))

    def put_ms(self, body: bytes, pri: int = 0, delay: int = 0, ttr: int = 60_000) -> int:
        """`put` with Carillon's millisecond verb."""
        return self._id_of(self.call(b"put-ms %d %d %d %d" % (pri, delay, ttr, len(body)), body))

    @staticmethod
    def _id_of(reply: Reply) -> int:
        assert reply.word == b"INSERTED", reply
        return reply.number()

    def stats(self, command: bytes = b"stats") -> dict:
        """The body of `stats`, `stats-tube T` or `stats-job N` as a dict of strings, in the order
        received."""
        reply = self.call(command)
        assert reply.word == b"OK", (command, reply)
        return dict(yaml_pairs(reply.body))

    def reply(self, timeout: Optional[float] = None) -> Reply:
        """The next reply. Waits for it at most `timeout` seconds."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            reply = self._take()
            if reply is not None:
                return reply
            if self._at_end:
                raise Closed(f"closed after {bytes(self._received)!r}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoReply(f"no whole reply; received so far: {bytes(self._received)!r}")
            self._receive(left)

    def replies_at_hand(self) -> list:
        """Every complete reply that has arrived by now, without waiting."""
        self._receive(0.0)
        replies = []
        while (reply := self._take()) is not None:
            replies.append(reply)
        return replies

    def wait_for_end(self, timeout: Optional[float] = None) -> bytes:
        """Waits until the server closes. Returns the bytes that are unread by then."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not self._at_end:
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoReply("the server keeps the connection open")
            self._receive(left)
        return bytes(self._received)

    @property
    def ended(self) -> bool:
        """Whether the server has closed and every reply that it sent has been taken."""
        return self._at_end and not self._received

    @property
    def cut_off(self) -> bool:
        """Whether the server has closed in the middle of a reply. To be asked when every whole
        reply has been taken."""
        return self._at_end and bool(self._received)

    def half_close(self) -> None:
        """Closes the sending half; replies can still be read."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()

    def _receive(self, wait: float) -> None:
        """Reads what has arrived; waits for it at most `wait` seconds. A reset counts as an end."""
        if self._at_end:
            return
        self.socket.settimeout(wait)
        try:
            data = self.socket.recv(1 << 16)
        except (socket.timeout, BlockingIOError):
            return
        except ConnectionError:
            self._at_end = True
            return
        finally:
            self.socket.settimeout(self.timeout)
        if not data:
            self._at_end = True
        self._received += data

    def _take(self) -> Optional[Reply]:
        """Removes one whole reply from the received bytes and returns it; None if no reply is
        whole."""
        end = self._received.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(self._received[:end])
        if line.split(b" ", 1)[0] not in _WITH_BODY:
            del self._received[: end + 2]
            return Reply(line, None)
        size = int(line.rsplit(b" ", 1)[1])
        stop = end + 2 + size
        if len(self._received) < stop + 2:
            return None
        body, crlf = bytes(self._received[end + 2 : stop]), bytes(self._received[stop : stop + 2])
        assert crlf == b"\r\n", f"{line!r}: after the {size} bytes of the body comes {crlf!r}"
        del self._received[: stop + 2]
        return Reply(line, body)


def yaml_pairs(body: bytes) -> list:
    """`---\\nkey: value\\n…` as (key, value) pairs of strings, in order. Raises ValueError on any
    other form."""
    text = body.decode()
    if not text.startswith("---\n") or not text.endswith("\n"):
        raise ValueError(f"not a YAML document of lines: {text!r}")
    pairs = []
    for line in text[4:-1].split("\n"):
        key, colon, value = line.partition(": ")
        if not colon:
            raise ValueError(f"not a `key: value` line: {line!r}")
        pairs.append((key, value))
    return pairs


def yaml_list(body: bytes) -> list:
    """`---\\n- a\\n- b\\n` as a list of strings, in order."""
    text = body.decode()
    if not text.startswith("---\n") or not text.endswith("\n"):
        raise ValueError(f"not a YAML list: {text!r}")
    lines = text[4:-1].split("\n")
    if any(not line.startswith("- ") for line in lines):
        raise ValueError(f"not a YAML list: {text!r}")
    return [line[2:] for line in lines]


def setting(name: str, default: int) -> int:
    """A whole number from the environment, for seeds and sizes of runs."""
    return int(os.environ.get(name, default))
