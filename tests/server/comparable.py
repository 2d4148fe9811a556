"""Brings a reply to the form in which two servers must agree: ids become job numbers, and what may
differ is masked.

Of beanstalkd 1.12 and 1.13, 1.13 counts. Seen from a client they differ in two ways (read from both
sources): - 1.13 puts strings in the YAML of stats in double quotes: name, tube, hostname, os,
platform. Added here for 1.12. - 1.13 reads the time of reserve-with-timeout as 0 … 2^31-1 and
answers BAD_FORMAT to anything else; 1.12 takes what strtol makes of it, so that `-1` or 2^31 waits
for ever and `x` is 0. For 1.12 such a command is replaced (Command.for_1_12).
"""

from typing import Optional

from wire import Reply, yaml_list, yaml_pairs

_QUOTED_SINCE_1_13 = {"name", "tube", "hostname", "os", "platform"}
_MASKED = {
    "stats": {"pid", "version", "rusage-utime", "rusage-stime", "id"},
    "stats-job": {"id", "file"},
    "stats-tube": set(),
}
# Carillon's own fields of stats, which come after all of beanstalkd's. (The bodies of stats-tube
# and stats-job are compared as a whole by clients' test suites, and so have none.)
_OWN = {"current-jobs-loaded", "connections-closed-stalled", "connections-closed-idle"}
# Whole seconds that two servers, asked one after the other, may round differently.
_SECONDS = {"uptime", "age", "time-left", "pause-time-left"}
_SECONDS_APART = 5


class Seconds(int):
    """A number of seconds: equal to one that is a few seconds off."""

    def __eq__(self, other):
        return abs(int(self) - int(other)) <= _SECONDS_APART

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def comparable(
    line: bytes, reply: Reply, numbers: dict, is_1_12: bool, own_stats: Optional[int] = None
) -> tuple:
    """The reply to a command line as a tuple to compare. `numbers` maps this server's ids to job
    numbers. `own_stats` is how many `stats` the test itself has sent to this server, which may
    differ; without it cmd-stats is masked."""
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
        # The order is that of beanstalkd's array, where the last tube takes the place of one that
        # vanishes.
        return tuple(sorted(yaml_list(body)))
    kind = line.split(b" ", 1)[0].decode()
    pairs = yaml_pairs(body)
    while kind == "stats" and pairs and pairs[-1][0] in _OWN:
        pairs.pop()
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
