"""Runs a Python test, and tells ctest if a part of it was skipped.

    run_python_test.py FILE [ARGUMENT ...]

The exit code is 77 if a test of the file was skipped and none failed: ctest then lists the file as
skipped. With unittest alone, ctest would count it as passed. `ctest -V -R NAME` shows the reasons.
"""

import runpy
import sys
import unittest
from pathlib import Path

SKIPPED = 77


class Program(unittest.TestProgram):
    """unittest.main() with this exit code."""

    def runTests(self):
        self.exit = False
        super().runTests()
        if not self.result.wasSuccessful():
            sys.exit(1)
        sys.exit(SKIPPED if self.result.skipped else 0)


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    unittest.main = Program
    runpy.run_path(sys.argv[0], run_name="__main__")
