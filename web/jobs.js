// Jobs of a tube, by due time: filters, pages, and changes of all that the filter means.
import { changeMany } from "./actions.js";
import { allTubes, get, tubePath } from "./api.js";
import { ask } from "./dialog.js";
import {
  address, button, count, empty, field, h, head, incomplete, link, state, table, time,
} from "./dom.js";
import { tubeField } from "./tube_lists.js";

const STATES = ["", "delayed", "ready", "reserved", "buried", "dead", "buried,dead"];
const TUBES_MS = 10_000;
const FILTERS = ["state", "group", "key_prefix", "due_after", "due_before"];

function filterForm(query, names) {
  const input = (name, label, attributes = {}) => field(label,
    h("input", { name, value: query[name], size: 14, ...attributes }));
  return h("form", { class: "card row", role: "search", "aria-label": "Filter",
    onsubmit: (event) => {
      event.preventDefault();
      const wanted = Object.fromEntries(new FormData(event.target));
      location.hash = address("jobs", wanted);
    } },
  tubeField("Tube", names.map((name) => [name, name]), query.tube, { name: "tube" }),
  field("State", h("select", { name: "state" }, STATES.map((value) =>
    h("option", { value, selected: value === (query.state || "") }, value || "any")))),
  input("group", "Group"),
  input("key_prefix", "Key begins with"),
  input("due_after", "Due after", { placeholder: "2030-01-31T12:00Z", size: 18 }),
  input("due_before", "Due before", { placeholder: "2030-01-31T13:00Z", size: 18 }),
  h("button", { class: "main" }, "Show"));
}

async function move(filter) {
  const given = await ask("Move the jobs", `The jobs of tube ${filter.tube} that the filter means.`,
    "Count them", [{ name: "to", label: "To tube", required: true }]);
  return given?.to && changeMany("move", "Move", { filter, to: given.to });
}

export async function showJobs(view) {
  const reading = allTubes(TUBES_MS);
  const query = { ...view.query, tube: view.query.tube || (await reading)[0]?.name };
  if (!query.tube) {
    view.draw(head("Jobs", "By tube and due time"), empty("There is no tube."));
    return 2;
  }
  const filter = { tube: query.tube };
  for (const name of FILTERS) if (query[name]) filter[name] = query[name];
  const { tube, ...asked } = filter;
  const [tubes, page] = await Promise.all([reading, get(
    `${tubePath(tube)}/jobs?${new URLSearchParams({ ...asked, page_size: 50,
      ...(query.page_token && { page_token: query.page_token }) })}`)]);
  const names = tubes.map(({ name }) => name);
  if (!names.includes(tube)) names.push(tube);
  const all = (verb, words) => async () => {
    if (await changeMany(verb, words, { filter })) view.again();
  };
  view.draw(
    head("Jobs", `Tube ${tube}, by due time`,
      button("Retry all\u2026", all("retry", "Retry")),
      button("Move all\u2026", async () => { if (await move(filter)) view.again(); }),
      button("Cancel all\u2026", all("cancel", "Cancel"), { class: "danger" })),
    filterForm(query, names),
    page.jobs.length ? h("section", { class: "card" }, table("Jobs",
      ["job", "state", "due", "key", "group", "priority", "failed", "bytes"],
      page.jobs.map((job) => [job.id,
        link("job", { id: job.id }, job.id), state(job.state), time(job.due),
        job.key ?? job.key_base64 ?? "", job.group ?? job.group_base64 ?? "", count(job.priority),
        count(job.failed_attempts), count(job.body_bytes)]), [5, 6, 7])) :
      empty("No job is like this."),
    incomplete(page) && h("p", { role: "status" }, incomplete(page)),
    h("nav", { class: "row", "aria-label": "Pages of the list" },
      query.page_token ? link("jobs", { ...query, page_token: "" }, "First page") : null,
      page.next_page_token ?
        link("jobs", { ...query, page_token: page.next_page_token }, "Next page") : null));
  return query.page_token ? 0 : 3;
}
