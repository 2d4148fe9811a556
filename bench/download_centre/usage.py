"""What a server takes: the processor time and the bytes written of a process and its children.

    before = usage(pid)
    spent = since(before, usage(pid))
"""

import contextlib
import glob
import os

TICKS = os.sysconf("SC_CLK_TCK")


def usage(pid: int) -> dict:
    """Includes children that have ended: their parent has their sums."""
    total = of_process(pid)
    for child in children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for key, value in of_process(child).items():
                total[key] += value
    return total


def of_process(pid: int) -> dict:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/io", encoding="ascii") as io:
        counts = dict(line.split(": ") for line in io)
    # utime, stime, and those of the children that have ended
    return {
        "cpu_s": sum(map(int, fields[11:15])) / TICKS,
        "written": int(counts["write_bytes"]),
    }


def children(pid: int) -> list:
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(path, encoding="utf-8") as stat:
                if int(stat.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(path.split("/")[2]))
    return found


def since(before: dict, after: dict) -> dict:
    return {key: after[key] - before[key] for key in after}
