"""The clients of clients/ know each verb that Carillon adds to beanstalkd's: what docs/protocol.md
specifies in its tables.

verbs_test.py FOLDER-OF-THE-CLIENTS
"""

import pathlib
import re
import sys
import unittest

CLIENTS = pathlib.Path(sys.argv[1])
PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "protocol.md"

# Verbs that they need not know, and why.
OTHERS = {
    "put-ms": "put-job",
    "put-at": "put-job with due",
    "release-ms": "release-jobs",
    "reserve-with-timeout-ms": "reserve-jobs",
}


# Operators ask for these, and the clients do by HTTP.
BY_HTTP = {"bury-job", "show-job", "story-job", "set-tube", "stats-group"}
BY_HTTP |= {"list-jobs", "list-groups"}
BY_HTTP |= {"cancel-jobs", "retry-jobs", "move-jobs", "spread-jobs"}
BY_HTTP |= {"set-schedule", "delete-schedule", "pause-schedule", "resume-schedule"}
BY_HTTP |= {"trigger-schedule", "stats-schedule", "show-schedule", "list-schedules"}


def verbs():
    found = set()
    in_table = False  # inside a table of commands
    for line in PROTOCOL.read_text().split("## What is added\n")[1].splitlines():
        in_table = line.startswith("| command |") or (in_table and line.startswith("|"))
        form = r"\| `([a-z]+(?:-[a-z]+)+)[ `]" if in_table else r"`([a-z]+(?:-[a-z]+)+) <"
        if match := re.match(form, line):
            found.add(match[1])
    return found


class VerbsTest(unittest.TestCase):
    def test_each_verb_is_known(self):
        specified = verbs()
        self.assertGreaterEqual(len(specified), 35)
        self.assertEqual(set(OTHERS) - specified, set())
        for client in ("python/carillon.py", "javascript/carillon.mjs"):
            text = (CLIENTS / client).read_text()
            known = {verb for verb in specified if re.search(rf"[`\"]{verb}[ `\"$]", text)}
            self.assertEqual(sorted(specified - set(OTHERS) - BY_HTTP - known), [], client)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
