// Making elements, and numbers as people read them.
//
//   h("p", { class: "quiet" }, "due ", h("b", {}, until(job.due)))
import { clock, until } from "./times.js";

const SVG = "http://www.w3.org/2000/svg";

// What nobody sees in a client's text, or what changes the order in which it is shown: two names
// would look like one. Many an emoji has U+FE0F, so the variation selectors stay. The joiners of
// emoji, Persian and Hindi do not: whether U+200D is seen depends on the font.
const HIDDEN = new RegExp("(?![\\ufe00-\\ufe0f])[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f" +
  "\\u2028\\u2029\\p{Bidi_Control}\\p{Default_Ignorable_Code_Point}]", "gu");

const escaped = (hidden) => hidden.split("").map((unit) =>
  `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join("");

// As the commands print it.
const visible = (text) => text.replace(HIDDEN, escaped);

const READ = new Set(["title", "aria-label"]);  // attributes that people see or hear

const seen = (children) => children.flat().map((child) =>
  typeof child === "string" ? visible(child) : child);

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made[name] = value;
    else made.setAttribute(name, value === true ? "" : READ.has(name) ? visible(value) : value);
  }
  made.append(...seen(children).filter((child) => (child ?? false) !== false));
  return made;
}

export const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const s = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const numbers = new Intl.NumberFormat("en");

export const count = (n) => numbers.format(Number(n)).replaceAll(",", "\u202f");

export const jobs = (n) => `${count(n)} ${n === 1 ? "job" : "jobs"}`;

export const time = (moment) =>
  h("time", { datetime: moment, title: clock(moment) }, until(moment));

export const state = (name) => h("span", { class: `state ${name}` }, name);

export function head(title, about, ...actions) {
  return h("div", { class: "head" },
    h("div", {}, h("h1", {}, title), h("p", {}, about)), h("div", { class: "row" }, ...actions));
}

// A table; `numbers` are the columns with numbers. A row is [key, ...cells]; the key tells it from
// other rows when the table is patched.
export function table(caption, heads, rows, numbers = []) {
  const kind = (n) => ({ class: numbers.includes(n) ? "number" : null });
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption,
    "data-key": caption },
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((name, n) => h("th", { scope: "col", ...kind(n) },
        name)))),
      h("tbody", {}, rows.map(([key, ...cells]) => h("tr", { "data-key": key },
        cells.map((cell, n) => h("td", kind(n), cell)))))));
}

export const button = (text, onclick, attributes = {}) =>
  h("button", { type: "button", onclick, "data-key": attributes["aria-label"] || text,
    ...attributes }, text);

export const field = (label, input) => h("label", {}, label, input);

// For a list or a change whose answer is `told`.
export const incomplete = (told) => (told.incomplete ? "Jobs may be missing: the server cannot " +
  "read all of their records, as its log says." : "");

export const empty = (...text) => h("div", { class: "card empty" }, ...text);

export const link = (page, query, ...text) => h("a", { href: address(page, query) }, ...text);

export function address(page, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  return `#/${page}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}
