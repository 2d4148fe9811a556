// Dead and buried jobs of a tube, by the reason of their last failed attempt.
import { changeMany } from "./actions.js";
import { allTubes, getIfThere, tubePath } from "./api.js";
import {
  address, button, count, empty, h, head, incomplete, jobs, link, state, table, time,
} from "./dom.js";
import { tubeChooser } from "./tube_lists.js";

// Counts the jobs that were buried for this reason, asks, and retries them.
async function retry(group) {
  return changeMany("retry", "Retry", { filter: group.filter });
}

// What is not UTF-8 is told in Base64.
function textOf(group, name) {
  return group[name] ?? `${group[`${name}_base64`]} (Base64)`;
}

export async function showDead(view) {
  const reading = allTubes().then((all) => all.filter((one) => one.jobs.buried));
  const tube = view.query.tube || (await reading)[0]?.name;
  const [tubes, told] = await Promise.all(
    [reading, tube ? getIfThere(`${tubePath(tube)}/dead`) : null]);
  if (!told) {
    view.draw(head("Dead", "Jobs that have failed too often, or were buried"),
      empty("No job is dead or buried."));
    return 2;
  }
  const filter = { tube, state: "buried,dead" };
  const all = (verb, words) => async () => {
    if (await changeMany(verb, words, { filter })) view.again();
  };
  view.draw(head("Dead", told.next_page_token ?
    `Tube ${tube}: reasons of the first ${jobs(told.looked_at)}` : `Tube ${tube}, by reason`,
  tubeChooser("Tube", tubes.map(({ name, jobs: held }) =>
    [name, `${name} (${count(held.buried)})`]), tube, (name) => address("dead", { tube: name })),
  button("Retry all\u2026", all("retry", "Retry")),
  button("Cancel all\u2026", all("cancel", "Cancel"), { class: "danger" })),
  told.reasons.length ? h("section", { class: "card" }, table("Reasons",
    ["reason", "jobs", "state", "oldest", "newest", "example", "actions"],
    told.reasons.map((group) => [textOf(group, "reason"),
      h("span", { title: textOf(group, "error") }, textOf(group, "reason")),
      count(group.jobs), state(group.dead === group.jobs ? "dead" : "buried"), time(group.oldest),
      time(group.newest), link("job", { id: group.example_id }, group.example_id),
      group.filter ? button("Retry\u2026", async () => { if (await retry(group)) view.again(); },
        { "aria-label": `Retry the jobs: ${textOf(group, "reason")}` }) : ""]), [1]),
  told.other_jobs ? h("p", { class: "quiet" }, `${jobs(told.other_jobs)} have further reasons.`) :
    null) : empty("None is left in this tube."),
  incomplete(told) && h("p", { role: "status" }, incomplete(told)));
  return told.looked_at < 1000 ? 3 : 15;  // each of them costs a look at its story
}
