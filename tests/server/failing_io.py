"""System calls of a server that fail as a test wants: what a broken disk, a full one, or too few
descriptors do to the real program. By a library that is loaded into it (preload/failing_io.cpp).

    faults = failing_io.Faults()
    server = daemon.carillon_serve(data, environment=faults.environment).start()
    rule = faults.fail("write", "*/jobs-*")                   # the next write of the log: EIO
    rule = faults.fail("read", "*.sst", times=FOR_EVER)      # every read of a table, ...
    rule.stop()                                              # ... until now
    rule = faults.fail("open", "*.sst", errno.EMFILE, after=2)        # the third, once
    rule = faults.fail("read", "*.sst", 0, times=FOR_EVER, takes_ms=200)   # slow, and right
    faults.close()
"""

import contextlib
import errno
import mmap
import os
import struct
import tempfile
import time

# "open" is of a file that must be there, "create" with O_CREAT; "allocate" is asked with "memory:"
# and the number of bytes instead of a path.
CALLS = {
    "open": 1,
    "read": 2,
    "write": 4,
    "sync": 8,
    "truncate": 16,
    "rename": 32,
    "create": 64,
    "allocate": 128,
}
FOR_EVER = 2**64 - 1

# struct Rule in preload/failing_io.cpp.
_RULE = struct.Struct("=IiQQQQII208s")
_CALLS, _COUNTS, _HOLDS = struct.Struct("=I"), struct.Struct("=QQ"), struct.Struct("=I")
_COUNTS_AT, _HOLDS_AT = 24, 40
_RULES = 16


def library() -> str:
    """The path of the library, or "" in builds in which it does not work (sanitizers)."""
    return os.environ.get("CARILLON_FAILING_IO", "")


class Rule:
    """Some calls that fail. The rules are asked in the order in which they were made, until one
    lets the call fail."""

    def __init__(self, memory: mmap.mmap, at: int, bits: int):
        self._memory, self._at, self._bits = memory, at, bits

    @property
    def seen(self) -> int:
        """How many calls it fitted."""
        return _COUNTS.unpack_from(self._memory, self._at + _COUNTS_AT)[0]

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return _COUNTS.unpack_from(self._memory, self._at + _COUNTS_AT)[1]

    def stop(self) -> None:
        """From now on no call fails by it."""
        _CALLS.pack_into(self._memory, self._at, 0)
        self.release()

    def turn(self, on: bool) -> None:
        """Calls fail by it from now on, or none does."""
        _CALLS.pack_into(self._memory, self._at, self._bits if on else 0)

    def release(self) -> None:
        """Lets the calls go on to fail that wait because of `holds`."""
        _HOLDS.pack_into(self._memory, self._at + _HOLDS_AT, 0)

    def wait(self, what: str = "failed", count: int = 1, seconds: float = 20.0) -> None:
        """Waits until this many calls have failed (or, with "seen", have begun)."""
        deadline = time.monotonic() + seconds
        while getattr(self, what) < count:
            assert time.monotonic() < deadline, f"{getattr(self, what)} calls {what}, not {count}"
            time.sleep(0.002)

    # As a context manager it is stopped on exit.
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Faults(contextlib.AbstractContextManager):
    """The faults of all processes that are started with `environment`."""

    def __init__(self):
        self._file = tempfile.NamedTemporaryFile()
        self._file.truncate(_RULES * _RULE.size)
        self._memory = mmap.mmap(self._file.fileno(), _RULES * _RULE.size)
        self._used = 0
        self.environment = {"LD_PRELOAD": library(), "CARILLON_FAULTS": self._file.name}

    def close(self) -> None:
        self._memory.close()
        self._file.close()

    def __exit__(self, *_):
        self.close()

    def fail(
        self,
        calls: str,
        pattern: str,
        error: int = errno.EIO,
        *,
        after: int = 0,
        times: int = 1,
        holds: bool = False,
        takes_ms: int = 0,
    ) -> Rule:
        """Makes calls fail with `error` from now on: those named in `calls` (words of CALLS) on
        files whose whole path fits `pattern` (as of a shell, but `*` is for slashes too). The first
        `after` of them pass, the next `times` fail, the others pass. With `holds` a call that will
        fail does so only after release(), and it takes `takes_ms` ms more. With an `error` of 0 it
        passes then."""
        assert self._used < _RULES, "too many rules"
        at = self._used * _RULE.size
        self._used += 1
        bits = sum(CALLS[call] for call in calls.split())
        text = pattern.encode()
        assert len(text) < 208, pattern
        numbers = (0, error, after, times, 0, 0, int(holds), takes_ms)
        _RULE.pack_into(self._memory, at, *numbers, text)
        _CALLS.pack_into(self._memory, at, bits)  # on, now that it is complete
        return Rule(self._memory, at, bits)
