"""Converts a reply to a form in which two servers must agree: ids become job numbers, and values
that may differ are masked.

The reference is beanstalkd 1.13. Seen from a client, 1.12 differs from it in two ways (found by
reading both sources):
- 1.13 writes the strings in the YAML of stats (name, tube, hostname, os, platform) in double
  quotes. For 1.12 the quotes are added here.
- 1.13 accepts 0 … 2^31-1 as the time of reserve-with-timeout, and answers BAD_FORMAT to anything
  else. 1.12 uses the result of strtol, so that `-1` or 2^31 waits for ever and `x` is 0. 1.12 is
  sent another command instead (Command.for_1_12).
"""

from typing import Optional

from wire import Reply, yaml_list, yaml_pairs

_QUOTED_SINCE_1_13 = {"name", "tube", "hostname", "os", "platform"}
_MASKED = {
    "stats": {"pid", "version", "rusage-utime", "rusage-stime", "id"},
    "stats-job": {"id", "file"},
    "stats-tube": set(),
}
# Carillon's own fields of stats come after this one. The bodies of stats-tube and stats-job have no
# own fields, because the test suites of clients compare them as a whole.
_LAST_OF_STATS = "platform"
# Whole seconds. Two servers that are asked one after the other may round them differently.
_SECONDS = {"uptime", "age", "time-left", "pause-time-left"}
_SECONDS_APART = 5


class Seconds(int):
    """A number of seconds, equal to any number that is at most 5 s off."""

    def __eq__(self, other):
        return abs(int(self) - int(other)) <= _SECONDS_APART

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def comparable(
    line: bytes, reply: Reply, numbers: dict, is_1_12: bool, own_stats: Optional[int] = None
) -> tuple:
    """The reply to a command line, as a tuple to compare. `numbers` maps this server's ids to job
    numbers. `own_stats` is how many `stats` the test itself has sent to this server; that number
    may differ between servers and is subtracted from cmd-stats. Without it cmd-stats is masked."""
    word = reply.word
    if word == b"OK":
        return (word, _body(line, reply.body, is_1_12, own_stats))
    if word in (b"RESERVED", b"FOUND"):
        return (word, _job(numbers, reply.number()), reply.body)
    if word == b"INSERTED" or reply.line.startswith(b"BURIED "):
        return (word, _job(numbers, reply.number()))
    return (reply.line,)


def _job(numbers: dict, job_id: int) -> str:
    return f"#{numbers[job_id]}" if job_id in numbers else f"an id nobody was given: {job_id}"


def _body(line: bytes, body: bytes, is_1_12: bool, own_stats: Optional[int]) -> tuple:
    if line.startswith(b"list-tubes"):
        # beanstalkd lists its array of tubes, where the last tube fills the gap of one that
        # vanished.
        return tuple(sorted(yaml_list(body)))
    kind = line.split(b" ", 1)[0].decode()
    pairs = yaml_pairs(body)
    if kind == "stats":
        del pairs[[name for name, _ in pairs].index(_LAST_OF_STATS) + 1 :]
    return tuple((key, _value(kind, key, value, is_1_12, own_stats)) for key, value in pairs)


def _value(kind: str, key: str, value: str, is_1_12: bool, own_stats: Optional[int]):
    if key in _MASKED[kind] or key.startswith("binlog-"):
        return "masked"
    if key in _SECONDS:
        return Seconds(value)
    if key == "cmd-stats":
        return "masked" if own_stats is None else str(int(value) - own_stats)
    if is_1_12 and key in _QUOTED_SINCE_1_13:
        return f'"{value}"'
    return value
