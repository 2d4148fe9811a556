"""docs/http-reference.md: every operation of the HTTP API, from the server's own openapi.json.

    http_reference.py CARILLON           # fails if the page is not today's
    http_reference.py CARILLON --write   # writes it
"""

import difflib
import http.client
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))

import daemon  # noqa: E402  (found through the line above)

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "http-reference.md"
HEAD = """# Operations of the HTTP API

Every operation, with what it takes. `tests/docs/http_reference.py` writes this page from the
server's `/openapi.json`, and a test fails if it is not today's. [http.md](http.md) explains by
examples; `/docs` of a server also has the answers. A *scope* is what the caller's
[token](security.md#tokens) must have, if the server has tokens. `?` marks a field of the query; a
field of the path stands in the request. Kinds: a *duration* is `250ms`, `30s` or `1h30m`; a
*moment* is RFC 3339 with an offset, or milliseconds since 1970; a *name* has 1 to 200 letters,
digits and any of `-+/;.$_()`, and no `-` in front.
"""
# In this order; others follow.
TAGS = ("jobs", "leases", "many jobs", "tubes", "schedules", "endpoints", "server")


def openapi(carillon):
    """Returns the document that the server answers with."""
    os.environ["CARILLON_BIN"] = carillon
    with tempfile.TemporaryDirectory(prefix="carillon-reference.") as folder:
        data = os.path.join(folder, "data")
        with daemon.carillon_serve(data, "--http", f"{daemon.HOST}:0") as server:
            connection = http.client.HTTPConnection(daemon.HOST, server.http_port(), timeout=20)
            connection.request("GET", "/openapi.json")
            return json.loads(connection.getresponse().read())


class Document:
    def __init__(self, api):
        self.api = api

    def found(self, value):
        """Returns what a reference leads to, with what is said beside it."""
        if "$ref" not in value:
            return value
        at = self.api
        for part in value["$ref"].split("/")[1:]:
            at = at[part.replace("~1", "/").replace("~0", "~")]
        return {**self.found(at), **{k: v for k, v in value.items() if k != "$ref"}}

    def kind(self, schema):
        """Returns what the values are, in few words."""
        name = schema.get("$ref", "").split("/")[-1]
        if name in ("Duration", "Moment"):
            return name.lower()
        if name == "Name":
            return "name"
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                return " or ".join(self.kind(one) for one in schema[choice])
        schema = self.found(schema)
        if "enum" in schema:
            return ", ".join(f"`{word}`" for word in schema["enum"])
        kind = schema.get("type", "any JSON")
        if isinstance(kind, list):
            kind = " or ".join(kind)
        if kind == "array":
            items = schema.get("items", {})
            named = "$ref" in items and "properties" in self.found(items)
            return "list of " + (items["$ref"].split("/")[-1] if named else self.kind(items))
        return {"string": "text", "boolean": "flag"}.get(kind, kind) + self.bounds(schema)

    @staticmethod
    def bounds(schema):
        low = schema.get("minimum", schema.get("minLength"))
        high = schema.get("maximum", schema.get("maxLength"))
        unit = " bytes" if "maxLength" in schema else ""
        if low is None and high is None:
            return ""
        if high is None:
            return f" from {low}" if low else ""
        return f", {low or 0} to {high}{unit}"

    def rows(self, schema, at=""):
        """Yields the name, the kind and the help of each field, also of those within objects."""
        schema = self.found(schema)
        needed = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            told = self.found(field)
            options = [one for one in field.get("oneOf", []) if one != {"type": "null"}]
            inner = self.found(options[0]) if len(options) == 1 else told
            has_fields = "properties" in inner
            kind = "object" if has_fields else self.kind(field)
            if len(options) < len(field.get("oneOf", [])) and has_fields:
                kind += " or null"
            of_its_kind = "$ref" in field and not has_fields
            help_text = (field if of_its_kind else told).get("description", "")
            if name in needed:
                help_text = f"Needed. {help_text}"
            yield f"{at}{name}", kind, help_text
            if has_fields:
                yield from self.rows(inner, f"{at}{name}.")

    def fields(self, operation):
        for parameter in operation.get("parameters", []):
            one = self.found(parameter)
            if one["in"] == "header":
                continue
            if one["in"] == "query":
                yield f"?{one['name']}", self.kind(one["schema"]), one.get("description", "")
        content = operation.get("requestBody", {}).get("content", {})
        for kind, body in content.items():
            if kind.endswith("json"):
                yield from self.rows(body["schema"])
                return

    def lines(self, method, path, operation):
        scopes = [one["token"][0] for one in operation.get("security", []) if "token" in one]
        yield f"### {operation['operationId']}"
        yield ""
        audited = f" · audited as `{operation['x-audit']}`" if "x-audit" in operation else ""
        yield f"`{method.upper()} {path}`" + (f" · scope `{scopes[0]}`" if scopes else "") + audited
        yield ""
        yield operation["summary"]
        yield ""
        fields = list(self.fields(operation))
        if fields:
            yield "| field | kind | meaning |"
            yield "|---|---|---|"
            for name, kind, help_text in fields:
                help_text = " ".join(help_text.split()).replace("|", "\\|")
                yield f"| `{name}` | {kind} | {help_text} |"
            yield ""

    def page(self):
        by_tag = {tag: [] for tag in TAGS}
        for path, methods in self.api["paths"].items():
            for method, operation in methods.items():
                tag = operation.get("tags", ["server"])[0]
                by_tag.setdefault(tag, []).append((method, path, operation))
        lines = [HEAD]
        for tag, operations in by_tag.items():
            if not operations:
                continue
            lines += [
                f"## {tag[0].upper()}{tag[1:]}",
                "",
                "| operation | request | |",
                "|---|---|---|",
            ]
            for method, path, operation in operations:
                name = operation["operationId"]
                link, request = f"[{name}](#{name.lower()})", f"`{method.upper()} {path}`"
                lines.append(f"| {link} | {request} | {operation['summary']} |")
            lines.append("")
            for method, path, operation in operations:
                lines += self.lines(method, path, operation)
        return "\n".join(lines).rstrip("\n") + "\n"


def main():
    today = Document(openapi(sys.argv[1])).page()
    if "--write" in sys.argv:
        PAGE.write_text(today, encoding="utf-8")
        return 0
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if there == today:
        return 0
    changes = difflib.unified_diff(there.splitlines(), today.splitlines(), "committed", "today's")
    print("\n".join(list(changes)[:60]))
    print(f"write it anew: {' '.join(sys.argv)} --write")
    return 1


sys.exit(main())
