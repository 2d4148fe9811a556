"""Base class for tests of `carillon work`."""

from cli_case import CliCase


class WorkCase(CliCase):
    def work(self, *arguments):
        """Runs a worker on this test's tube to its end.

        Returns (exit code, standard output, lines of standard error).
        """
        done = self.run_carillon("work", "--tube", self.tube, *arguments)
        return done.returncode, done.stdout.decode(), done.stderr.decode().splitlines()

    def start_worker(self, *arguments):
        return self.start("work", "--tube", self.tube, *arguments)

    def assert_lines(self, lines, *patterns):
        self.assertEqual(len(lines), len(patterns), lines)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line, f"^{pattern}$")

    def count(self, state):
        return self.stats("--tube", self.tube)[f"current-jobs-{state}"]


def is_gone(pid):
    """Returns true if the process has ended; it may still be a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
