"""What a server takes: the processor time of a process and its children, and writes to a disk.

    before = usage(pid, directory)
    spent = since(before, usage(pid, directory))

Writes are those of the disk, or the partition, of the directory, so nothing else should write. The
kernel's count for a process (`write_bytes` in /proc/PID/io) is of no use: it counts the whole folio
of the page cache, of up to some hundred kB, in which a byte has changed.
"""

import contextlib
import glob
import os

TICKS = os.sysconf("SC_CLK_TCK")


def usage(pid: int, directory: str) -> dict:
    """Includes children that have ended: their parent has their sums."""
    total = of_process(pid)
    for child in children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for key, value in of_process(child).items():
                total[key] += value
    return {**total, "written": written_to_disk_of(directory)}


def written_to_disk_of(directory: str) -> int:
    """In bytes; 0 if the directory's file system has no disk of its own."""
    device = os.stat(directory).st_dev
    path = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat"
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="ascii") as stat:
            return 512 * int(stat.read().split()[6])
    return 0


def of_process(pid: int) -> dict:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    # utime, stime, and those of the children that have ended
    return {"cpu_s": sum(map(int, fields[11:15])) / TICKS}


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
