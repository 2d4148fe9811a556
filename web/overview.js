// The first page: what the server does now, and has done in the last minutes.
import { count, duration, h, head, link } from "./dom.js";
import { live } from "./live.js";
import { linePlot } from "./plot.js";

const rate = (value) => `${value < 10 ? Number(value.toFixed(1)) : count(Math.round(value))}/s`;

const figure = (tint, name, value, ...below) => h("div", { class: `figure tint-${tint}` },
  h("span", {}, name), h("b", {}, value), h("span", {}, ...below));

// The bound of a bucket says at most so much.
const late = (value) => value === null ? "none" :
  value === Infinity ? "over 1 h" : `\u2264 ${duration(value)}`;

export async function showOverview(view) {
  const now = live.samples.findLast((sample) => sample);
  if (!now) {
    view.draw(head("Overview", "Asking the server\u2026"));
    return 0.2;
  }
  const { jobs, tubes, connections, waiting, uptime_seconds, version, host } = now.stats;
  const of = (read) => live.samples.map((sample) => sample && read(sample));
  const rates = now.rates;
  view.draw(
    head("Overview", `Carillon ${version} on ${host}, up for ${duration(uptime_seconds)}` +
      (now.stats.draining ? "; it is draining and takes no jobs" : "")),
    h("section", { class: "card", "aria-label": "Jobs" }, h("div", { class: "figures" },
      figure(1, "delayed", count(jobs.delayed), link("wheel", {}, "the wheel")),
      figure(3, "ready", count(jobs.ready),
        now.oldest < 0 ? "none waits" : `oldest: ${duration(now.oldest)}`),
      figure(2, "reserved", count(jobs.reserved), `${count(waiting)} workers wait`),
      figure(4, "buried or dead", count(jobs.buried), link("dead", {}, "why")),
      figure(0, "tubes", count(tubes), `${count(connections)} connections`))),
    h("section", { class: "card", "aria-label": "Rates and lateness" },
      h("div", { class: "figures" },
        figure(1, "put", rates.put === null ? "\u2013" : rate(rates.put), "each second"),
        figure(2, "fired", rates.fired === null ? "\u2013" : rate(rates.fired), "became due"),
        figure(3, "deleted", rates.deleted === null ? "\u2013" : rate(rates.deleted),
          "done or cancelled"),
        figure(0, "late, half of jobs", late(now.lateness.p50), "last 10 s"),
        figure(0, "late, 99 %", late(now.lateness.p99), `all: ${late(now.lateness.max)}`))),
    h("div", { class: "grid" },
      linePlot("Jobs per second", [{ name: "put", values: of((one) => one.rates.put) },
        { name: "fired", values: of((one) => one.rates.fired) },
        { name: "deleted", values: of((one) => one.rates.deleted) }], rate),
      linePlot("Lateness", [{ name: "99 %", values: of((one) => finite(one.lateness.p99)) },
        { name: "half", values: of((one) => finite(one.lateness.p50)) }], duration),
      linePlot("Jobs that wait", [{ name: "delayed", values: of((one) => one.stats.jobs.delayed) },
        { name: "ready", values: of((one) => one.stats.jobs.ready) }], count),
      linePlot("In hand", [{ name: "reserved", values: of((one) => one.stats.jobs.reserved) },
        { name: "connections", values: of((one) => one.stats.connections) }], count)));
  return 1;
}

const finite = (value) => Number.isFinite(value) ? value : null;
