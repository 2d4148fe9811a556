"""Tools of others find no fault in openapi.json, nor in a server that they compare with it:
openapi-spec-validator, Redocly's linter, and schemathesis, which makes up requests.

Requests that openapi.json allows may still be refused, as fields may contradict each other (delay
and due): so `positive_data_acceptance` is left out.
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

import openapi_tools
from http_case import HttpCase

HERE = Path(__file__).resolve().parent


class OpenApiToolsTest(HttpCase):
    def setUp(self):
        super().setUp()
        self.api = Path(self.data).parent / f"{Path(self.data).name}.openapi.json"
        self.addCleanup(self.api.unlink)
        # In lines, so that a linter can name one.
        self.api.write_text(json.dumps(self.ask("GET", "/openapi.json")[1], indent=1), "utf-8")

    def program(self, found, name=""):
        path, why = found
        if why:
            self.skipTest(why)
        return str(path / name if name else path)

    def check(self, *command, **environment):
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            cwd=self.api.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=200,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_it_is_valid(self):
        self.check(
            self.program(openapi_tools.python_tools(), "openapi-spec-validator"), str(self.api)
        )

    def test_a_linter_finds_nothing(self):
        program = self.program(openapi_tools.redocly())
        told = self.check(program, "lint", "--format=json", str(self.api), REDOCLY_TELEMETRY="off")
        found = json.loads(told[told.index("{") : told.rindex("}") + 1])
        self.assertEqual(found["totals"], {"errors": 0, "warnings": 0, "ignored": 0}, told)

    def test_made_up_requests_get_described_answers(self):
        self.check(
            self.program(openapi_tools.python_tools(), "schemathesis"),
            "run",
            str(self.api),
            "--url",
            f"http://127.0.0.1:{self.port}",
            "--seed=1",
            "--max-examples=2",
            "--phases=coverage,fuzzing",
            "--exclude-path=/v1/events",  # it has no end
            "--exclude-checks=positive_data_acceptance",
            "--continue-on-failure",
            "--no-shrink",
            "--generation-database=none",
            "--warnings=off",
            "--request-timeout=20",
            PYTHONPATH=str(HERE),
            SCHEMATHESIS_HOOKS="openapi_hooks",
        )
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


if __name__ == "__main__":
    unittest.main()
