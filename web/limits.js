// Limits: how many jobs of a tube or group run at once, how many go out or come in in a time, and
// weights.
import { allTubes, api, getIfThere, tubePath } from "./api.js";
import { ask, told } from "./dialog.js";
import { address, button, count, empty, h, head, link, table } from "./dom.js";
import { inWords } from "./times.js";
import { tubeChooser, tubeRows } from "./tube_lists.js";

const GROUPS = 100;  // a page

const rateText = (rate) => rate ?
  `${count(rate.jobs)} per ${inWords(rate.per).replace(/^1 /, "")}` +
    (rate.burst > 1 ? `, ${rate.burst} at once` : "") : "none";

// Fields for a rate, and the rate that they ask for.
const rateFields = (rate, prefix, label) => [
  { name: `${prefix}jobs`, label, kind: "number", inputmode: "numeric", value: rate?.jobs,
    at: `/limits/${prefix}rate/jobs` },
  { name: `${prefix}per`, label: "in each", kind: "duration", value: inWords(rate?.per || "1s"),
    required: true, at: `/limits/${prefix}rate/per` },
  { name: `${prefix}burst`, label: "of these at once, after a rest", kind: "number",
    inputmode: "numeric", value: rate?.burst || 1, at: `/limits/${prefix}rate/burst` }];
const rateOf = (given, prefix) => given[`${prefix}jobs`] ?
  { jobs: Number(given[`${prefix}jobs`]), per: given[`${prefix}per`],
    burst: Number(given[`${prefix}burst`]) || 1 } : null;

// Asks for limits, and sets them. `more` are fields beside them. A tube has a rate of puts, too.
function change(what, path, held, more = []) {
  const isTube = !more.length;
  return ask(`Limits of ${what}`, "An empty field is no limit.", "Set them", [
    { name: "max_running", label: "Jobs that run at once", kind: "number", inputmode: "numeric",
      value: held.limits?.max_running, at: "/limits/max_running" },
    ...rateFields(held.limits?.rate, "", "Jobs that go out"),
    ...(isTube ? [...rateFields(held.limits?.put_rate, "put_", "Jobs that are put"),
      { name: "retention", label: "Dead jobs are kept for; empty: for ever", kind: "duration",
        value: held.retention && inWords(held.retention) }] : []), ...more], async (given) => {
    const patch = { limits: { max_running: Number(given.max_running) || null,
      rate: rateOf(given, "") } };
    if (isTube) {
      patch.limits.put_rate = rateOf(given, "put_");
      patch.retention = given.retention || null;
    }
    if (given.weight) patch.weight = Number(given.weight);
    await api("PATCH", path, patch);
    return told(`The limits of ${what} are set.`);
  });
}

function groupTable(view, tube, { groups, next_page_token: next }) {
  return h("section", { class: "card" }, h("h2", {}, `Groups of tube ${tube}`),
    groups.length ? table("Groups",
      ["group", "ready", "reserved", "weight", "at once", "rate", "action"],
      groups.map((group) => [group.name ?? group.name_base64,
        group.name === undefined ? `${group.name_base64} (Base64)` :
          link("jobs", { tube, group: group.name }, group.name),
        count(group.jobs.ready), count(group.jobs.reserved), count(group.weight),
        group.limits.max_running ? count(group.limits.max_running) : "none",
        rateText(group.limits.rate),
        group.name === undefined ? "" : button("Change\u2026", async () => {
          const path = `${tubePath(tube)}/groups/${encodeURIComponent(group.name)}`;
          if (await change(`group ${group.name}`, path, group, [{ name: "weight", label: "Weight",
            kind: "number", inputmode: "numeric", value: group.weight }])) view.again();
        }, { "aria-label": `Change group ${group.name}` })]), [1, 2, 3, 4]) :
      h("p", { class: "quiet" }, "No job that it holds has a group."),
    next ? link("limits", { ...view.query, tube, groups: next }, "More groups") : null);
}

export async function showLimits(view) {
  const reading = allTubes();
  const chosen = view.query.tube || (await reading).find((tube) => tube.groups)?.name;
  const [tubes, groups] = await Promise.all([reading, chosen ? getIfThere(
    `${tubePath(chosen)}/groups?page_size=${GROUPS}` +
    (view.query.groups ? `&page_token=${view.query.groups}` : "")) : null]);
  const { rows, about, finder, pages } = tubeRows(view, "limits", tubes);
  view.draw(head("Limits and groups",
    `How many jobs run at once, and go out or come in in a time: ${about}`, finder,
    tubeChooser("Groups of", [...(chosen ? [] : [["", "no tube"]]),
      ...tubes.map(({ name }) => [name, name])], chosen, (tube) => address("limits", { tube }))),
  groups ? groupTable(view, chosen, groups) : null,
  rows.length ? h("section", { class: "card" }, table("Limits of tubes",
    ["tube", "running", "at once", "rate", "puts", "groups", "retries", "dead kept", "action"],
    rows.map((tube) => [tube.name,
      link("jobs", { tube: tube.name }, tube.name), count(tube.jobs.reserved),
      tube.limits.max_running ? count(tube.limits.max_running) : "none",
      rateText(tube.limits.rate), rateText(tube.limits.put_rate),
      link("limits", { tube: tube.name }, count(tube.groups)),
      tube.retry?.max_attempts ? `${tube.retry.max_attempts} attempts` : "",
      tube.retention ? inWords(tube.retention) : "",
      button("Change\u2026", async () => {
        if (await change(`tube ${tube.name}`, tubePath(tube.name), tube)) view.again();
      }, { "aria-label": `Change tube ${tube.name}` })]), [1, 2, 5])) :
    empty("There is no such tube."), pages);
  return 3;
}
