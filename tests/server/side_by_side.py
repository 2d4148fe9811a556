"""Runs the tests of a program side by side, for tests that wait more than they work.

    if __name__ == "__main__":
        side_by_side.main()

Takes what unittest.main() takes. Each of `processes` forks runs a share of the tests, with servers
of its own, and the output of each comes when it has ended.
"""

import os
import random
import sys
import tempfile
import unittest

_SKIPPED = 77  # the exit code of a child that skipped a test


class _Result:
    """What unittest.main() asks after a run."""

    def __init__(self, tests: int, codes: list):
        self.testsRun = tests
        self.skipped = [code for code in codes if code == _SKIPPED]
        self._is_successful = all(code in (0, _SKIPPED) for code in codes)

    def wasSuccessful(self) -> bool:
        return self._is_successful


class _Runner:
    def __init__(self, processes: int):
        self._processes = processes

    def run(self, suite: unittest.TestSuite) -> _Result:
        tests = list(_tests_of(suite))
        shares = [tests[first :: self._processes] for first in range(self._processes)]
        children = [_start(share) for share in shares if share]
        codes = [_end(*child) for child in children]
        return _Result(len(tests), codes)


def _tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _tests_of(test)
        else:
            yield test


def _start(share: list) -> tuple:
    """Forks. Returns the child's process id and the file to which it writes."""
    output = tempfile.TemporaryFile("w+", encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child, output
    random.seed()  # else all children try free ports in the same order
    code = 1
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(share))
        if result.wasSuccessful():
            code = _SKIPPED if result.skipped else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end(child: int, output) -> int:
    _, status = os.waitpid(child, 0)
    output.seek(0)
    print(output.read(), end="", flush=True)
    output.close()
    return os.waitstatus_to_exitcode(status)


def main(processes: int = 6) -> None:
    unittest.main(testRunner=_Runner(processes))
