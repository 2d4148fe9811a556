// Jobs of a tube, by due time: filters, pages, and changes of all that the filter means.
import { changeMany, countMany } from "./actions.js";
import { allTubes, get, tubePath } from "./api.js";
import { ask } from "./dialog.js";
import {
  address, button, count, empty, field, h, head, incomplete, link, state, table, time,
} from "./dom.js";
import { blame, problemLine, readFields, typedField } from "./fields.js";
import { Problem } from "./problem.js";
import { typed } from "./times.js";
import { tubeField } from "./tube_lists.js";

const STATES = ["", "delayed", "ready", "reserved", "buried", "dead", "buried,dead"];
const TUBES_MS = 10_000;
const FILTERS = ["state", "group", "key_prefix", "due_after", "due_before"];

// The address has times as the server takes them.
function timeText(text) {
  return text && !Number.isNaN(Date.parse(text)) ? typed(text) : text;
}

function filterForm(query, names) {
  const input = (name, label, attributes = {}) => typedField({ name, label, at: `?${name}`,
    value: query[name], size: 14, ...attributes });
  const moment = (name, label) =>
    input(name, label, { kind: "moment", value: timeText(query[name]), size: 22 });
  return h("form", { class: "card row", role: "search", "aria-label": "Filter",
    onsubmit: (event) => {
      event.preventDefault();
      const wanted = readFields(event.target);
      if (wanted) location.hash = address("jobs", wanted);
    } },
  tubeField("Tube", names.map((name) => [name, name]), query.tube, { name: "tube" }),
  field("State", h("select", { name: "state" }, STATES.map((value) =>
    h("option", { value, selected: value === (query.state || "") }, value || "any")))),
  input("group", "Group"),
  input("key_prefix", "Key begins with"),
  moment("due_after", "Due after"),
  moment("due_before", "Due before"),
  h("button", { class: "main" }, "Show"), problemLine());
}

async function move(filter) {
  let body;
  const counted = await ask("Move the jobs", `The jobs of tube ${filter.tube} that the filter ` +
    "means.", "Count them", [{ name: "to", label: "To tube", required: true }],
  ({ to }) => countMany("move", body = { filter, to }));
  return counted && changeMany("move", "Move", body, counted);
}

function refused(problem) {
  if (!(problem instanceof Problem) || problem.status === 0) throw problem;
  return { problem };
}

// A tube that is not there has no jobs.
const noneOrRefused = (problem) =>
  problem.status === 404 ? { jobs: [], next_page_token: null } : refused(problem);

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
      ...(query.page_token && { page_token: query.page_token }) })}`).catch(noneOrRefused)]);
  const names = tubes.map(({ name }) => name);
  if (!names.includes(tube)) names.push(tube);
  const form = filterForm(query, names);
  if (page.problem) {
    blame(form, page.problem);
    view.draw(head("Jobs", `Tube ${tube}, by due time`), form);
    return 0;
  }
  const all = (verb, words) => async () => {
    if (await changeMany(verb, words, { filter })) view.again();
  };
  view.draw(
    head("Jobs", `Tube ${tube}, by due time`,
      button("Retry all\u2026", all("retry", "Retry")),
      button("Move all\u2026", async () => { if (await move(filter)) view.again(); }),
      button("Cancel all\u2026", all("cancel", "Cancel"), { class: "danger" })),
    form,
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
