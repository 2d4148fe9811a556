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
        self.assertGreaterEqual(len(specified), 14)
        self.assertEqual(set(OTHERS) - specified, set())
        for client in ("python/carillon.py", "javascript/carillon.mjs"):
            text = (CLIENTS / client).read_text()
            known = {verb for verb in specified if re.search(rf"[`\"]{verb}[ `\"$]", text)}
            self.assertEqual(sorted(specified - set(OTHERS) - known), [], client)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
