"""Sends the same random commands to Debian's beanstalkd and to Carillon and compares the replies
byte for byte.

CARILLON_SEED replays a run; CARILLON_STEPS sets its length.
"""

import random
import tempfile
import unittest

import daemon
from random_history import RandomHistory
from timed_scenarios import SCENARIOS, play_all
from twin import Mismatch, Twin
from wire import setting

_STEPS = setting("CARILLON_STEPS", 8000)
_SEED = setting("CARILLON_SEED", random.SystemRandom().randrange(2**32))
# After this many steps the servers are fresh ones, so that "far" delays stay far in a long run.
_STEPS_PER_HISTORY = 2000
_STEPS_PER_AUDIT = 50
_DEFAULT_MAX_JOB_SIZE = 65535


def _run_history(
    oracle, subject, seed: int, steps: int, max_job_size: int, subject_is_beanstalkd: bool = False
) -> None:
    with oracle, subject:
        history = RandomHistory(
            Twin(oracle, subject, subject_is_beanstalkd), random.Random(seed), max_job_size
        )
        step = 0
        try:
            for step in range(1, steps + 1):
                history.step()
                if step % _STEPS_PER_AUDIT == 0:
                    history.audit()
        except Mismatch as mismatch:
            raise Mismatch(
                f"at step {step}, seed {seed}: {mismatch}\nthe last steps:\n{history.recent()}"
            ) from None


class RandomHistoriesTest(unittest.TestCase):
    def _run(self, subject, max_job_size: int, flags: list) -> None:
        print(f"CARILLON_SEED={_SEED} CARILLON_STEPS={_STEPS}", flush=True)
        for first in range(0, _STEPS, _STEPS_PER_HISTORY):
            steps = min(_STEPS_PER_HISTORY, _STEPS - first)
            oracle = daemon.beanstalkd(*flags)
            _run_history(oracle, subject(), _SEED + first, steps, max_job_size)

    def test_in_memory_with_a_small_job_limit(self):
        flags = ["-z", "300"]
        self._run(lambda: daemon.carillon_beanstalkd(*flags), 300, flags)

    def test_durable(self):
        with tempfile.TemporaryDirectory() as root:
            self._run(
                lambda: daemon.carillon_serve(tempfile.mkdtemp(dir=root)),
                _DEFAULT_MAX_JOB_SIZE,
                [],
            )


class TimedScenariosTest(unittest.TestCase):
    """A few scripts that must wait for time to pass, played on both servers at once."""

    def _compare(self, subject) -> None:
        with daemon.beanstalkd() as oracle, subject:
            theirs, ours = play_all([oracle, subject])
        for name in SCENARIOS:
            with self.subTest(name):
                self.assertEqual(theirs[name], ours[name])

    def test_in_memory(self):
        self._compare(daemon.carillon_beanstalkd())

    def test_durable(self):
        with tempfile.TemporaryDirectory() as directory:
            self._compare(daemon.carillon_serve(directory))


class TheTestCanFailTest(unittest.TestCase):
    """The comparison finds small differences: beanstalkd is compared with a beanstalkd that is not
    quite the same."""

    def test_a_job_limit_one_byte_smaller(self):
        with self.assertRaisesRegex(Mismatch, "JOB_TOO_BIG|max-job-size"):
            _run_history(
                daemon.beanstalkd("-z", "300"),
                daemon.beanstalkd("-z", "299"),
                _SEED,
                4000,
                300,
                True,
            )

    def test_one_reply_in_a_thousand_spoilt(self):
        class Spoilt(Twin):
            """Turns a rare DELETED of the second server into NOT_FOUND."""

            def __init__(self, oracle, subject):
                super().__init__(oracle, subject, subject_is_beanstalkd=True)
                side = self.sides[1]
                honest = side.events
                side.events = lambda taken: [
                    (
                        e._replace(answer=(b"NOT_FOUND",))
                        if e.answer == (b"DELETED",) and e.command.line[-1:] == b"7"
                        else e
                    )
                    for e in honest(taken)
                ]

        with daemon.beanstalkd() as oracle, daemon.beanstalkd() as subject:
            history = RandomHistory(
                Spoilt(oracle, subject), random.Random(_SEED), _DEFAULT_MAX_JOB_SIZE
            )
            with self.assertRaisesRegex(Mismatch, "NOT_FOUND"):
                for _ in range(4000):
                    history.step()


if __name__ == "__main__":
    unittest.main(verbosity=2)
