"""A wall clock of a server that is wrong as a test wants, by a library that is loaded into the real
program (preload/wrong_clock.cpp).

    clock = wrong_clock.Clock()
    server = daemon.carillon_serve(data, environment=clock.environment).start()
    clock.set(3600)             # an hour ahead; the server notices with the next command
    clock.set(0)                # right again
    clock.boot()                # for the next server the machine has booted
    clock.close()
"""

import contextlib
import mmap
import os
import struct
import tempfile
import uuid

# struct Setting in preload/wrong_clock.cpp.
_SETTING = struct.Struct("=q56s")


def library() -> str:
    """The path of the library, or "" in builds in which it does not work (sanitizers)."""
    return os.environ.get("CARILLON_WRONG_CLOCK_LIBRARY", "")


class Clock(contextlib.AbstractContextManager):
    """The clock of all processes that are started with `environment`."""

    def __init__(self):
        self._file = tempfile.NamedTemporaryFile()
        self._file.truncate(_SETTING.size)
        self._memory = mmap.mmap(self._file.fileno(), _SETTING.size)
        self._boot_id = tempfile.NamedTemporaryFile("w")
        self._error_ns = 0
        self.environment = {"LD_PRELOAD": library(), "CARILLON_WRONG_CLOCK": self._file.name}
        self.boot()

    def close(self) -> None:
        self._memory.close()
        self._file.close()
        self._boot_id.close()

    def __exit__(self, *_):
        self.close()

    def set(self, error: float) -> None:
        """From now on the wall clock is ahead by this many seconds; behind, if negative."""
        self._error_ns = int(error * 1_000_000_000)
        struct.pack_into("=q", self._memory, 0, self._error_ns)

    def boot(self) -> None:
        """Processes that start from now on see another boot."""
        self._boot_id.seek(0)
        self._boot_id.write(str(uuid.uuid4()))
        self._boot_id.flush()
        path = self._boot_id.name.encode()
        assert len(path) < 56, path
        _SETTING.pack_into(self._memory, 0, self._error_ns, path)
