"""The page /docs in a real browser: it shows each operation and each schema of openapi.json."""

import shutil
import tempfile
import time
import unittest

import browser as console
from browser import daemon

# The id and the text of each element that a selector finds.
FOUND = """return [...document.querySelectorAll(arguments[0])].map(one =>
  [one.id, one.textContent])"""
LOST = """return [...document.querySelectorAll('a[href^="#"]')].map(one => one.hash.slice(1))
  .filter(id => !document.getElementById(id))"""


class DocsTest(unittest.TestCase):
    def setUp(self):
        data = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, data, True)
        server = daemon.carillon_serve(data, "--http", f"{daemon.HOST}:0").start()
        self.addCleanup(server.__exit__)
        self.http = server.http_port()
        self.page = console.open_browser()
        self.addCleanup(shutil.rmtree, self.page.profile, True)
        self.addCleanup(self.page.quit)

    def test_each_operation_and_each_schema_is_shown_with_no_error(self):
        api = console.Api(self.http)("GET", "/openapi.json")
        self.page.get(f"http://{daemon.HOST}:{self.http}/docs")
        end = time.monotonic() + 15
        about = "return document.getElementById('about').textContent"
        while "needs JavaScript" in (told := self.page.execute_script(about)):
            self.assertLess(time.monotonic(), end, "the page never changes")
            time.sleep(0.05)
        self.assertRegex(told, r"^Made from openapi\.json ")

        shown = dict(self.page.execute_script(FOUND, "#operations > details"))
        for path, methods in api["paths"].items():
            for method, operation in methods.items():
                text = shown.pop(operation["operationId"])
                for part in (method.upper(), path, operation["summary"]):
                    self.assertIn(part, text)
                for status, answer in operation["responses"].items():
                    self.assertIn(status, text)
                    for kind, content in answer.get("content", {}).items():
                        self.assertIn("" if "schema" in content else kind, text)
        self.assertEqual(shown, {})

        shown = dict(self.page.execute_script(FOUND, "#list-of-schemas > details"))
        for name, schema in api["components"]["schemas"].items():
            text = shown.pop(f"schema-{name}")
            for field in schema.get("properties", {}):
                self.assertIn(field, text)
        self.assertEqual(shown, {})

        self.assertEqual(self.page.execute_script(LOST), [])
        faults = [line for line in self.page.get_log("browser") if line["level"] == "SEVERE"]
        self.assertEqual(faults, [])


if __name__ == "__main__":
    if reason := console.why_not():
        print(f"left out: {reason}")
        raise SystemExit(77)
    unittest.main()
