"""Checks that layers include downward only, and that no file is too long.

    python3 include_rules.py SOURCE_ROOT

Checks every #include line in include/ and src/. Prints each line that breaks a rule, and exits with
1 if there is one.

A layer is a folder: include/carillon/LAYER holds its public headers, src/LAYER the rest. The rules:
  - A layer includes only itself, the layers that BELOW lists for it, and the headers in ALSO. Any
    layer may include the headers in EVERYWHERE, which include the standard library alone.
  - Every source of a layer that is listed in ROOMS is in one of its rooms (folders).
  - Rooms that are listed in APART do not include each other, and a room that is listed in CLOSED is
    included by itself alone.
  - The engine and the roles of a cluster (PURE) have no thread, clock, file or database: they
    include none of their headers.
  - A public header includes no private header, and no layer includes a private header of a layer
    that has public ones.
  - No layer includes the detail/ headers of another layer.
  - A layer uses only the third-party libraries that are listed for it. Public headers use none,
    except those of asio: users need neither Boost nor RocksDB to compile against the library.
  - A file has at most MOST_LINES lines.
"""

import pathlib
import re
import sys
from typing import Iterator, NamedTuple

MOST_LINES = 600

BELOW = {
    "wheel": set(),
    "timer": {"wheel"},
    "idle": {"wheel"},
    "asio": {"wheel", "timer"},
    "base": set(),
    "queue": {"wheel", "base"},
    "cluster": {"base", "queue"},
    "server": {"base", "idle", "queue", "cluster"},
    "cli": {"base", "queue", "cluster", "server"},
}

ROOMS = {"queue": ("src/queue/engine/", "src/queue/store/")}

# Rooms of one layer that must not include each other: the engine knows a store only through the
# public header carillon/queue/store.h.
APART = [{"src/queue/engine/", "src/queue/store/"}]

# The rooms of the server, and which others each may include. The files in no room are the loop, the
# server and the service; only `text` does without the service.
DOORS = {
    "text": set(),
    "net": {"text"},
    "api": {"text", "net", "push", "metrics"},
    "push": {"text", "net"},
    "metrics": {"text", "net", "push"},
    "beanstalk": {"text", "net", "api", "metrics"},
    "http": {"text", "net", "api", "push", "metrics"},
}
SERVICE = "server/service.h"

# Headers of libraries of their own, which need nothing else of their layer, and the layers that may
# include them beside those below.
ALSO = {"server": {"carillon/timer/cron_schedule.h"}}

# Headers in no layer, below all of them.
EVERYWHERE = {"carillon/require.h"}

# Parts of a layer that are libraries of their own, so that the rest does without them.
CLOSED = {"src/timer/cron/"}

# The deterministic state machines: no operating system, no thread, no disk.
PURE = ("src/queue/engine/", "src/cluster/role.")
IMPURE = set(
    """atomic barrier chrono condition_variable filesystem fstream future iostream latch mutex
    random semaphore shared_mutex stop_token thread""".split()
)

# What it may use of base: functions of their arguments alone.
PURE_BASE = {"base/text.h"}

# The third-party libraries of each layer, named by the first part of the header's path: "boost" for
# <boost/asio.hpp>. A layer that is not listed uses none.
THIRD_PARTY = {
    "queue": {"boost", "rocksdb"},
    "cluster": {"libpq", "openssl"},
    "server": {"boost", "date", "fmt", "openssl", "spdlog"},
    "cli": {"boost", "CLI", "date", "fmt", "openssl", "spdlog"},
}

# More third-party libraries for parts of a layer that are libraries of their own.
THIRD_PARTY_OF_PART = {"src/timer/cron/": {"date"}}

# Public headers that need a system header: they ask for large pages, reserve address space, and
# watch the wall clock.
SYSTEM_OF_FILE = {
    "include/carillon/wheel/detail/page_blocks.h": "sys/mman.h",
    "include/carillon/idle/detail/stamp_table.h": "sys/mman.h",
    "include/carillon/asio/detail/wall_alarm.h": "sys/timerfd.h",
}

# The third-party libraries of public headers: only for a layer whose purpose is that library.
THIRD_PARTY_IN_PUBLIC = {"asio": {"asio", "boost"}}

# Folders of POSIX and Linux headers. Private files of every layer except wheel may include these
# headers, and those without a folder, such as <unistd.h>.
SYSTEM = {"arpa", "linux", "net", "netinet", "sys"}

# The standard headers of C++20 in libstdc++ 12; C headers only under their C++ names.
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
    chrono cinttypes climits clocale cmath codecvt compare complex concepts condition_variable
    coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar
    cwctype deque exception execution filesystem format forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
    memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio
    regex scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept
    stop_token streambuf string string_view strstream syncstream system_error thread tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
    version""".split()
)

INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?:<(?P<angle>[^>\n]+)>|"(?P<quoted>[^"\n]+)"|(?P<other>.*))'
)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Location(NamedTuple):
    """The layer of a file, and whether the file is a public header."""

    layer: str
    public: bool


def location_of(path: str) -> Location | None:
    """Returns the location of a file, from its path below the source root; None: in no layer."""
    parts = pathlib.PurePosixPath(path).parts
    for prefix, public in ((("include", "carillon"), True), (("src",), False)):
        if parts[: len(prefix)] == prefix and len(parts) > len(prefix) + 1:
            return Location(parts[len(prefix)], public)
    return None


def location_of_header(header: str) -> Location | None:
    """Returns the location of a header, from the path in its #include line; None: in no layer."""
    prefix = "include/" if header.startswith("carillon/") else "src/"
    return location_of(prefix + header)


def fault(file: str, line: str) -> str | None:
    """Returns what is wrong with one line of `file` (relative to the source root), or None."""
    match = INCLUDE.match(line)
    if not match:
        return None
    if file.removeprefix("include/") in EVERYWHERE:
        if match["angle"] in STANDARD:
            return None
        return "the file is for all layers, and includes only the standard library"
    here = location_of(file)
    if here is None or here.layer not in BELOW:
        return f"the file is in no known layer; the layers are {', '.join(BELOW)}"
    if match["other"] is not None:
        return "an include must name its file, in <> or quotes, for this check to see it"
    if not here.public and here.layer in ROOMS and not file.startswith(ROOMS[here.layer]):
        return (
            f"the file is in no room; the rooms of {here.layer} are {', '.join(ROOMS[here.layer])}"
        )
    if file.startswith(PURE) and (what := impure(match)):
        return f"this is a state machine without threads, clocks and files, and uses no {what}"
    if match["quoted"] in EVERYWHERE:
        return None
    if match["quoted"]:
        return fault_of_own(file, here, match["quoted"])
    if SYSTEM_OF_FILE.get(file) == match["angle"]:
        return None
    more = set().union(
        *(owners for part, owners in THIRD_PARTY_OF_PART.items() if file.startswith(part))
    )
    return fault_of_foreign(here, match["angle"], more)


def impure(match: re.Match) -> str | None:
    """Returns what of an #include line the engine must not use, or None."""
    if match["quoted"]:
        is_impure = match["quoted"].startswith("base/") and match["quoted"] not in PURE_BASE
        return match["quoted"] if is_impure else None
    header = match["angle"]
    owner = header.split("/")[0]
    plain = header in STANDARD - IMPURE or owner == "boost"
    return None if plain else f"<{header}>"


def fault_of_own(file: str, here: Location, header: str) -> str | None:
    there = location_of_header(header)
    if there is None or there.layer not in BELOW:
        return (
            f'"{header}" is in no layer: write "carillon/LAYER/…" for a public header, '
            '"LAYER/…" for a private one'
        )
    may_include = there.layer in BELOW[here.layer] or header in ALSO.get(here.layer, set())
    if there.layer != here.layer and not may_include:
        return f"{here.layer} must not include {there.layer}: layers include downward only"
    if here.public and not there.public:
        return f'a public header includes the private "{header}"'
    if there.layer != here.layer and "/detail/" in header:
        return f'"{header}" is for {there.layer} alone: other layers use no detail/ headers'
    if there.layer != here.layer and not there.public and has_public_headers(there.layer):
        return f'"{header}" is private: other layers use the public headers of {there.layer}'
    for room in CLOSED:
        if f"src/{header}".startswith(room) and not file.startswith(room):
            return f'"{header}" is for {room} alone, which is a library of its own'
    if (what := fault_of_door(file, header)) is not None:
        return what
    for rooms in APART:
        mine = {room for room in rooms if file.startswith(room)}
        if mine and any(f"src/{header}".startswith(room) for room in rooms - mine):
            return (
                f'{mine.pop()} must not include "{header}": '
                "the two rooms share only public headers"
            )
    return None


def room_of(path: str) -> str | None:
    """Returns the room of a source of the server, from its path below src/; None if it is in no
    room."""
    parts = path.split("/")
    return parts[1] if parts[0] == "server" and len(parts) > 2 else None


def fault_of_door(file: str, header: str) -> str | None:
    mine = room_of(file.removeprefix("src/"))
    if mine is None or not header.startswith("server/"):
        return None
    if mine not in DOORS:
        return f"src/server/{mine}/ is no room of the server; there are {', '.join(DOORS)}"
    theirs = room_of(header)
    if theirs == mine or theirs in DOORS[mine]:
        return None
    if header == SERVICE and mine != "text":
        return None
    allowed = ", ".join(sorted(DOORS[mine])) or "no other room"
    return f'server/{mine} must not include "{header}"; it may include {allowed}'


def has_public_headers(layer: str) -> bool:
    return layer not in ("base", "cluster", "server", "cli")


def fault_of_foreign(here: Location, header: str, more: set[str]) -> str | None:
    if header in STANDARD:
        return None
    if here.layer == "wheel":
        return f"wheel includes only the standard library, and <{header}> is not part of it"
    if here.public and header.split("/")[0] in THIRD_PARTY_IN_PUBLIC.get(here.layer, set()):
        return None
    if here.public:
        return (
            "a public header includes only the standard library and Carillon, "
            f"and <{header}> belongs to neither"
        )
    owner = header.split("/")[0]
    if owner == header or owner in SYSTEM:
        return None if header.endswith(".h") else f"<{header}> is not a header of C++20"
    allowed = THIRD_PARTY.get(here.layer, set()) | more
    if owner not in allowed:
        names = ", ".join(sorted(allowed)) or "none"
        return f"{here.layer} does not use {owner}; of third-party libraries it uses: {names}"
    return None


def faults_in(file: str, text: str) -> Iterator[str]:
    """Yields one message per wrong line of `text`, the contents of `file`."""
    blanked = BLOCK_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    for number, line in enumerate(blanked.splitlines(), start=1):
        if what := fault(file, line):
            yield f"{file}:{number}: {what}"
    if (lines := text.count("\n")) > MOST_LINES:
        yield f"{file}: {lines} lines; the limit is {MOST_LINES}"


def source_files(root: pathlib.Path) -> list[pathlib.Path]:
    folders = (root / "include", root / "src")
    return sorted(
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.suffix in (".h", ".cpp", ".inc", ".ipp")
    )


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    files = source_files(root)
    if not files:
        print(f"no C++ file below {root}/include or {root}/src")
        return 1
    faults = []
    for file in files:
        faults += faults_in(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    print("\n".join(faults) if faults else f"{len(files)} files include downward only")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
