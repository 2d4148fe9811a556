"""Commands to be sent to two servers at once: each server's own job ids are filled in."""

from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple, Union

# Ids from here on are never given by a server in a test. They stand for jobs that a server refused.
_NO_SUCH_JOB = 10**15


class Job(NamedTuple):
    """In a command, the id that the server gave to the put of this number."""

    number: int


@dataclass(frozen=True)
class Command:
    parts: Tuple[Union[bytes, Job], ...]
    replies: int = 1  # 2 when the server reads the intended body as another command
    job: Optional[int] = None  # for a put: the number of its job
    may_wait: bool = False  # a reserve that waits when nothing is ready
    ends: bool = False  # the server closes instead of answering
    # Sent instead to beanstalkd 1.12, where 1.12 differs from 1.13.
    for_1_12: Optional[Tuple[Union[bytes, Job], ...]] = None

    @property
    def size(self) -> int:
        """The number of bytes, approximately: an id counts 8."""
        return sum(8 if isinstance(p, Job) else len(p) for p in self.parts)

    @property
    def line(self) -> bytes:
        """The command line, with ids as `#n`."""
        text = b"".join(b"#%d" % p.number if isinstance(p, Job) else p for p in self.parts)
        return text.split(b"\r\n", 1)[0]

    def encode(self, ids: dict, is_1_12: bool) -> bytes:
        """The bytes for a server whose job n has the id ids[n]."""
        parts = self.for_1_12 if is_1_12 and self.for_1_12 else self.parts
        return b"".join(
            b"%d" % ids.get(p.number, _NO_SUCH_JOB + p.number) if isinstance(p, Job) else p
            for p in parts
        )

    def __str__(self) -> str:
        text = b"".join(b"#%d" % p.number if isinstance(p, Job) else p for p in self.parts)
        return repr(text)[1:] if len(text) <= 300 else f"{text[:120]!r}… ({len(text)} bytes)"


def line(*parts: Union[bytes, Job], **how) -> Command:
    """A command line; CRLF is added."""
    return Command(tuple(parts) + (b"\r\n",), **how)


def put(job: int, head: bytes, body: bytes) -> Command:
    """`head` is the put line without its byte count."""
    return Command((head + b" %d\r\n" % len(body), body + b"\r\n"), job=job)


def reserve(text: bytes = b"reserve") -> Command:
    return line(text, may_wait=True)


def quit_(text: bytes = b"quit") -> Command:
    return line(text, replies=0, ends=True)
