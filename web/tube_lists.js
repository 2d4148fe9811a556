// Many tubes: a field that chooses one, and the rows of the pages that show all of them, fifty at a
// time. A browser takes long to lay out a thousand.
import { address, count, field, h, link } from "./dom.js";

const A_PAGE = 50;
const IN_A_LIST = 100;

// A field for the name of a tube; `choices` are [name, text about it]. If there are many, the user
// types a part of the name.
export function tubeField(label, choices, chosen, attributes) {
  if (choices.length <= IN_A_LIST) {
    return field(label, h("select", attributes, choices.map(([value, text]) =>
      h("option", { value, "data-key": value, selected: value === chosen }, text))));
  }
  const id = `tubes-${attributes.name}`;
  const fill = ({ target }) => target.list.replaceChildren(  // when somebody is about to type
    ...choices.map(([value, text]) => h("option", { value }, text)));
  return field(label, [h("input", { list: id, value: chosen, size: 18, autocomplete: "off",
    onfocus: fill, ...attributes }), h("datalist", { id })]);
}

// The same, which goes to the page's address for the tube that was chosen.
export const tubeChooser = (label, choices, chosen, address) =>
  tubeField(label, choices, chosen, { name: "tube", onchange: (event) => {
    if (event.target.value) location.hash = address(event.target.value);
  } });

// Returns { rows, about, finder, pages }: the tubes that `view.query` means, what to say of them,
// and what leads to others, if there are more than one page.
export function tubeRows(view, page, tubes) {
  const { name = "", from = "0", ...rest } = view.query;
  const found = name ? tubes.filter((tube) => tube.name.includes(name)) : tubes;
  const first = Math.max(0, Number.parseInt(from, 10) || 0);
  const rows = found.slice(first, first + A_PAGE);
  const all = tubes.length === 1000 ? "the first 1\u202f000" : count(tubes.length);
  const noun = tubes.length === 1 ? "tube" : "tubes";
  const about = found.length > A_PAGE ?
    `${count(first + 1)} to ${count(first + rows.length)} of ` +
      `${name ? `${count(found.length)} with this in their names` : `${all} ${noun} by name`}` :
    name ? `${count(found.length)} of ${all} ${noun}` : `${all} ${noun} by name`;
  if (tubes.length <= A_PAGE && !name) return { rows, about };
  const leadTo = (text, start) => link(page, { ...rest, name, from: start }, text);
  return { rows, about,
    finder: h("form", { role: "search", class: "row", onsubmit: (event) => {
      event.preventDefault();
      location.hash = address(page, { ...rest, name: event.target.elements.name.value.trim() });
    } }, field("Name has", h("input", { name: "name", value: name, size: 14 })),
    h("button", {}, "Find")),
    pages: found.length > A_PAGE || first ? h("nav", { class: "row", "aria-label": "Pages" },
      first ? leadTo("Previous page", Math.max(0, first - A_PAGE)) : null,
      first + A_PAGE < found.length ? leadTo("Next page", first + A_PAGE) : null) : null };
}
