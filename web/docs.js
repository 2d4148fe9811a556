// Shows openapi.json: each operation with its parameters, body and answers, and the schemas.
"use strict";

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

function nameOf(ref) {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

// Returns a schema in a few words, with a link to each one that has a name.
function inWords(schema = {}) {
  const words = element("span");
  const list = (parts, between) =>
    parts.forEach((part, n) => words.append(n ? between : "", inWords(part)));
  if (!Object.keys(schema).length) words.append("anything");
  else if (schema.$ref) {
    const name = nameOf(schema.$ref);
    words.append(element("a", { href: "#schema-" + name }, name));
  } else if (schema.oneOf || schema.anyOf) list(schema.oneOf || schema.anyOf, " or ");
  else if (schema.enum) words.append(schema.enum.join(" | "));
  else if ("const" in schema) words.append(String(schema.const));
  else if (schema.type === "array") words.append("list of ", inWords(schema.items));
  else if (schema.type === "object") words.append("object");
  else words.append([].concat(schema.type).join(" or "));
  const bounds = [];
  if ("minimum" in schema) bounds.push("from " + schema.minimum);
  if ("maximum" in schema) bounds.push("to " + schema.maximum);
  if ("maxLength" in schema) bounds.push("up to " + schema.maxLength + " bytes");
  if ("maxItems" in schema) bounds.push("up to " + schema.maxItems);
  if ("default" in schema) bounds.push("default " + schema.default);
  if (bounds.length) words.append(" (" + bounds.join(", ") + ")");
  return words;
}

function table(heads, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))),
    element("tbody", {}, ...rows.map((row) =>
      element("tr", {}, ...row.map((cell) => element("td", {}, cell))))));
}

function showSchema(name, schema) {
  const inside = element("div", { className: "inside" });
  if (schema.description) inside.append(element("p", {}, schema.description));
  if (schema.properties) {
    const required = new Set(schema.required || []);
    inside.append(table(["field", "value", ""], Object.entries(schema.properties).map(
      ([field, value]) => [
        element("code", {}, field + (required.has(field) ? " *" : "")), inWords(value),
        value.description || ""])));
  } else inside.append(element("p", {}, inWords(schema)));
  return element("details", { id: "schema-" + name },
    element("summary", {}, element("code", {}, name)), inside);
}

function showOperation(method, path, operation, shared) {
  const inside = element("div", { className: "inside" });
  if (operation.parameters) {
    inside.append(element("h4", {}, "Parameters"), table(["name", "in", "value", ""],
      operation.parameters.map((one) => (one.$ref ? shared[nameOf(one.$ref)] : one)).map((one) =>
        [element("code", {}, one.name), one.in, inWords(one.schema), one.description || ""])));
  }
  if (operation.requestBody) {
    inside.append(element("h4", {}, "Body"), table(["type", "value"],
      Object.entries(operation.requestBody.content).map(([type, one]) =>
        [element("code", {}, type), inWords(one.schema)])));
  }
  inside.append(element("h4", {}, "Answers"), table(["status", "", "body"],
    Object.entries(operation.responses).map(([status, one]) => {
      const isProblem = Boolean(one.$ref);
      const parts = Object.entries(one.content || {}).flatMap(([type, { schema }], n) =>
        [n ? " or " : "", schema ? inWords(schema) : element("code", {}, type)]);
      const body = isProblem ? inWords({ $ref: "#/components/schemas/Problem" })
        : element("span", {}, ...parts);
      return [element("code", {}, status), isProblem ? "" : one.description, body];
    })));
  return element("details", { id: operation.operationId },
    element("summary", {},
      element("code", { className: "method" }, method.toUpperCase()),
      element("code", {}, path),
      element("span", { className: "what" }, operation.summary)),
    inside);
}

// A link into the page opens what it names.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

async function show() {
  const api = await (await fetch("openapi.json")).json();
  const main = document.getElementById("operations");
  const tags = document.getElementById("tags");
  for (const { name } of api.tags) {
    const id = "tag-" + name.replace(" ", "-");
    tags.append(element("a", { href: "#" + id }, name));
    main.append(element("h2", { id }, name));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (operation.tags.includes(name))
          main.append(showOperation(method, path, operation, api.components.parameters));
      }
    }
  }
  tags.append(element("a", { href: "#problems" }, "problems"));
  tags.append(element("a", { href: "#schemas" }, "schemas"));
  const schemas = document.getElementById("list-of-schemas");
  for (const [name, schema] of Object.entries(api.components.schemas))
    schemas.append(showSchema(name, schema));
  document.getElementById("about").replaceChildren(
    "Made from ", element("a", { href: "openapi.json" }, "openapi.json"),
    " (OpenAPI " + api.openapi + ").");
  openTarget();
}

window.addEventListener("hashchange", openTarget);
show().catch((error) => {
  document.getElementById("about").textContent = "openapi.json cannot be shown: " + error;
});
