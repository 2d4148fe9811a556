// Dead and buried jobs of a tube, by the reason of their last failed attempt.
import { changeMany } from "./actions.js";
import { allTubes, getIfThere, tubePath } from "./api.js";
import { address, button, count, empty, field, h, head, jobs, link, state, table, time }
  from "./dom.js";

// Counts the jobs that were buried for this reason, asks, and retries them.
async function retry(group) {
  return changeMany("retry", "Retry", { filter: group.filter });
}

export async function showDead(view) {
  const tubes = (await allTubes()).filter((tube) => tube.jobs.buried);
  const tube = view.query.tube || tubes[0]?.name;
  const told = tubes.length ? await getIfThere(`${tubePath(tube)}/dead`) : null;
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
  field("Tube", h("select", { "data-key": "tube", onchange: (event) => {
    event.target.blur();
    location.hash = address("dead", { tube: event.target.value });
  } }, tubes.map(({ name, jobs: held }) => h("option", { value: name, selected: name === tube },
    `${name} (${count(held.buried)})`)))),
  button("Retry all\u2026", all("retry", "Retry")),
  button("Cancel all\u2026", all("cancel", "Cancel"), { class: "danger" })),
  told.reasons.length ? h("section", { class: "card" }, table("Reasons",
    ["reason", "jobs", "state", "oldest", "newest", "example", "actions"],
    told.reasons.map((group) => [h("span", { title: group.error }, group.reason),
      count(group.jobs), state(group.dead === group.jobs ? "dead" : "buried"), time(group.oldest),
      time(group.newest), link("job", { id: group.example_id }, group.example_id),
      group.filter ? button("Retry\u2026", async () => { if (await retry(group)) view.again(); },
        { "aria-label": `Retry the jobs: ${group.reason}` }) : ""]), [1]),
  told.other_jobs ? h("p", { class: "quiet" }, `${jobs(told.other_jobs)} have further reasons.`) :
    null) : empty("None is left in this tube."));
  return told.looked_at < 1000 ? 3 : 15;  // each of them costs a look at its story
}
