"""What the real server answers is what openapi.json says: each path, status and schema.
Row Q16 of the product's table."""

import json
import re
import time
import unittest

import daemon
from http_case import HttpCase

try:
    import jsonschema
except ImportError:
    jsonschema = None

OTHER_PATCH = {"Content_Type": "application/json-patch+json"}


@unittest.skipIf(daemon.stand_in(), "beanstalkd speaks no HTTP")
@unittest.skipIf(jsonschema is None, "Python's jsonschema is missing (Debian: python3-jsonschema)")
class OpenApiTest(HttpCase):
    options = ("--push-allow", "127.0.0.1")

    def setUp(self):
        super().setUp()
        self.seen = set()
        self.connection = self.client()
        self.api = None
        self.api = self.ask("GET", "/openapi.json")[1]

    def ask(self, method, path, body=None, **headers):
        """Returns the status and the JSON of the answer, which must be one that is described."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        text = body
        if isinstance(body, dict):
            text = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        self.connection.request(method, path, text, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        kind = (reply.getheader("Content-Type") or "").split(";")[0]
        value = json.loads(text) if kind.endswith("json") else None
        if self.api:
            self.check(method, path.split("?")[0], body, reply, kind, value)
        return reply.status, value

    def check(self, method, path, body, reply, kind, value):
        pattern, operation = self.operation(method, path)
        status = str(reply.status)
        where = f"{method} {path} -> {status} {value}"
        self.assertIn(status, operation["responses"], where)
        self.seen.add((method, pattern, status))
        described = self.resolved(operation["responses"][status])
        if not kind:
            self.assertNotIn("content", described, where)
            return
        self.assertIn(kind, described["content"], where)
        if schema := described["content"][kind].get("schema"):
            self.validate(value, schema, where)
        if reply.status < 300 and isinstance(body, dict):
            content = operation["requestBody"]["content"]
            self.validate(body, content["application/json"]["schema"], where)
        for header in reply.headers:
            is_put = header in ("Location", "ETag", "Idempotent-Replayed") and reply.status < 300
            is_of_rate = header.startswith("RateLimit") and reply.status in (200, 201, 429)
            if is_put or is_of_rate:
                self.assertIn(header, described.get("headers", {}), where)

    def operation(self, method, path):
        for pattern, methods in self.api["paths"].items():
            form = re.sub(r"\\{\w+\\}", "[^/:]+", re.escape(pattern))
            if re.fullmatch(form, path) and method.lower() in methods:
                return pattern, methods[method.lower()]
        self.fail(f"{method} {path} is not described")
        return None

    def resolved(self, value):
        while "$ref" in value:
            found = self.api
            for part in value["$ref"].split("/")[1:]:
                found = found[part]
            value = found
        return value

    def validate(self, value, schema, where):
        schema = {**schema, "components": self.api["components"]}
        validator = jsonschema.Draft202012Validator(
            schema, format_checker=jsonschema.FormatChecker()
        )
        errors = [f"{list(one.path)}: {one.message}" for one in validator.iter_errors(value)]
        self.assertEqual(errors, [], where)

    def statuses(self, *asked):
        """Asks for each (status, method, path, body, headers)."""
        for status, method, path, *rest in asked:
            body = rest[0] if rest else None
            headers = rest[1] if len(rest) > 1 else {}
            with self.subTest(request=f"{method} {path} {body}"):
                self.assertEqual(self.ask(method, path, body, **headers)[0], status)

    def test_every_path_and_status(self):
        self.jobs()
        self.keys()
        self.many_jobs()
        self.rates()
        self.leases()
        self.schedules()
        self.endpoints()
        self.tubes()
        self.documents()
        self.keys_of_other_requests()
        described = {
            (method.upper(), path, status)
            for path, methods in self.api["paths"].items()
            for method, operation in methods.items()
            for status in operation["responses"]
            if status != "default"
        }
        # A reply without an end: events_test.py.
        described -= {("GET", "/v1/events", "200")}
        # An endpoint too many: http_lists_test.cpp.
        described -= {("PUT", "/v1/endpoints/{name}", "409")}
        # The first request is in flight: http_batches_test.cpp.
        described -= {("POST", "/v1/schedules/{name}:trigger", "409")}
        # These need a server in trouble, or a change that takes long (http_lists_test.cpp).
        described = {one for one in described if one[2] not in ("202", "503", "413")}
        described -= {
            (verb, "/v1/operations/{id}", status)
            for verb, status in [("GET", "200"), ("DELETE", "204")]
        }
        self.assertEqual(described - self.seen, set())

    def jobs(self):
        full = {
            "body": "x",
            "delay": "1h",
            "priority": 7,
            "ttr": "10s",
            "key": "k",
            "group": "g",
            "on_conflict": "replace",
            "key_window": "1h",
            "expires_in": "2d",
            "at_expiry": "dead",
            "spread": "1s",
            "content_type": "text/plain",
            "metadata": {"order": 7},
            "traceparent": f"00-{'1' * 32}-{'2' * 16}-01",
            "tracestate": "a=b",
            "retry": {
                "max_attempts": 3,
                "lost_fails": True,
                "backoff": {"type": "exponential", "initial": "1s", "max": "1h", "jitter": 5},
            },
        }
        jobs = "/v1/tubes/t/jobs"
        once = {"Idempotency_Key": '"a"'}
        self.statuses(
            (201, "POST", jobs, full),
            (200, "POST", jobs, full),
            (409, "POST", jobs, {**full, "on_conflict": "reject"}),
            (400, "POST", jobs, {"x": 1}),
            (201, "POST", jobs, "plain", {**once, "Carillon_Delay": "1h"}),
            (201, "POST", jobs, "plain", {**once, "Carillon_Delay": "1h"}),
            (422, "POST", jobs, "other", once),
            (
                201,
                "POST",
                jobs,
                {
                    "due": int(time.time() * 1000),
                    "body_base64": "/w==",
                    "expires_at": "2100-01-01T00:00:00Z",
                },
            ),
            (200, "GET", jobs),
            (200, "GET", jobs + "?state=delayed&page_size=1"),
            (400, "GET", jobs + "?x=1"),
            (200, "GET", "/v1/jobs/1"),
            (304, "GET", "/v1/jobs/1", None, {"If_None_Match": "*"}),
            (400, "GET", "/v1/jobs/x"),
            (404, "GET", "/v1/jobs/99"),
            (200, "GET", "/v1/jobs/1/body"),
            (400, "GET", "/v1/jobs/x/body"),
            (404, "GET", "/v1/jobs/99/body"),
            (
                200,
                "PATCH",
                "/v1/jobs/1",
                {"priority": 3, "expires_at": None, "due": "2090-01-01T00:00:00Z"},
            ),
            (400, "PATCH", "/v1/jobs/1", {"x": 3}),
            (415, "PATCH", "/v1/jobs/1", {}, OTHER_PATCH),
            (404, "PATCH", "/v1/jobs/99", {}),
            (412, "PATCH", "/v1/jobs/1", {}, {"If_Match": '"x"'}),
            (412, "DELETE", "/v1/jobs/1", None, {"If_Match": '"x"'}),
            (204, "POST", "/v1/jobs/1:bury", {"priority": 7}),
            (200, "GET", "/v1/tubes/t/next?state=buried"),
            (404, "GET", "/v1/tubes/none/next"),
            (400, "GET", "/v1/tubes/mail/next?state=dead"),
            (404, "POST", "/v1/jobs/99:bury"),
            (400, "POST", "/v1/jobs/1:bury", {"x": 1}),
            (204, "POST", "/v1/jobs/1:kick"),
            (404, "POST", "/v1/jobs/99:kick"),
            (400, "POST", "/v1/jobs/x:kick"),
            (400, "DELETE", "/v1/jobs/1?if_reserved=x"),
            (204, "DELETE", "/v1/jobs/1"),
            (404, "DELETE", "/v1/jobs/1"),
        )
        self.reserved("r")
        self.statuses(
            (409, "DELETE", f"/v1/jobs/{self.job}"),
            (409, "PATCH", f"/v1/jobs/{self.job}", {"priority": 1}),
        )

    def reserved(self, tube, **fields):
        """Puts a job and reserves it."""
        self.ask("POST", f"/v1/tubes/{tube}/jobs", {"body": "x", **fields})
        _, got = self.ask(
            "POST",
            f"/v1/tubes/{tube}:reserve",
            {"max": 1, "wait": "5s", "lease": "1m", "worker": "w"},
        )
        self.job = got["jobs"][0]["id"]
        return got["jobs"][0]["lease"]

    def keys(self):
        key = "/v1/tubes/t/keys/order-7"
        self.statuses(
            (404, "GET", key),
            (404, "PATCH", key, {}),
            (404, "DELETE", key),
            (412, "PUT", key, {}, {"If_Match": "*"}),
            (201, "PUT", key, {"body": "a", "delay": "1h"}),
            (200, "PUT", key, {"body": "b", "delay": "1h"}),
            (412, "PUT", key, {"body": "b"}, {"If_None_Match": "*"}),
            (412, "PUT", key, {"body": "b"}, {"If_Match": '"x"'}),
            (400, "PUT", key, {"x": 1}),
            (200, "GET", key),
            (304, "GET", key, None, {"If_None_Match": "*"}),
            (400, "GET", "/v1/tubes/a%20b/keys/k"),
            (200, "PATCH", key, {"priority": 1}),
            (400, "PATCH", key, {"x": 1}),
            (415, "PATCH", key, {}, OTHER_PATCH),
            (412, "PATCH", key, {}, {"If_Match": '"x"'}),
            (412, "DELETE", key, None, {"If_Match": '"x"'}),
            (400, "DELETE", key + "?if_reserved=x"),
            (204, "DELETE", key),
        )
        self.reserved("t2", key="k")
        held = "/v1/tubes/t2/keys/k"
        self.statuses(
            (409, "PUT", held, {"body": "b"}),
            (409, "PATCH", held, {"priority": 1}),
            (409, "DELETE", held),
            (202, "DELETE", held + "?if_reserved=ask"),
        )

    def many_jobs(self):
        batch = "/v1/tubes/b/jobs:batch"
        once = {"Idempotency_Key": "b"}
        taken = {"jobs": [{"key": "k", "on_conflict": "ignore"}]}
        self.statuses(
            (200, "POST", batch, {"jobs": [{"key": "k"}, {"body": "y", "delay": "1h"}]}),
            (200, "POST", batch, taken, once),
            (200, "POST", batch, taken, once),
            (422, "POST", batch, {"jobs": [{}]}, once),
            (409, "POST", batch, {"jobs": [{"key": "k"}]}),
            (400, "POST", batch, {"jobs": []}),
        )
        window = {"tube": "b2", "due_after": "2100-01-01T00:00:00Z"}
        window["due_before"] = "2100-01-01T00:01:00Z"
        of = {"tube": "b", "state": "delayed", "due_after": 0, "due_before": "2100-01-01T00:00:00Z"}
        self.statuses(
            (200, "POST", "/v1/jobs:retry", {"filter": of, "limit": 1, "dry_run": True}),
            (404, "POST", "/v1/jobs:retry", {"filter": {"tube": "none"}}),
            (400, "POST", "/v1/jobs:retry", {}),
            (200, "POST", "/v1/jobs:move", {"filter": of, "to": "b2"}),
            (400, "POST", "/v1/jobs:move", {}),
            (404, "POST", "/v1/jobs:move", {"filter": {"tube": "none"}, "to": "b"}),
            (200, "POST", "/v1/jobs:spread", {"filter": window, "over": "1h", "dry_run": True}),
            (400, "POST", "/v1/jobs:spread", {"filter": window, "over": "1s"}),
            (404, "POST", "/v1/jobs:spread", {"filter": dict(window, tube="none"), "over": "1h"}),
            (200, "GET", "/v1/tubes/b2/due?by=hour&spans=3"),
            (400, "GET", "/v1/tubes/b2/due?by=year"),
            (404, "GET", "/v1/tubes/none/due"),
            (200, "GET", "/v1/wheel?tube=b2"),
            (400, "GET", "/v1/wheel"),
            (404, "GET", "/v1/wheel?tube=none"),
            (200, "GET", "/v1/tubes/b2/dead"),
            (400, "GET", "/v1/tubes/b2/dead?x=1"),
            (404, "GET", "/v1/tubes/none/dead"),
            (200, "POST", "/v1/jobs:cancel", {"filter": {"tube": "b2"}}),
            (400, "POST", "/v1/jobs:cancel", {}),
            (404, "POST", "/v1/jobs:cancel", {"filter": {"tube": "none"}}),
            (200, "POST", "/v1/tubes/b:clear", {"dry_run": True, "filter": {"state": "ready"}}),
            (200, "POST", "/v1/tubes/b:clear"),
            (404, "POST", "/v1/tubes/none:clear"),
            (400, "POST", "/v1/tubes/a%20b:clear"),
            (404, "GET", "/v1/operations/99"),
            (400, "GET", "/v1/operations/x"),
            (404, "DELETE", "/v1/operations/99"),
            (400, "DELETE", "/v1/operations/x"),
        )

    def rates(self):
        rate = {"limits": {"put_rate": {"jobs": 1, "per": "1h"}}}
        self.statuses(
            (200, "PATCH", "/v1/tubes/slow", rate),
            (201, "POST", "/v1/tubes/slow/jobs", {}),
            (429, "POST", "/v1/tubes/slow/jobs", {}),
            (429, "POST", "/v1/tubes/slow/jobs:batch", {"jobs": [{}]}),
            (429, "PUT", "/v1/tubes/slow/keys/k", {}),
            (200, "GET", "/v1/tubes/slow"),
        )

    def leases(self):
        lease = "/v1/leases/"
        for verb, body, status in [
            ("ack", None, 204),
            ("nack", {"error": "x", "delay": "1s"}, 200),
            ("nack", {"failed": False, "priority": 1}, 200),
        ]:
            token = self.reserved("l" + verb + str(bool(body and "error" in body)))
            self.statuses(
                (200, "GET", f"{lease}{token}/body"),
                (200, "POST", f"{lease}{token}:extend", {"lease": "1m"}),
                (409, "POST", f"/v1/jobs/{self.job}:bury"),
                (status, "POST", f"{lease}{token}:{verb}", body),
                (409, "POST", f"{lease}{token}:{verb}"),
                (409, "GET", f"{lease}{token}/body"),
            )
        ack = f"{lease}{self.reserved('l')}:ack"
        once = {"Idempotency_Key": "ack"}
        self.statuses(
            (204, "POST", ack, None, once),
            (204, "POST", ack, None, once),
        )
        token = self.reserved("l")
        self.statuses(
            (409, "POST", lease + "x:extend"),
            (409, "POST", lease + "x:ack"),
            (400, "POST", f"{lease}{token}:nack", {"x": 1}),
            (400, "POST", f"{lease}{token}:extend", {"x": 1}),
            (400, "POST", "/v1/tubes/l:reserve", {"max": 0}),
            (200, "POST", "/v1/tubes/l:reserve"),
        )

    def keys_of_other_requests(self):
        """The request with the key was an :ack (leases)."""
        for pattern, methods in self.api["paths"].items():
            path = re.sub(r"\{(\w+)\}", r"1", pattern)
            for method, operation in methods.items():
                taken = [one.get("$ref", "") for one in operation.get("parameters", [])]
                if "#/components/parameters/Idempotency-Key" in taken:
                    body = {"jobs": [{}]} if path.endswith(":batch") else None
                    self.statuses((422, method.upper(), path, body, {"Idempotency_Key": "ack"}))

    def schedules(self):
        one = "/v1/schedules/report"
        cron = {
            "cron": "0 9 * * MON",
            "time_zone": "Europe/Berlin",
            "gap": "after",
            "catch_up": "all",
            "catch_up_window": "1d",
            "overlap": "queue",
            "spread": "1m",
            "job": {
                "tube": "s",
                "priority": 1,
                "ttr": "1m",
                "group": "acme",
                "retry": {"max_attempts": 3, "backoff": {"initial": "1s", "max": "1h"}},
                "expires_in": "12h",
                "at_expiry": "dead",
                "content_type": "text/plain",
                "metadata": {"n": 1},
                "body": "x",
            },
        }
        self.statuses(
            (404, "GET", one),
            (404, "DELETE", one),
            (404, "POST", one + ":pause"),
            (404, "POST", one + ":resume"),
            (404, "POST", one + ":trigger"),
            (201, "PUT", one, {"every": "1h", "start": "2026-01-01T00:00:00Z"}),
            (200, "PUT", one, cron),
            (412, "PUT", one, cron, {"If_None_Match": "*"}),
            (400, "PUT", one, {}),
            (200, "GET", one),
            (204, "POST", one + ":pause"),
            (204, "POST", one + ":resume"),
            (201, "POST", one + ":trigger", None, {"Idempotency_Key": "triggered"}),
            (201, "POST", one + ":trigger", None, {"Idempotency_Key": "triggered"}),
            (422, "POST", one + ":trigger", {}, {"Idempotency_Key": "triggered"}),
            (200, "GET", "/v1/schedules?page_size=10"),
            (400, "GET", "/v1/schedules?x=1"),
            (200, "GET", one),
            (204, "DELETE", one),
        )

    def endpoints(self):
        one = "/v1/endpoints/hook"
        # To an address that is refused: nothing is sent.
        wanted = {"url": "https://127.0.0.1/a", "tube": "pushed", "headers": {"A": "b"}}
        self.statuses(
            (404, "GET", one),
            (404, "DELETE", one),
            *((404, "POST", f"{one}:{verb}") for verb in ("pause", "resume", "rotate", "test")),
            (201, "PUT", one, wanted),
            (200, "PUT", one, {**wanted, "format": "cloudevents", "concurrency": 2}),
            (412, "PUT", one, wanted, {"If_None_Match": "*"}),
            (400, "PUT", one, {"tube": "pushed"}),
            (200, "GET", one),
            (200, "POST", one + ":pause"),
            (200, "POST", one + ":resume"),
            (200, "POST", one + ":rotate"),
            (200, "POST", one + ":rotate", {"overlap": "1h"}),
            (400, "POST", one + ":rotate", {"overlap": "1000d"}),
            (200, "GET", one),
            (200, "POST", one + ":test"),
            (200, "GET", "/v1/endpoints?page_size=10"),
            (400, "GET", "/v1/endpoints?x=1"),
            (204, "DELETE", one),
        )

    def tubes(self):
        tube = "/v1/tubes/limits"
        limits = {"max_running": 3, "rate": {"jobs": 10, "per": "1m", "burst": 5}}
        self.statuses(
            (404, "GET", tube),
            (200, "PATCH", tube, {"limits": limits, "retry": {"max_attempts": 2}}),
            (200, "PATCH", tube, {"retention": "7d"}),
            (400, "PATCH", tube, {"x": 1}),
            (415, "PATCH", tube, {}, OTHER_PATCH),
            (200, "GET", tube),
            (200, "PATCH", tube, {"limits": {"rate": None}, "retry": None, "draining": True}),
            (204, "POST", tube + ":pause", {"duration": "1m"}),
            (204, "POST", tube + ":pause"),
            (200, "GET", tube),
            (400, "POST", tube + ":pause", {"x": 1}),
            (404, "POST", "/v1/tubes/none:pause"),
            (204, "POST", tube + ":resume"),
            (404, "POST", "/v1/tubes/none:resume"),
            (400, "POST", "/v1/tubes/a%20b:resume"),
            (400, "GET", "/v1/tubes/a%20b"),
            (200, "POST", tube + ":kick", {"max": 1}),
            (400, "POST", tube + ":kick", {"x": 1}),
            (404, "POST", "/v1/tubes/none:kick"),
            (404, "GET", tube + "/groups/g"),
            (204, "PATCH", tube + "/groups/g", {"weight": 2, "limits": limits}),
            (400, "PATCH", tube + "/groups/g", {"weight": 0}),
            (415, "PATCH", tube + "/groups/g", {}, OTHER_PATCH),
            (200, "GET", tube + "/groups/g"),
            (400, "GET", tube + "/groups/a%20b"),
            (200, "GET", tube + "/groups?page_size=1"),
            (400, "GET", tube + "/groups?page_size=0"),
            (404, "GET", "/v1/tubes/none/groups"),
            (200, "GET", "/v1/tubes"),
            (400, "GET", "/v1/tubes?x=1"),
        )

    def documents(self):
        self.statuses(
            (400, "POST", "/v1/checkpoint", {"x": 1}),
            (200, "POST", "/v1/checkpoint"),
            (409, "POST", "/v1/checkpoint"),
            (200, "GET", "/v1/stats"),
            (200, "GET", "/v1/history"),
            (400, "GET", "/v1/history?seconds=0"),
            (200, "GET", "/v1/audit?limit=7"),
            (400, "GET", "/v1/audit?x=1"),
            (400, "GET", "/v1/events?x=1"),
            (200, "GET", "/metrics"),
            (200, "GET", "/healthz"),
            (200, "GET", "/readyz"),
            (404, "GET", "/console/nothing.js"),
        )
        for path in ("/openapi.json", "/docs", "/", "/console/docs.css"):
            self.statuses((200, "GET", path), (304, "GET", path, None, {"If-None-Match": "*"}))


if __name__ == "__main__":
    unittest.main()
