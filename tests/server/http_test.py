"""The HTTP API of the real server: jobs put, seen, changed and cancelled, over its own port."""

import gzip
import json
import pathlib
import re
import subprocess
import time
import unittest

import promtool
from http_case import HttpCase


class HttpTest(HttpCase):
    def test_a_job_is_durable_and_goes_to_a_worker_of_the_other_protocol(self):
        status, job = self.ask("POST", "/v1/tubes/mail/jobs", {"body": "hello", "key": "a"})
        self.assertEqual([status, job["id"], job["state"]], [201, 1, "ready"])
        self.server.kill()
        self.serve()
        worker = self.server.connect()
        worker.call(b"watch mail")
        reply = worker.call(b"reserve-with-timeout 5")
        self.assertEqual([reply.number(), reply.body], [1, b"hello"])
        self.assertEqual(self.ask("GET", "/v1/tubes/mail/keys/a")[1]["state"], "reserved")
        self.assertEqual(self.ask("DELETE", "/v1/jobs/1")[0], 409)

    def test_files_of_the_console_are_compressed_and_sent_once(self):
        client = self.client()

        def get(**headers):
            client.request("GET", "/console/console.css", headers=headers)
            reply = client.getresponse()
            return reply, reply.read()

        plain, text = get()
        self.assertEqual([plain.status, plain.getheader("Content-Encoding")], [200, None])
        self.assertIn("default-src 'self'", plain.getheader("Content-Security-Policy"))
        packed, zipped = get(**{"Accept-Encoding": "br, gzip"})
        self.assertEqual(packed.getheader("Content-Encoding"), "gzip")
        self.assertEqual(gzip.decompress(zipped), text)
        self.assertNotEqual(packed.getheader("ETag"), plain.getheader("ETag"))
        again, nothing = get(**{"If-None-Match": plain.getheader("ETag")})
        self.assertEqual([again.status, nothing], [304, b""])
        self.assertEqual(again.getheader("Cache-Control"), "no-cache")
        self.assertEqual(self.ask("GET", "/console/nothing.js")[0], 404)

    def test_the_type_of_each_problem_leads_to_the_page_of_the_api(self):
        problem = self.ask("GET", "/v1/jobs/7")[1]
        self.assertEqual(problem["type"], "/docs#not-found")
        client = self.client()
        client.request("GET", "/docs")
        page = client.getresponse().read().decode()
        root = pathlib.Path(__file__).resolve().parents[2]
        kinds = (root / "src/server/api/problem.h").read_text(encoding="utf-8")
        guide = (root / "docs/http.md").read_text(encoding="utf-8")
        names = re.findall(r'ProblemKind k\w+\{\d+, "([a-z-]+)"', kinds)
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertIn(f'<tr id="{name}">', page)
            self.assertIn(f"`{name}`", guide)

    def test_a_delay_is_never_early(self):
        begin = time.time()
        status, job = self.ask("POST", "/v1/tubes/t/jobs", {"delay": "0.3s"})
        self.assertEqual([status, job["state"]], [201, "delayed"])
        while self.ask("GET", "/v1/jobs/1")[1]["state"] == "delayed":
            time.sleep(0.01)
        self.assertGreaterEqual(time.time() - begin, 0.3)

    def test_a_page_of_another_site_changes_nothing(self):
        headers = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
        self.assertEqual(self.ask("POST", "/v1/tubes/t/jobs", "x", **headers)[0], 403)
        self.assertEqual(self.ask("GET", "/v1/stats", Host="evil.example")[0], 421)
        self.assertEqual(self.ask("GET", "/v1/stats")[1]["jobs"]["put"], 0)

    def test_prometheus_is_told_in_its_text_format(self):
        self.assertEqual(self.ask("POST", "/v1/tubes/mail/jobs", "x")[0], 201)
        asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.3"
        client = self.client()
        client.request("GET", "/metrics", headers={"Accept": asked})
        reply = client.getresponse()
        text = reply.read().decode()
        self.assertEqual(reply.status, 200)
        self.assertTrue(reply.getheader("Content-Type").startswith("text/plain; version=0.0.4;"))
        self.assertIn('carillon_jobs{tube="mail",state="ready"} 1\n', text)
        self.assertNotIn("carillon_commit_duration_seconds_count 0\n", text)

    def test_promtool_finds_no_fault_in_the_metrics(self):
        program = promtool.find()
        if not program:
            self.skipTest(promtool.MISSING)
        self.assertEqual(self.ask("POST", "/v1/tubes/mail/jobs", "x")[0], 201)
        client = self.client()
        client.request("GET", "/metrics")
        text = client.getresponse().read()
        self.assertIn(b"carillon_jobs", text)
        subprocess.run([program, "check", "metrics"], input=text, check=True)

    def test_alerts_and_dashboard_ask_for_what_the_server_tells(self):
        client = self.client()
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        told = set(re.findall(r"^(?:# TYPE )?(carillon_\w+)", text, re.M))
        folder = pathlib.Path(__file__).parents[2] / "packaging" / "prometheus"
        for name in ("carillon.rules.yml", "carillon.dashboard.json"):
            asked = set(re.findall(r"\bcarillon_\w+", (folder / name).read_text()))
            self.assertTrue(asked)
            self.assertLessEqual(asked, told, name)
        json.loads((folder / "carillon.dashboard.json").read_text())

    def test_a_stop_answers_what_was_asked(self):
        self.assertEqual(self.ask("POST", "/v1/tubes/t/jobs", "x")[0], 201)
        self.assertEqual(self.server.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
