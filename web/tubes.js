// Tubes: their counts, and what an operator does to one.
import { attempt, changeMany, run } from "./actions.js";
import { allTubes, api, tubePath } from "./api.js";
import { ask, confirm, told } from "./dialog.js";
import { button, count, empty, h, head, jobs, link, table } from "./dom.js";
import { duration } from "./times.js";
import { tubeRows } from "./tube_lists.js";

function pause(tube) {
  return ask(`Pause tube ${tube.name}?`,
    `No job goes out meanwhile: ${jobs(tube.jobs.ready)} ready, ${jobs(tube.jobs.delayed)} ` +
    "delayed. A restart ends a pause.", "Pause it",
    [{ name: "duration", label: "For how long; empty: until it is resumed", kind: "duration" }],
    async ({ duration: given }) => {
      await api("POST", `${tubePath(tube.name)}:pause`, given ? { duration: given } : {});
      return told(`Tube ${tube.name} is paused.`);
    });
}

async function kick(tube) {
  const which = tube.jobs.buried ? "buried" : "delayed";
  const n = tube.jobs[which];
  return await confirm(`Kick ${jobs(n)}?`, `${jobs(n)} of tube ${tube.name} that are ${which} ` +
    "become ready now.", `Kick ${jobs(n)}`, false) &&
    attempt(() => run("Kicking the jobs", n, `${tubePath(tube.name)}:kick`),
      ({ kicked }) => `${jobs(kicked)} kicked.`);
}

function actions(view, tube) {
  const then = (action) => async () => { if (await action()) view.again(); };
  const named = (what) => ({ "aria-label": `${what} tube ${tube.name}` });
  return h("div", { class: "row" },
    tube.paused ? button("Resume", then(() => attempt(() =>
      api("POST", `${tubePath(tube.name)}:resume`), "Jobs go out again.")), named("Resume")) :
      button("Pause", then(() => pause(tube)), named("Pause")),
    button("Kick", then(() => kick(tube)),
      { ...named("Kick"), disabled: !tube.jobs.buried && !tube.jobs.delayed }),
    button("Clear", then(() => changeMany("cancel", "Cancel", { filter: { tube: tube.name } })),
      { ...named("Clear"), class: "danger",
        disabled: !(tube.jobs.ready + tube.jobs.delayed + tube.jobs.buried) }));
}

export async function showTubes(view) {
  const tubes = await allTubes();
  const cell = (tube, name, state) => tube.jobs[name] ?
    link("jobs", { tube: tube.name, state: state || name }, count(tube.jobs[name])) : "0";
  const { rows, about, finder, pages } = tubeRows(view, "tubes", tubes);
  view.draw(head("Tubes", about, finder),
    rows.length ? h("section", { class: "card" }, table("Tubes",
      ["tube", "delayed", "ready", "reserved", "buried", "workers", "held back", "actions"],
      rows.map((tube) => [tube.name,
        link("jobs", { tube: tube.name }, tube.name), cell(tube, "delayed"), cell(tube, "ready"),
        cell(tube, "reserved"), cell(tube, "buried", "buried,dead"), count(tube.waiting),
        [tube.paused ? h("span", { class: "state dead" }, tube.pause_left_ms > 1e12 ? "paused" :
          `paused: ${duration((tube.pause_left_ms || 0) / 1000)}`) : null,
        tube.draining ? h("span", { class: "state" }, "draining") : null].filter(Boolean),
        actions(view, tube)]), [1, 2, 3, 4, 5])) : empty("There is no such tube."), pages);
  return 2;
}
