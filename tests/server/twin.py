"""Two servers in lockstep: each step goes to both, and both must have given the same answers before
the next step.

Nothing here sleeps to let a server catch up. After each step the test reads replies until every
connection that is still owed a reply waits in a reserve, which the server's own `current-waiting`
confirms. So a run is deterministic.
"""

import select
import time
from collections import deque
from typing import NamedTuple, Union

from commands import Command
from comparable import comparable
from daemon import Server
from wire import Closed, Connection

_PATIENCE = 20.0  # seconds; a reply that takes longer is a failure
_ENDS = "closed by the server"


class Mismatch(AssertionError):
    """The two servers, or a server and the protocol, disagree."""


class Event(NamedTuple):
    session: int
    command: Union[Command, str, None]  # None: the connection ended
    answer: tuple  # from comparable()


class _Session:
    """One client connection on one server, and the replies that it is still owed, oldest first."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.owed = deque()  # Command, once per reply; _ENDS for the end of the connection
        self.half_closed = False

    @property
    def may_be_waiting(self) -> bool:
        return (
            bool(self.owed)
            and self.owed[0] is not _ENDS
            and self.owed[0].may_wait
            and not self.half_closed
        )


class _Side:
    """One of the two servers."""

    def __init__(self, name: str, server: Server, is_beanstalkd: bool):
        self.name = name
        self.server = server
        self.control = server.connect()
        self.sessions = {}
        self.ids = {}  # job number -> id
        self.numbers = {}  # id -> job number
        self.own_stats = 0
        stats = self._stats()
        self.is_1_12 = is_beanstalkd and not stats["hostname"].startswith('"')
        self.settle()

    def open(self, session: int) -> None:
        self.sessions[session] = _Session(self.server.connect())
        if taken := self.settle():
            raise Mismatch(f"{self.name}: answered, though only a connection was opened: {taken}")

    def send(self, session: int, commands: list, cuts: list, half_close: bool) -> None:
        """Sends the commands as one stream, cut at the given fractions of its length."""
        s = self.sessions[session]
        data = b"".join(c.encode(self.ids, self.is_1_12) for c in commands)
        for command in commands:
            s.owed.extend([command] * command.replies)
            if command.ends:
                s.owed.append(_ENDS)
                break
        if half_close:
            s.half_closed = True
            s.owed.append(_ENDS)
        try:
            self._send_in_pieces(s.connection, data, cuts)
            if half_close:
                s.connection.half_close()
        except OSError:
            if not any(c.ends for c in commands):
                raise

    def _send_in_pieces(self, connection: Connection, data: bytes, cuts: list) -> None:
        at = 0
        for cut in sorted(int(len(data) * fraction) for fraction in cuts):
            connection.send(data[at:cut])
            # A round trip on another connection makes it likely that the server reads the pieces
            # one by one. No counter counts this command, because it is malformed.
            self.control.call(b"list-tubesx")
            at = cut
        connection.send(data[at:])

    def drop(self, session: int) -> None:
        """Closes the connection, whatever is still owed."""
        self.sessions.pop(session).connection.close()

    def settle(self) -> list:
        """Reads until nothing more can come without another command. Returns [(session, command,
        reply)]."""
        taken = []
        deadline = time.monotonic() + _PATIENCE
        while not self._settled(taken):
            if time.monotonic() > deadline:
                owed = {n: [str(c) for c in s.owed] for n, s in self.sessions.items() if s.owed}
                raise Mismatch(f"{self.name}: after {_PATIENCE} s it still owes {owed}")
        return taken

    def _settled(self, taken: list) -> bool:
        """Takes the replies that have arrived. Returns true if every session that is owed a reply
        waits in a reserve, and the server has noticed every connection that was opened or closed.
        The same stats must show both."""
        self._collect(taken)
        owing = [s for s in self.sessions.values() if s.owed]
        if not all(s.may_be_waiting for s in owing):
            select.select([s.connection for s in owing], [], [], 1.0)
            return False
        stats = self._stats()
        expected = (len(owing), 1 + len(self.sessions))
        return (int(stats["current-waiting"]), int(stats["current-connections"])) == expected

    def _collect(self, taken: list) -> None:
        """Takes every reply that has arrived, and the end of every connection that ended."""
        for number, s in list(self.sessions.items()):
            if not s.owed:
                continue
            for reply in s.connection.replies_at_hand():
                if not s.owed or s.owed[0] is _ENDS:
                    raise Mismatch(
                        f"{self.name}: session {number} was sent {reply}, which answers nothing"
                    )
                command = s.owed.popleft()
                if command.job is not None and reply.word in (b"INSERTED", b"BURIED"):
                    self._learn(command.job, reply.number())
                taken.append((number, command, reply))
            if s.connection.cut_off:
                command = s.owed[0] if s.owed else None
                raise Mismatch(
                    f"{self.name}: session {number} was closed in the middle of the reply to "
                    f"{command}"
                )
            if s.connection.ended:
                if not s.owed or s.owed[0] is not _ENDS:
                    owed = [str(c) for c in s.owed]
                    raise Mismatch(f"{self.name}: session {number} was closed and owed {owed}")
                s.connection.close()
                del self.sessions[number]
                taken.append((number, None, None))

    def _learn(self, job: int, job_id: int) -> None:
        if job_id in self.numbers:
            raise Mismatch(
                f"{self.name}: id {job_id} was given to job #{self.numbers[job_id]} "
                f"and now to #{job}"
            )
        self.ids[job] = job_id
        self.numbers[job_id] = job

    def events(self, taken: list) -> list:
        events = []
        for session, command, reply in taken:
            if command is None:
                events.append(Event(session, None, (_ENDS,)))
                continue
            try:
                answer = comparable(command.line, reply, self.numbers, self.is_1_12)
            except (ValueError, KeyError) as malformed:
                raise Mismatch(f"{self.name}: {command}: {reply}: {malformed!r}") from malformed
            events.append(Event(session, command, answer))
        return events

    def audit(self) -> tuple:
        """The server-wide stats, with every counter, in comparable form."""
        self.own_stats += 1
        return comparable(
            b"stats", self.control.call(b"stats"), self.numbers, self.is_1_12, self.own_stats
        )

    def _stats(self) -> dict:
        self.own_stats += 1
        return self.control.stats()


class Twin:
    """Sends the same commands to both servers. Raises Mismatch with both answers if they differ."""

    def __init__(self, oracle: Server, subject: Server, subject_is_beanstalkd: bool = False):
        self.sides = [
            _Side("beanstalkd", oracle, True),
            _Side("subject", subject, subject_is_beanstalkd),
        ]

    def open(self, session: int) -> None:
        for side in self.sides:
            side.open(session)

    def drop(self, session: int) -> list:
        for side in self.sides:
            side.drop(session)
        return self._compare()

    def settle(self) -> list:
        """The replies that have come since the last step."""
        return self._compare()

    def send(self, session: int, commands: list, cuts: list = (), half_close: bool = False) -> list:
        """Returns the answers on this and on other connections as a list of Event."""
        for side in self.sides:
            side.send(session, commands, cuts, half_close)
        return self._compare()

    def audit(self) -> None:
        """Compares the server-wide stats, every counter of them."""
        oracle, subject = (
            Event(-1, "stats, on the control connection", side.audit()) for side in self.sides
        )
        if oracle.answer != subject.answer:
            raise Mismatch(_difference(oracle, subject))

    def _compare(self) -> list:
        try:
            oracle, subject = (side.events(side.settle()) for side in self.sides)
        except Closed as closed:
            raise Mismatch(f"a control connection was closed: {closed}") from closed
        sessions = sorted({event.session for event in oracle + subject})
        # All sessions are reported, because one difference may be only the consequence of another.
        differences = [
            text for session in sessions for text in _differences(session, oracle, subject)
        ]
        if differences:
            raise Mismatch("\n".join(differences))
        return oracle


def _differences(session: int, oracle: list, subject: list) -> list:
    """The first difference in the answers to a session, in words, or nothing."""
    theirs = [e for e in oracle if e.session == session]
    ours = [e for e in subject if e.session == session]
    for theirs_one, ours_one in zip(theirs, ours):
        if theirs_one.answer != ours_one.answer:
            return [_difference(theirs_one, ours_one)]
    if len(theirs) == len(ours):
        return []
    longer, who = (theirs, "beanstalkd") if len(theirs) > len(ours) else (ours, "subject")
    extra = longer[min(len(theirs), len(ours))]
    return [f"session {session}: only {who} answered {extra.command}: {extra.answer}"]


def _difference(oracle: Event, subject: Event) -> str:
    text = f"session {oracle.session}: {oracle.command}"
    if oracle.answer[0] == subject.answer[0] == b"OK" and len(oracle.answer[1]) == len(
        subject.answer[1]
    ):
        lines = [f"{a} | {b}" for a, b in zip(oracle.answer[1], subject.answer[1]) if a != b]
        return "\n    ".join([text, "differing lines, beanstalkd | subject:"] + lines)
    return f"{text}\n    beanstalkd: {oracle.answer}\n    subject:    {subject.answer}"
