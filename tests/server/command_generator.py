"""Random beanstalk commands, weighted so that every command, limit and corner case of the protocol
comes up.

Each generated command has one right outcome, whatever the speed of the machine: delays are zero or
far, ttrs are long, and nothing depends on which of two connections is read first. Three things are
left out, because beanstalkd leaves them to chance or to the layout of its buffers:
- which of several waiting workers is next: beanstalkd serves them in turn only until one leaves its
  array of waiting workers;
- a line with a lone CR: the CR stops beanstalkd's scan for the line's end until its buffer of 224
  bytes is full;
- a line of 224n + 1 bytes: its CR is the last byte of the buffer and beanstalkd overlooks it, so it
  discards the next line as well.
"""

import random
from typing import Optional

from commands import Command, Job, line, put, quit_, reserve

TUBES = [b"default", b"a", b"b", b"Az09-+/;.$_()", b"x.y", b"t" * 200]
_BAD_TUBES = [
    b"", b"-", b"-a", b"t" * 201, b"a b", b" a", b"a ", b"a@b", b"a,b", b"\xc3\xa9", b"a\nb",
    b'"a"', b"a:b",
]  # fmt: skip
_BAD_NUMBERS = [
    b"", b" ", b"x", b"-1", b"+1", b"1x", b"1 ", b"1.5", b"0x10", b"1,2", b"\t1",
    b"18446744073709551616", b"9" * 40,
]  # fmt: skip
_PRIORITIES = [0, 1, 2, 3, 1023, 1024, 1025, 2**32 - 1]
# Seconds, farther apart than a run lasts, so that the order of the delays is certain.
_FAR = [1000, 5000, 20000, 2**32 - 1]
_TTRS = [1000, 2**32 - 1]
_BAD_PUTS = [
    b"put ", b"put 0", b"put 0 0", b"put 0 0 60", b"put a 0 60 1", b"put 0 0 60 1 ",
    b"put 0 0 60 1 x", b"put -1 0 60 1", b"put 4294967296 0 60 1", b"put 0 4294967296 60 1",
    b"put 0 0 4294967296 1", b"put 0 0 60 4294967296", b"put 0 0 60 -1", b"put 0 0 60 0x1",
    b"put 0 0 60 18446744073709551616", b"put 0\t0 60 1", b"put", b"PUT 0 0 60 1", b" put 0 0 60 1",
]  # fmt: skip
_UNKNOWN = [
    b"", b" ", b"x", b"peek", b"peekx", b"puts", b"Reserve", b"delete", b"release", b"bury",
    b"kick", b"touch", b"use", b"watch", b"ignore", b"list", b"list-tube", b"pause", b"stat",
    b"qui", b"QUIT", b"z" * 222, b"kick-jobs", b"us\ne a",
]  # fmt: skip
_NO_ARGUMENT = [
    b"peek-ready", b"peek-delayed", b"peek-buried", b"reserve", b"stats", b"list-tubes",
    b"list-tube-used", b"list-tubes-watched",
]  # fmt: skip
_WITH_ID = [b"delete ", b"touch ", b"peek ", b"kick-job ", b"reserve-job ", b"stats-job "]
_NUL = [
    b"list-tube-used\0", b"\0", b"us\0e a", b"delete \0", b"put 0 0 60 1\0", b"reserve\0",
    b"quit\0",
]  # fmt: skip
# Numbers that strtoul accepts, and so does `kick`. The other commands want digits only.
_ODD_KICKS = [
    b"1x", b"-1", b"+1", b"\t1", b"  1", b"4294967296", b"4294967297", b"18446744073709551615",
]  # fmt: skip
# beanstalkd 1.12 accepts these, because it uses strtol. It is sent another line, one that is
# BAD_FORMAT to both, in their stead (see comparable.py).
_TIMEOUTS_1_13_REFUSES = [
    b"", b"x", b"-1", b"+1", b"\t1", b"2147483648", b"4294967295", b"4294967296",
]  # fmt: skip


class CommandGenerator:
    """Makes commands for one client. The caller passes the jobs to choose from."""

    def __init__(self, rng: random.Random, max_job_size: int):
        self._rng = rng
        self._max_job_size = max_job_size
        self._jobs = 0

    def tube(self) -> bytes:
        return self._rng.choices(TUBES, [4, 6, 6, 1, 1, 1])[0]

    def harmless(self, held: list, live: list, dead: list) -> Command:
        """A command that is answered at once and whose answer does not depend on the moment: no
        pause, and no order among delays."""
        make = self._rng.choices(
            [
                self._put,
                self._on_job,
                self._peek,
                self._kick,
                self._tubes,
                self._look,
                self._malformed,
                self._poll,
            ],
            [26, 26, 8, 6, 12, 8, 10, 8],
        )[0]
        return make(held, live, dead)

    def waiting_reserve(self) -> Command:
        texts = [
            b"reserve",
            b"reserve-with-timeout 2147483647",
            b"reserve-with-timeout 100000",
            b"reserve-with-timeout 5000x",
        ]
        return reserve(self._rng.choices(texts, [6, 1, 3, 1])[0])

    def pause(self) -> Command:
        seconds = self._rng.choice([b"0", b"0", b"1000", b"100000", b"4294967295"])
        form = self._rng.choices(
            [b"pause-tube %s %s", b"pause-tube  %s  %s", b"pause-tube%s %s"], [8, 1, 1]
        )[0]
        return line(form % (self.tube(), seconds))

    def release_far(self, job: int) -> Command:
        return line(b"release ", Job(job), b" %d %d" % (self._priority(), self._rng.choice(_FAR)))

    def new_job(self) -> int:
        self._jobs += 1
        return self._jobs

    def plain_put(self, delay: int = 0) -> Command:
        head = b"put %d %d %d" % (self._priority(), delay, self._rng.choice(_TTRS))
        return put(self.new_job(), head, self._small_body())

    def zero_ttr_put(self) -> Command:
        return put(self.new_job(), b"put 7 1000 0", b"ttr")

    def quit(self) -> Command:
        return quit_(self._rng.choice([b"quit", b"quitfoo", b"quit now"]))

    def huge_put_head(self) -> bytes:
        """The start of a put that never gets its body."""
        return self._rng.choice(
            [
                b"put 0 0 60 4294967295\r\nabc",
                b"put 0 0 60 50\r\nabc",
                b"put 0 0 60 5",
                b"put 0 0 60 3\r\nabc\r",
            ]
        )

    def _priority(self) -> int:
        return self._rng.choice(_PRIORITIES)

    def _small_body(self) -> bytes:
        kind = self._rng.randrange(8)
        if kind == 0:
            return b""
        if kind == 1:
            return b"delete 1\r\nquit\r\n"
        if kind == 2:
            return self._rng.randbytes(self._rng.randrange(200))
        if kind == 3:
            return b"\r\n\0\r"
        return b"body-%d" % self._jobs

    def _put(self, *_) -> Command:
        kind = self._rng.randrange(100)
        if kind < 70:
            return self.plain_put()
        if kind < 84:
            return self.plain_put(self._rng.choice(_FAR))
        if kind < 88:
            return put(
                self.new_job(), b"put   %d  0   1000 " % self._priority(), self._small_body()
            )
        if kind < 91:
            size = self._max_job_size - self._rng.randrange(2)
            return put(self.new_job(), b"put 5 0 1000", b"m" * size)
        if kind < 94:
            body = b"\r" * (self._max_job_size + 1 + self._rng.randrange(700))
            return Command((b"put 0 0 1000 %d\r\n" % len(body), body + b"\r\n"))  # JOB_TOO_BIG
        return self._put_with_wrong_end()

    def _put_with_wrong_end(self) -> Command:
        """The server consumes the declared bytes and two more; the next command follows."""
        if self._rng.random() < 0.5:
            return Command((b"put 0 0 1000 5\r\n", b"helloXY"))
        if self._rng.random() < 0.5:
            return Command((b"put 0 0 1000 5\r\n", b"hello world\r\n"), replies=2)
        return Command((b"put 0 0 1000 3\r\n", b"hi\r\nlist-tube-used\r\n"), replies=2)

    def _any_job(self, held: list, live: list, dead: list) -> Job:
        choice = self._rng.random()
        if held and choice < 0.75:
            return Job(self._rng.choice(held))
        if live and choice < 0.93:
            return Job(self._rng.choice(live))
        if dead and choice < 0.97:
            return Job(self._rng.choice(dead))
        return Job(10**6 + self._rng.randrange(100))  # never put

    def _on_job(self, held: list, live: list, dead: list) -> Command:
        space = self._rng.choices([b"", b"  ", b"000"], [20, 1, 1])[0]
        kind = self._rng.choices(
            ["delete", "release", "bury", "touch", "kick-job", "reserve-job"],
            [22, 16, 22, 8, 12, 12],
        )[0]
        name = kind.encode() + b" " + space
        job = self._any_job(held if kind in ("release", "bury", "touch") else [], live, dead)
        if kind == "release":
            return line(name, job, b" %d 0" % self._priority())
        if kind == "bury":
            return line(name, job, b" %d" % self._priority())
        if kind == "reserve-job":
            # Not of a delayed job: Carillon gives it back as delayed, beanstalkd as ready.
            return Command((b"kick-job ", job, b"\r\n", name, job, b"\r\n"), replies=2)
        return line(name, job)

    def _peek(self, held: list, live: list, dead: list) -> Command:
        if self._rng.random() < 0.4:
            return line(b"peek ", self._any_job(held, live, dead))
        return line(self._rng.choice([b"peek-ready", b"peek-delayed", b"peek-buried"]))

    def _kick(self, *_) -> Command:
        if self._rng.random() < 0.2:
            return line(b"kick " + self._rng.choice(_ODD_KICKS))
        return line(b"kick %d" % self._rng.choice([0, 1, 1, 2, 3, 10, 2**32 - 1]))

    def _tubes(self, *_) -> Command:
        return line(self._rng.choices([b"use ", b"watch ", b"ignore "], [4, 4, 3])[0] + self.tube())

    def _look(self, held: list, live: list, dead: list) -> Command:
        kind = self._rng.randrange(10)
        if kind < 3:
            return line(b"stats-job ", self._any_job(held, live, dead))
        if kind < 6:
            return line(
                b"stats-tube " + (self.tube() if self._rng.random() < 0.9 else b"no-such-tube")
            )
        return line(
            self._rng.choice([b"stats", b"list-tubes", b"list-tube-used", b"list-tubes-watched"])
        )

    def _poll(self, *_) -> Command:
        """A reserve that never waits."""
        if self._rng.random() < 0.15:
            return line(
                b"reserve-with-timeout " + self._rng.choice(_TIMEOUTS_1_13_REFUSES),
                for_1_12=(b"delete x\r\n",),
            )
        return line(
            b"reserve-with-timeout "
            + self._rng.choices([b"0", b" 0", b"00", b"0x"], [8, 1, 1, 1])[0]
        )

    def _malformed(self, held: list, live: list, dead: list) -> Command:
        make = self._rng.choice(
            [
                self._bad_put,
                self._bad_tube,
                self._bad_number,
                self._trailing,
                self._too_long,
                self._nul,
                self._unknown,
            ]
        )
        return make(held, live, dead)

    def _bad_put(self, *_) -> Command:
        if self._rng.random() < 0.1:  # the server checks the size first, so it swallows the body
            body = b"g" * (self._max_job_size + 1)
            return Command((b"put 0 0 1000 %d garbage\r\n" % len(body), body + b"\r\n"))
        head = self._rng.choice(_BAD_PUTS)
        if self._rng.random() < 0.5:
            return line(head)
        body = self._rng.choice([b"h", b"list-tube-used", b"use b"])
        return Command((head + b"\r\n", body + b"\r\n"), replies=2)

    def _bad_tube(self, *_) -> Command:
        name = self._rng.choice(_BAD_TUBES)
        command = self._rng.choice([b"use ", b"watch ", b"ignore ", b"stats-tube ", b"pause-tube "])
        if command == b"pause-tube ":
            # pause-tube skips spaces around the name, so " a" is a good name here. Pause a tube
            # that does not exist instead.
            name = name.replace(b"a", b"none") if name.strip() in (b"a",) else name
            return line(command + name + b" 1000")
        return line(command + name)

    def _bad_number(self, held: list, live: list, dead: list) -> Command:
        bad = self._rng.choice(_BAD_NUMBERS)
        job = self._any_job(held, live, dead)
        kind = self._rng.randrange(6)
        if kind == 0:
            return line(b"release ", job, b" " + bad + b" 0")
        if kind == 1:
            return line(b"release ", job, b" 0 " + self._rng.choice([bad, b"4294967296"]))
        if kind == 2:
            return line(b"bury ", job, b" " + self._rng.choice([bad, b"4294967296"]))
        if kind == 3:
            return line(
                b"pause-tube a " + self._rng.choice([b"", b"x", b"-1", b"4294967296", b"1x", b"1 "])
            )
        if kind == 4:
            return line(
                b"kick " + self._rng.choice([b"", b" ", b"x", b"18446744073709551616", b"9" * 40])
            )
        if self._rng.random() < 0.3:
            # Well-formed, but the id of no job.
            bad = self._rng.choice([b"0", b"18446744073709551615", b"9223372036854775808"])
        return line(self._rng.choice(_WITH_ID) + bad)

    def _trailing(self, held: list, live: list, dead: list) -> Command:
        garbage = self._rng.choice([b" ", b"x", b" x", b"-foo"])
        if self._rng.random() < 0.6:
            return line(self._rng.choice(_NO_ARGUMENT) + garbage)
        return line(self._rng.choice(_WITH_ID), self._any_job(held, live, dead), garbage)

    def _too_long(self, *_) -> Command:
        total = self._rng.choice([226, 447, 448, 450, 1000, self._rng.randrange(226, 3000)])
        if total % 224 == 1:
            total += 1
        start = self._rng.choice([b"", b"delete 1 ", b"put 0 0 60 ", b"quit ", b"use "])
        return line(start + b"z" * (total - 2 - len(start)))

    def _nul(self, *_) -> Command:
        return line(self._rng.choice(_NUL))

    def _unknown(self, *_) -> Command:
        return line(self._rng.choice(_UNKNOWN))


def job_of(command: Optional[Command]) -> Optional[int]:
    """The number of the job that a command names, if it names one."""
    if command is None:
        return None
    return next((p.number for p in command.parts if isinstance(p, Job)), None)
