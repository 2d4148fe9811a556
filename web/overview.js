// The first page: what the server does now, and has done in the last minutes.
import { count, h, head, link } from "./dom.js";
import { live } from "./live.js";
import { linePlot } from "./plot.js";
import { duration } from "./times.js";

const rate = (value) => `${value < 10 ? Number(value.toFixed(1)) : count(Math.round(value))}/s`;

const figure = (tint, name, value, ...below) => h("div", { class: `figure tint-${tint}` },
  h("span", {}, name), h("b", {}, value), h("span", {}, ...below));

// The bound of a bucket is an upper bound.
const late = (ms) => ms === null ? "none" : `\u2264 ${duration(ms / 1000)}`;
const inSeconds = (ms) => ms === null ? null : ms / 1000;

export async function showOverview(view) {
  while (!live.now) {
    view.draw(head("Overview", "Asking the server\u2026"));
    await new Promise((resolve) => live.addEventListener("sample", resolve, { once: true }));
  }
  const now = live.now;
  const { jobs, rates, lateness_ms: lateness, oldest_ready_age_ms: oldest } = now;
  const figureOf = (value) => value === null ? "\u2013" : rate(value);
  const plot = (title, lines, show) => linePlot(title,
    lines.map(([name, value]) => ({ name, points: live.series(value) })), show);
  view.draw(
    head("Overview", `Carillon ${live.server.version} on ${live.server.host}, up for ` +
      duration(live.uptime()) + (now.draining ? "; it is draining and takes no jobs" : "")),
    h("section", { class: "card", "aria-label": "Jobs" }, h("div", { class: "figures" },
      figure(1, "delayed", count(jobs.delayed), link("wheel", {}, "the wheel")),
      figure(3, "ready", count(jobs.ready),
        oldest === null ? "none waits" : `oldest: ${duration(oldest / 1000)}`),
      figure(2, "reserved", count(jobs.reserved),
        `${count(now.waiting)} ${now.waiting === 1 ? "worker waits" : "workers wait"}`),
      figure(4, "buried or dead", count(jobs.buried), link("dead", {}, "why")),
      figure(0, "tubes", count(now.tubes), `${count(now.connections)} connections`))),
    h("section", { class: "card", "aria-label": "Rates and lateness" },
      h("div", { class: "figures" },
        figure(1, "put", figureOf(rates.put), "each second"),
        figure(2, "fired", figureOf(rates.fired), "became due"),
        figure(3, "deleted", figureOf(rates.acked), "done or cancelled"),
        figure(0, "late, half of jobs", late(lateness.p50), "last 10 s"),
        figure(0, "late, 99 %", late(lateness.p99), `all: ${late(lateness.max)}`))),
    h("div", { class: "grid" },
      plot("Jobs per second", [["put", (one) => one.rates.put],
        ["fired", (one) => one.rates.fired], ["deleted", (one) => one.rates.acked]], rate),
      plot("Lateness", [["99 %", (one) => inSeconds(one.lateness_ms.p99)],
        ["half", (one) => inSeconds(one.lateness_ms.p50)]], duration),
      plot("Jobs that wait", [["delayed", (one) => one.jobs.delayed],
        ["ready", (one) => one.jobs.ready]], count),
      plot("In hand", [["reserved", (one) => one.jobs.reserved],
        ["connections", (one) => one.connections]], count)));
  return 1;
}
