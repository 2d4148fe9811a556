"""What the real server answers is what openapi.json says: each path, status and schema.
Row Q16 of the product's table."""

import itertools
import json
import pathlib
import re
import unittest

from http_case import HttpCase

try:
    import jsonschema
except ImportError:
    jsonschema = None

# For each operation its scope, and its body and further requests if it needs them
# (operation_world.h).
SAMPLES = json.loads(pathlib.Path(__file__).with_name("operations.json").read_text("utf-8"))
NOTHING = {
    **dict.fromkeys(["tube", "key", "group", "name", "file"], "none"),
    **{"id": 99_999_999, "held": 99_999_999, "token": "1-1-00"},
}
# These need a server in trouble, or are large (http_session_test.cpp).
UNREACHED = {"503", "413"}
# A change that takes long: http_lists_test.cpp.
UNREACHED_OF_POST = {"202"}
UNREACHED_OF = {
    # A reply without an end: events_test.py; a listener too many: http_events_test.cpp.
    "GET /v1/events": {"200", "429"},
    # An endpoint too many: http_lists_test.cpp.
    "PUT /v1/endpoints/{name}": {"409"},
    # The first request is in flight: http_batches_test.cpp.
    "POST /v1/schedules/{name}:trigger": {"409"},
    # A change that takes long: http_lists_test.cpp.
    "GET /v1/operations/{id}": {"200"},
    "DELETE /v1/operations/{id}": {"204"},
}


@unittest.skipIf(jsonschema is None, "Python's jsonschema is missing (Debian: python3-jsonschema)")
class OpenApiTest(HttpCase):
    options = ("--push-allow", "127.0.0.1")

    def setUp(self):
        super().setUp()
        self.seen = set()
        self.numbers = itertools.count(1)
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

    def asked(self, request, body=None, headers=None):
        """Asks for "METHOD path", and returns the status."""
        method, path = request.split(" ", 1)
        return self.ask(method, path, body, **(headers or {}))[0]

    def world(self):
        """Makes what the samples name (operation_world.h), and returns the names."""
        tube = f"t{next(self.numbers)}"
        names = {"tube": tube, "key": "k", "group": "g", "name": tube, "file": "app.js"}
        jobs = f"/v1/tubes/{tube}/jobs"
        fields = {"key": "k", "group": "g", "due": 4102444800500, "body": "x"}
        names["id"] = self.ask("POST", jobs, fields)[1]["id"]
        self.ask("POST", jobs, {"key": "held", "body": "x"})
        reserved = self.ask("POST", f"/v1/tubes/{tube}:reserve")[1]["jobs"][0]
        names["held"], names["token"] = reserved["id"], reserved["lease"]
        for thing in ("schedule", "endpoint"):
            body = filled(SAMPLES[f"put{thing.title()}"]["body"], names)
            self.assertEqual(self.asked(f"PUT /v1/{thing}s/{tube}", body), 201)
        return names

    def test_every_path_and_status(self):
        self.ask("POST", "/v1/tubes/once/jobs", "x", Idempotency_Key="taken")
        described = set()
        for pattern, methods in self.api["paths"].items():
            for method, operation in methods.items():
                request = f"{method.upper()} {pattern}"
                statuses = set(operation["responses"]) - {"default"} - UNREACHED
                statuses -= UNREACHED_OF.get(request, set())
                statuses -= UNREACHED_OF_POST if method == "post" else set()
                described |= {(method.upper(), pattern, status) for status in statuses}
                with self.subTest(request=request):
                    self.check_operation(request, operation, statuses)
        self.assertEqual(described - self.seen, set())

    def check_operation(self, request, operation, statuses):
        sample = SAMPLES.get(operation.get("operationId"), {})
        names = self.world()
        request = request.split(" ")[0] + " " + sample.get("path", request.split(" ")[1])
        body = sample.get("body")
        for method, path in sample.get("before", []):
            self.asked(f"{method} {filled(path, names)}")
        for status, *asked in faults_of(request, body):
            if str(status) in statuses:
                self.expect(status, names if status != 404 else NOTHING, *asked)
        if "{token}" in request:
            self.expect(409, NOTHING, request, body)
        if any(status[0] == "2" for status in statuses):
            status = self.asked(*filled([request, body], names))
            self.assertIn(status, (200, 201, 204), f"{request} {body}")
        for status, *asked in sample.get("also", []):
            self.expect(status, names, *asked)

    def expect(self, status, names, *asked):
        asked = filled(list(asked), names)
        self.assertEqual(self.asked(*asked), status, asked)


def filled(value, names):
    """Replaces the names in braces in a JSON value."""
    text = json.dumps(value)
    for name, what in names.items():
        text = text.replace("{" + name + "}", str(what))
    return json.loads(text)


def faults_of(request, body):
    """What is wrong with any operation in the same way: each (status, request, body, headers)."""
    if request.startswith(("GET", "DELETE")):
        yield 400, request + ("&" if "?" in request else "?") + "x=1", body
    else:
        yield 400, request, {**(body or {}), "x": 1}
    yield 404, request, body
    yield 412, request, body, {"If-Match": '"x"'}
    other = "json-patch+json" if request.startswith("PATCH") else "x-www-form-urlencoded"
    yield 415, request, body, {"Content-Type": f"application/{other}"}
    yield 422, request, body, {"Idempotency-Key": "taken"}
    if request.startswith("GET"):
        yield 304, request, None, {"If-None-Match": "*"}


if __name__ == "__main__":
    unittest.main()
