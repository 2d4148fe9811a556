// What changes by itself: a sample of the server each second, the actions of operators, and whether
// it answers.
//
//   live.addEventListener("sample", () => draw(live.series((sample) => sample.rates.put)));
//
// Samples are those of /v1/events (docs/http.md); those of before come from /v1/history. If the
// server has no events for this page, as its token is not for all tubes, as too many listen, or as
// something on the way holds them back, it is asked for its counts every other second instead.
import { get, open } from "./api.js";
import { Problem } from "./problem.js";

const KEPT_S = 300;
const SILENCE_MS = 6_000;  // there is an event each second
const REFUSALS = [403, 404, 429, 503];
const POLLS = 30;  // before events are tried again

const seconds = (n) => new Promise((resolve) => setTimeout(resolve, n * 1000));

// Returns when somebody may see the page. A hidden page holds no connection: a browser has only six
// for one server.
const isSeen = () => new Promise((resolve) => {
  if (!document.hidden) return resolve();
  document.addEventListener("visibilitychange", () => resolve(), { once: true });
});

// Calls `take` with each event: { id, event, data }.
async function read(reply, take, heard) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const lines of events) {
      take(Object.fromEntries(lines.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      })));
    }
  }
}

// A sample of what the server counts, without what its events alone tell.
const sampleOf = (stats, put) => ({ ...stats, at: Date.now(), puts: stats.jobs.put,
  rates: { put, fired: null, acked: null }, lateness_ms: { p50: null, p99: null, max: null },
  oldest_ready_age_ms: null });

// A sample of the server, with the number of its moment.
const dated = (sample) => ({ ...sample, at: Date.parse(sample.at) });

class Live extends EventTarget {
  samples = [];
  now = null;            // the newest sample
  server = null;         // its stats, as of when it was met
  state = "connecting";  // answers, lost
  restarted = null;      // when the server was seen to be another one
  id = "";               // of the last event
  polls = 0;             // left to do before events are tried

  async start() {
    for (;;) {
      await isSeen();
      try {
        await (this.polls ? this.poll() : this.listen());
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        if (REFUSALS.includes(problem.status)) {
          const isFirst = this.polls === 0;
          this.polls = POLLS;
          if (isFirst) continue;  // the counts are asked for at once
        } else {
          this.setState("lost", problem.message);
        }
      }
      await seconds(this.state === "lost" ? 1 : this.polls ? 2 : 0);
    }
  }

  // Goes on until the stream ends, or nobody sees the page.
  async listen() {
    if (!this.id) await this.remember();
    const stop = new AbortController();
    let silence = 0, heard = false;
    const wait = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE_MS);
    };
    const hide = () => document.hidden && stop.abort();
    document.addEventListener("visibilitychange", hide);
    wait();
    try {
      const reply = await open("GET", "/v1/events", { signal: stop.signal,
        headers: this.id ? { "Last-Event-ID": this.id } : {} });
      await read(reply, (event) => this.take(event), () => { heard = true; wait(); });
    } catch (problem) {
      if (problem.status) throw problem;
    } finally {
      clearTimeout(silence);
      document.removeEventListener("visibilitychange", hide);
    }
    if (document.hidden) return;
    if (stop.signal.aborted && !heard) throw new Problem(404, "No event has come.");
    throw new Problem(0, "The server does not answer.");
  }

  // The data to show before the first event.
  async remember() {
    const [{ samples }, stats] = await Promise.all([get("/v1/history"), get("/v1/stats")]);
    this.samples = samples.map(dated);
    this.know(stats);
    this.now ??= sampleOf(stats, null);
    this.dispatchEvent(new Event("sample"));
  }

  know(stats) {
    this.server = stats;
    this.metAt = performance.now();
  }

  take({ id, event, data }) {
    const process = id.split("-")[0];
    if (this.id && process !== this.id.split("-")[0]) this.meetAnother();
    this.id = id;
    this.setState("answers");
    const told = JSON.parse(data);
    if (event === "stats") this.keep(dated(told));
    else this.dispatchEvent(new CustomEvent("audit", { detail: told }));
  }

  async meetAnother() {
    this.restarted = new Date();
    const stats = await get("/v1/stats").catch(() => null);
    if (stats) this.know(stats);
    this.dispatchEvent(new Event("state"));
  }

  async poll() {
    --this.polls;
    const before = this.samples.at(-1);
    const stats = await get("/v1/stats");
    if (this.server && this.server.id !== stats.id) this.restarted = new Date();
    const same = before?.puts !== undefined && this.server?.id === stats.id;
    this.know(stats);
    const put = same ?
      Math.max(0, stats.jobs.put - before.puts) * 1000 / (Date.now() - before.at) : null;
    this.setState("answers");
    this.keep(sampleOf(stats, put));
  }

  keep(sample) {
    if (this.samples.at(-1)?.at === sample.at) return;  // the server had kept it
    this.samples.push(sample);
    if (this.samples.length > KEPT_S) this.samples.shift();
    this.now = sample;
    this.keptAt = performance.now();
    this.dispatchEvent(new Event("sample"));
  }

  uptime() {
    return (this.server.uptime_ms + performance.now() - this.metAt) / 1000;
  }

  // Returns [seconds ago, value] of each sample, the oldest first. Empty before the first new
  // sample: its time is needed to date the others.
  series(value) {
    if (this.keptAt === undefined) return [];
    const now = this.now.at + performance.now() - this.keptAt;
    return this.samples.map((sample) => [Math.max(0, now - sample.at) / 1000, value(sample)]);
  }

  setState(state, why) {
    if (state === this.state) return;
    this.state = state;
    this.why = why;
    this.dispatchEvent(new Event("state"));
  }
}

export const live = new Live();
