// What changes by itself: a sample of the server each second, and whether it answers.
//
//   live.addEventListener("sample", () => draw(live.samples));
//
// A sample has the server's stats, its rates per second since the sample before, and the lateness
// of the jobs of the last ten seconds; null is a second without an answer.
import { get } from "./api.js";

const KEPT = 300;
const WINDOW_MS = 10_000;

// Reads the text that is for Prometheus: { name: [[labels, value], ...] }.
function parseMetrics(text) {
  const metrics = {};
  for (const line of text.split("\n")) {
    const parts = /^([a-z_]+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (parts) (metrics[parts[1]] ??= []).push([parts[2] || "", Number(parts[3])]);
  }
  return metrics;
}

const values = (metrics, name) => (metrics[name] || []).map(([, value]) => value);
const sum = (metrics, name) => values(metrics, name).reduce((all, value) => all + value, 0);

const bucketsOf = (metrics) => (metrics.carillon_job_lateness_seconds_bucket || []).map(
  ([labels, value]) => [Number(/le="([^"]*)"/.exec(labels)[1].replace("+Inf", "Infinity")), value]);

// Returns the bound of the first bucket that holds such a part of what came between the two.
function quantile(before, after, part) {
  const came = after.map(([bound, n], at) => [bound, n - (before[at]?.[1] ?? 0)]);
  const all = came.at(-1)?.[1];
  return all ? came.find(([, n]) => n >= all * part)[0] : null;
}

class Live extends EventTarget {
  samples = [];
  state = "connecting";  // answers, lost
  restarted = null;      // when the server was seen to be another one

  start() {
    this.turn();
  }

  async turn() {
    const began = performance.now();
    try {
      const [stats, text] = await Promise.all([get("/v1/stats"), get("/metrics")]);
      this.take(stats, parseMetrics(text));
      this.setState("answers");
    } catch (problem) {
      this.keep(null);
      this.setState("lost", problem.message);
    }
    this.dispatchEvent(new Event("sample"));
    // A server with ten thousand tubes has long metrics: it is asked less often.
    const took = performance.now() - began;
    setTimeout(() => this.turn(), Math.max(1000 - took, 4 * took, 50));
  }

  take(stats, metrics) {
    const now = { at: performance.now(), stats, puts: sum(metrics, "carillon_puts_total"),
      fired: sum(metrics, "carillon_jobs_fired_total"),
      deleted: sum(metrics, "carillon_jobs_deleted_total"), buckets: bucketsOf(metrics),
      oldest: Math.max(-1, ...values(metrics, "carillon_oldest_ready_age_seconds")) };
    const before = this.samples.at(-1);
    if (this.id && this.id !== stats.id) this.restarted = new Date();
    const same = before && this.id === stats.id;
    this.id = stats.id;
    const rate = (name) => same ?
      Math.max(0, now[name] - before[name]) / ((now.at - before.at) / 1000) : null;
    now.rates = { put: rate("puts"), fired: rate("fired"), deleted: rate("deleted") };
    const old = same && this.samples.findLast((one) => one && one.stats.id === stats.id &&
      one.at <= now.at - WINDOW_MS) || this.samples.find((one) => one?.stats.id === stats.id);
    const late = (part) => same && old ? quantile(old.buckets, now.buckets, part) : null;
    now.lateness = { p50: late(0.5), p99: late(0.99), max: late(1) };
    this.keep(now);
  }

  keep(sample) {
    this.samples.push(sample);
    if (this.samples.length > KEPT) this.samples.shift();
  }

  setState(state, why) {
    if (state === this.state) return;
    this.state = state;
    this.why = why;
    this.dispatchEvent(new Event("state"));
  }
}

export const live = new Live();
