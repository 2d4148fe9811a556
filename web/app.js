// The console: its pages by their addresses, and whether the server answers.
import { h } from "./dom.js";
import { live } from "./live.js";
import { patch } from "./patch.js";
import { untilFree } from "./patience.js";
import { Problem } from "./problem.js";
import { showAudit } from "./audit.js";
import { showDead } from "./dead.js";
import { showJob } from "./job.js";
import { showJobs } from "./jobs.js";
import { showLimits } from "./limits.js";
import { showOverview } from "./overview.js";
import { showSchedules } from "./schedules.js";
import { showTubes } from "./tubes.js";
import { clock } from "./times.js";
import { showWheel } from "./wheel.js";

// Each shows itself in `page`, and returns how often, in seconds, it wants to be shown anew, or
// nothing. `query` is what its address says.
const PAGES = {
  "": ["Overview", showOverview], wheel: ["Wheel", showWheel], tubes: ["Tubes", showTubes],
  jobs: ["Jobs", showJobs], job: ["Find a job", showJob], dead: ["Dead", showDead],
  schedules: ["Schedules", showSchedules], limits: ["Limits", showLimits],
  audit: ["Audit", showAudit],
};

const main = document.getElementById("main");
let shown = 0;  // which page it is, so that one that was left draws nothing
let timer = 0;

async function show(isNew) {
  clearTimeout(timer);
  const [name, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [title, page] = PAGES[name] || PAGES[""];
  const mine = ++shown;
  if (isNew) {
    document.title = `${title} \u00b7 Carillon`;
    for (const a of document.querySelectorAll("#nav a")) {
      if (a.hash === `#/${name}`) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    main.setAttribute("aria-busy", "true");
  }
  const view = {
    query: Object.fromEntries(new URLSearchParams(search)),
    isShown: () => mine === shown,
    draw: async (...content) => {
      if (!isNew) await untilFree();
      if (mine === shown) patch(main, h("div", { "data-key": location.hash }, ...content));
    },
    again: () => { if (mine === shown) show(false); },
  };
  let seconds = 0;
  try {
    seconds = await page(view);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status !== 0 || isNew)
      view.draw(h("h1", {}, title), h("p", { class: "card bad" }, problem.message));
    seconds = problem.status === 0 ? 1 : 0;
  }
  if (mine !== shown) return;
  main.removeAttribute("aria-busy");
  if (isNew && started) main.focus({ preventScroll: true });
  started = true;
  if (seconds) timer = setTimeout(() => renew(mine), seconds * 1000);
}

async function renew(mine) {
  await untilFree();
  if (mine === shown) show(false);
}

function showConnection() {
  const line = document.getElementById("connection");
  line.classList.toggle("lost", live.state === "lost");
  line.textContent = live.state === "lost" ?
    `${live.why || "The server does not answer."} Trying again.` :
    "connected" + (live.restarted ?
      `; the server restarted at ${clock(live.restarted).split(", ").at(-1)}` : "");
}

let started = false;
document.getElementById("nav").append(
  ...Object.entries(PAGES).map(([name, [title]]) => h("a", { href: `#/${name}` }, title)),
  h("a", { href: "docs" }, "HTTP API"));
let wasLost = false;
live.addEventListener("state", () => {
  showConnection();
  if (wasLost && live.state === "answers") show(false);
  wasLost = live.state === "lost";
});
window.addEventListener("hashchange", () => show(true));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
live.start();
show(true);
