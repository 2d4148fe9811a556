// Dead and buried jobs of a tube, by the reason of their last failed attempt.
import { allTubes, api, get, tubePath } from "./api.js";
import { attempt, changeMany, confirm, toast } from "./dialog.js";
import { address, button, count, empty, field, h, head, jobs, link, state, table, time }
  from "./dom.js";

const MOST = 200;  // jobs whose stories are read
let stories = new Map();

async function story(id) {
  if (!stories.has(id)) stories.set(id, await get(`/v1/jobs/${id}`));
  return stories.get(id);
}

function reasonOf(job) {
  const last = job.attempts?.at(-1);
  if (!last) return job.state === "buried" ? "buried by a worker" : "expired, or without a story";
  return last.error?.split("\n")[0].slice(0, 120) ||
    { failed: "failed, and said no reason", timed_out: "its time was over", lost: "worker lost" }[
      last.ended];
}

async function groupsOf(tube) {
  const page = await get(`${tubePath(tube)}/jobs?state=buried,dead&page_size=${MOST}`);
  stories = new Map([...stories].filter(([id]) => page.jobs.some((job) => job.id === id)));
  const groups = new Map();
  const left = page.jobs.map((job) => job.id);
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      const job = await story(id).catch(() => null);
      if (!job || !["buried", "dead"].includes(job.state)) continue;
      const reason = reasonOf(job);
      const group = groups.get(reason) || groups.set(reason, { reason, jobs: [] }).get(reason);
      group.jobs.push(job);
    }
  }));
  return { groups: [...groups.values()].sort((a, b) => b.jobs.length - a.jobs.length),
    whole: page.next_page_token === null };
}

async function retry({ reason, jobs: meant }) {
  const n = jobs(meant.length);
  if (!await confirm(`Retry ${n}?`, `${n}: \u201c${reason}\u201d. They become ready now.`,
    `Retry ${n}`, false)) return false;
  let done = 0;
  for (const { id } of meant)
    if (await attempt(() => api("POST", `/v1/jobs/${id}:kick`))) ++done;
  toast(`${jobs(done)} of ${count(meant.length)} are ready.`);
  stories = new Map();
  return true;
}

export async function showDead(view) {
  const tubes = (await allTubes()).filter((tube) => tube.jobs.buried);
  const tube = view.query.tube || tubes[0]?.name;
  if (!tubes.length) {
    view.draw(head("Dead", "Jobs that have failed too often, or were buried"),
      empty("No job is dead or buried."));
    return 2;
  }
  const { groups, whole } = await groupsOf(tube);
  const filter = { tube, state: "buried,dead" };
  const all = (verb, words) => async () => {
    if (await changeMany(verb, words, { filter })) view.again();
  };
  view.draw(head("Dead", whole ? `Tube ${tube}, by reason` :
    `Tube ${tube}: reasons of the first ${MOST}`,
  field("Tube", h("select", { "data-key": "tube", onchange: (event) => {
    event.target.blur();
    location.hash = address("dead", { tube: event.target.value });
  } }, tubes.map(({ name, jobs: held }) => h("option", { value: name, selected: name === tube },
    `${name} (${count(held.buried)})`)))),
  button("Retry all\u2026", all("retry", "Retry")),
  button("Cancel all\u2026", all("cancel", "Cancel"), { class: "danger" })),
  groups.length ? h("section", { class: "card" }, table("Reasons",
    ["reason", "jobs", "state", "oldest", "example", "actions"], groups.map((group) => {
      const created = group.jobs.map((job) => job.created).sort();
      return [group.reason, count(group.jobs.length), state(group.jobs[0].state), time(created[0]),
        link("job", { id: group.jobs[0].id }, group.jobs[0].id),
        button("Retry", async () => { if (await retry(group)) view.again(); },
          { "aria-label": `Retry the jobs: ${group.reason}` })];
    }), [1])) : empty("None is left in this tube."));
  return 3;
}
