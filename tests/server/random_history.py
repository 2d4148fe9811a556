"""A random history on two servers at once (twin.py): clients come, put, reserve, wait, pipeline,
stall in the middle of a line, and leave."""

import random
import time
from collections import deque
from dataclasses import dataclass, field

from command_generator import CommandGenerator, job_of
from commands import Command, Job, line, put, reserve
from twin import Event, Twin

_MOST_SESSIONS = 6
_MOST_LIVE_JOBS = 60
_REMEMBERED_STEPS = 25  # printed when the servers disagree


@dataclass
class _Client:
    """What the test believes about a connection. It only steers the choice of commands; the
    comparison does not use it."""

    watching: set = field(default_factory=lambda: {b"default"})
    held: list = field(default_factory=list)
    unanswered: list = field(default_factory=list)  # commands, when it waits in a reserve

    @property
    def waits(self) -> bool:
        return bool(self.unanswered)

    @property
    def has_tail(self) -> bool:
        return len(self.unanswered) > 1

    def may_watch(self, commands: list) -> set:
        """Every tube that the client may watch at some moment of its unanswered commands and of
        `commands`."""
        pending = {_tube(c) for c in self.unanswered + commands if c.line.startswith(b"watch ")}
        return self.watching | pending


def _tube(command: Command) -> bytes:
    return command.line.split(b" ", 1)[1]


class RandomHistory:
    def __init__(self, twin: Twin, rng: random.Random, max_job_size: int):
        self._twin = twin
        self._rng = rng
        self._generate = CommandGenerator(rng, max_job_size)
        self._clients = {}
        self._sessions = 0
        self._live = []  # numbers of jobs believed to exist
        self._dead = deque(maxlen=30)
        self._log = deque(maxlen=_REMEMBERED_STEPS)

    def recent(self) -> str:
        return "\n".join(self._log)

    def step(self) -> None:
        moves = [
            self._one_command,
            self._pipeline,
            self._wait,
            self._timed_order,
            self._come,
            self._leave,
            self._stall,
            self._turns,
        ]
        weights = [60, 14, 10, 4, 4, 3, 2, 1]
        if not [c for c in self._clients.values() if not c.waits]:
            self._come()
        self._rng.choices(moves, weights)[0]()

    def audit(self) -> None:
        """Compares everything that the protocol shows: all jobs, all tubes, all counters."""
        self._log_step("audit")
        self._twin.audit()
        session = self._new_session()
        commands = [line(b"list-tubes")]
        commands += [line(b"stats-job ", Job(n)) for n in self._live]
        commands += [line(b"peek ", Job(n)) for n in self._live]
        events = self._send(session, commands)
        tubes = next(e.answer[1] for e in events if e.command is commands[0])
        self._send(session, [line(b"stats-tube " + tube.encode()) for tube in tubes])
        self._remove(session)

    # The moves.

    def _one_command(self) -> None:
        session = self._some_client(waiting=False)
        if session is not None:
            self._send(session, [self._command_for(session)])

    def _pipeline(self) -> None:
        """Several commands in one stream, cut at random bytes. Not while another client has
        commands behind a reserve, because chance would decide which of the two is served first."""
        session = self._some_client(waiting=False)
        if session is None or any(c.has_tail for c in self._clients.values()):
            return
        commands = [self._command_for(session) for _ in range(self._rng.randrange(2, 9))]
        if self._rng.random() < 0.3:
            commands.insert(
                self._rng.randrange(len(commands) + 1), self._generate.waiting_reserve()
            )
        if self._rng.random() < 0.03:
            at = self._rng.randrange(len(commands) + 1)
            commands.insert(at, self._generate.quit())
            if any(c.line.startswith((b"reserve", b"peek")) for c in commands[:at]):
                # beanstalkd resets a connection on which it left bytes unread, and then the end of
                # a large reply is lost.
                del commands[at + 1 :]
        if any(c.may_wait for c in commands) and not self._may_wait(session, commands):
            commands = [c for c in commands if not c.may_wait]
        if any(c.may_wait for c in commands):
            # The unread bytes behind a reserve must fit into the kernel's buffers, or no server
            # can notice a half-close.
            commands = [c for c in commands if c.size < 4000]
        cuts = [self._rng.random() for _ in range(self._rng.choice([0, 0, 1, 2, 4]))]
        self._send(session, commands, cuts, half_close=self._rng.random() < 0.03)

    def _wait(self) -> None:
        session = self._some_client(waiting=False)
        if session is None:
            return
        command = self._generate.waiting_reserve()
        if self._may_wait(session, [command]):
            self._send(session, [command])

    def _timed_order(self) -> None:
        """A command on which an order by time depends is sent alone, a few milliseconds after the
        one before."""
        session = self._some_client(waiting=False)
        if session is None:
            return
        client = self._clients[session]
        kind = self._rng.randrange(4)
        time.sleep(0.003)
        if kind == 0 and client.held:
            self._send(session, [self._generate.release_far(self._rng.choice(client.held))])
        elif kind == 1:
            self._zero_ttr(session)
        else:
            self._send(session, [self._generate.pause()], rest=0.005)

    def _zero_ttr(self, session: int) -> None:
        command = self._generate.zero_ttr_put()
        self._send(session, [command])
        for verb in (b"stats-job ", b"delete "):
            self._send(session, [line(verb, Job(command.job))])

    def _come(self) -> None:
        if len(self._clients) >= _MOST_SESSIONS:
            return
        session = self._new_session()
        tube = self._generate.tube()
        if self._rng.random() < 0.7:
            self._send(session, [line(b"use " + tube), line(b"watch " + tube)])
        if self._rng.random() < 0.5:
            self._send(session, [line(b"ignore default")])

    def _leave(self) -> None:
        session = self._some_client(waiting=self._rng.random() < 0.5)
        if session is None:
            return
        kind = self._rng.randrange(5)
        if kind == 0 and not self._clients[session].waits:
            self._send(session, [self._generate.quit()])
        elif kind == 1 and not self._clients[session].waits:
            self._log_step(f"session {session} stops in the middle of a put")
            self._observe(
                self._twin.send(
                    session,
                    [Command((self._generate.huge_put_head(),), replies=0)],
                    half_close=True,
                )
            )
        elif kind < 4 or self._clients[session].has_tail:
            # A client that only half-closed gets answers to the commands behind its reserve. If the
            # client closed altogether, chance decides whether they are still carried out.
            self._log_step(f"session {session} half-closes")
            self._observe(self._twin.send(session, [], half_close=True))
        else:
            self._remove(session)

    def _stall(self) -> None:
        """A put is sent in two parts, and another client acts in between."""
        session = self._some_client(waiting=False)
        other = self._some_client(waiting=False)
        if (
            session is None
            or other in (None, session)
            or any(c.has_tail for c in self._clients.values())
        ):
            return
        command = self._generate.plain_put()
        cut = self._rng.randrange(1, 4)
        first, rest = _split(command, cut)
        self._send(session, [first])
        self._send(other, [line(b"reserve-with-timeout 0")])
        self._send(other, [line(b"list-tube-used")])
        self._send(session, [rest])

    def _turns(self) -> None:
        """Two or three workers wait on a fresh tube and are served in turn. (beanstalkd serves no
        more than three in turn.)"""
        tube = b"turns-%d" % self._sessions
        count = self._rng.choice([2, 3])
        producer = self._new_session()
        self._send(producer, [line(b"use " + tube)])
        workers = [self._new_session() for _ in range(count)]
        for worker in workers:
            self._send(worker, [line(b"watch " + tube), line(b"ignore default")])
            self._send(worker, [reserve()])
        puts = [put(self._generate.new_job(), b"put 3 0 1000", b"turn") for _ in range(count)]
        for command in puts:
            self._send(producer, [command])
        for worker in workers:
            for job in list(self._clients[worker].held):
                self._send(worker, [line(b"delete ", Job(job))])
        for session in [producer] + workers:
            self._remove(session)

    # Choosing.

    def _some_client(self, waiting: bool):
        fitting = [n for n, c in self._clients.items() if c.waits == waiting]
        return self._rng.choice(fitting) if fitting else None

    def _command_for(self, session: int) -> Command:
        held = self._clients[session].held
        if len(self._live) > _MOST_LIVE_JOBS and self._rng.random() < 0.5:
            return line(b"delete ", Job(self._rng.choice(self._live)))
        return self._generate.harmless(held, self._live, list(self._dead))

    def _may_wait(self, session: int, commands: list) -> bool:
        """Returns true if the client may wait too. No two waiting workers may watch the same tube,
        because beanstalkd does not serve them in turn for long; and at most three clients wait."""
        tubes = self._clients[session].may_watch(commands)
        others = [c for c in self._clients.values() if c.waits]
        return len(others) < 3 and not any(tubes & c.may_watch([]) for c in others)

    # Doing.

    def _new_session(self) -> int:
        self._sessions += 1
        self._log_step(f"session {self._sessions} opens")
        self._clients[self._sessions] = _Client()
        self._twin.open(self._sessions)
        return self._sessions

    def _remove(self, session: int) -> None:
        self._log_step(f"session {session} is dropped")
        del self._clients[session]
        self._observe(self._twin.drop(session))

    def _send(
        self,
        session: int,
        commands: list,
        cuts: list = (),
        half_close: bool = False,
        rest: float = 0.0,
    ) -> list:
        """Sends the commands, then sleeps `rest` seconds, and remembers the answers."""
        end = " and half-closes" if half_close else ""
        self._log_step(f"session {session}: " + "  ".join(str(c) for c in commands) + end)
        client = self._clients[session]
        for command in commands:
            client.unanswered.extend([command] * command.replies)
        events = self._twin.send(session, commands, cuts, half_close)
        if rest:
            time.sleep(rest)
            events += self._twin.settle()
        self._observe(events)
        return events

    def _log_step(self, text: str) -> None:
        self._log.append(text if len(text) < 1000 else text[:1000] + "…")

    def _observe(self, events: list) -> None:
        for event in events:
            if event.command is None:
                self._clients.pop(event.session, None)
            elif event.session in self._clients:
                self._observe_answer(self._clients[event.session], event)

    def _observe_answer(self, client: _Client, event: Event) -> None:
        client.unanswered.remove(event.command)
        job, word = job_of(event.command), event.answer[0]
        if word == b"INSERTED":
            self._live.append(event.command.job)
        elif word == b"RESERVED":
            client.held.append(int(event.answer[1][1:]))
        elif word in (b"DELETED", b"RELEASED", b"BURIED") and job in client.held:
            client.held.remove(job)
        if word == b"DELETED" and job in self._live:
            self._live.remove(job)
            self._dead.append(job)
        if word.startswith(b"WATCHING"):
            change = (
                client.watching.add
                if event.command.line.startswith(b"watch ")
                else client.watching.discard
            )
            change(_tube(event.command))


def _split(command: Command, cut: int) -> tuple:
    """A put as two parts, cut after `cut` quarters. The reply comes after the second."""
    data = b"".join(command.parts)
    at = len(data) * cut // 4
    return Command((data[:at],), replies=0), Command((data[at:],), job=command.job)
