// The Wheel: the delayed jobs that are due next, as the slots of four wheels of a clock. Each wheel
// holds what the finer ones do not: jobs of this minute are on the wheel of seconds, those of this
// hour on that of minutes, and so on. When a hand moves on, its slot pours into the finer wheel.
import { allTubes, get, tubePath } from "./api.js";
import { address, clock, count, duration, empty, field, h, head, jobs, s, until } from "./dom.js";
import { barPlot } from "./plot.js";

const PAGES_READ = 3;  // of 1000 jobs: the wheel shows the nearest ones, and says up to when

const WHEELS = [
  { unit: "second", slots: 60, span: 1, outer: 238, inner: 196 },
  { unit: "minute", slots: 60, span: 60, outer: 190, inner: 148 },
  { unit: "hour", slots: 24, span: 3600, outer: 142, inner: 100 },
  { unit: "day", slots: 30, span: 86400, outer: 94, inner: 52 },
];
const SPANS = { minute: [60, 1], hour: [60, 60], day: [24, 3600], month: [30, 86400] };

let cache = { tube: null, dues: [], whole: true, read: 0 };
let hands = [];

async function nearest(tube) {
  if (cache.tube === tube && Date.now() - cache.read < 4000) return cache;
  const dues = [];
  let token = "";
  for (let n = 0; n < PAGES_READ && token !== null; ++n) {
    const page = await get(`${tubePath(tube)}/jobs?state=delayed&page_size=1000` +
      (token && `&page_token=${encodeURIComponent(token)}`));
    for (const job of page.jobs) dues.push(Date.parse(job.due) / 1000);
    token = page.next_page_token;
  }
  cache = { tube, dues, whole: token === null, read: Date.now() };
  return cache;
}

// Returns the counts of each wheel's slots, its hand, and how many jobs are beyond the last one.
export function place(dues, now) {
  const wheels = WHEELS.map(({ span, slots }) => ({ counts: Array(slots).fill(0),
    hand: Math.floor(now / span) % slots }));
  let beyond = 0;
  for (const due of dues) {
    if (due <= now) continue;
    const at = WHEELS.findIndex(({ span, slots }) =>
      Math.floor(due / (span * slots)) === Math.floor(now / (span * slots)));
    if (at < 0) ++beyond;
    else ++wheels[at].counts[Math.floor(due / WHEELS[at].span) % WHEELS[at].slots];
  }
  return { wheels, beyond };
}

const at = (radius, turn) => {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
};

function slotPath({ slots, outer, inner }, n) {
  const gap = 0.06 / slots, from = n / slots + gap, to = (n + 1) / slots - gap;
  return `M${at(outer, from)}A${outer} ${outer} 0 0 1 ${at(outer, to)}L${at(inner, to)}` +
    `A${inner} ${inner} 0 0 0 ${at(inner, from)}Z`;
}

function drawDial({ wheels, beyond }, now) {
  const image = s("svg", { class: "dial", role: "img", viewBox: "-250 -250 500 500",
    "aria-label": "Four wheels of a clock. " + wheels.map(({ counts, hand }, n) =>
      `${WHEELS[n].unit}s: ${jobs(counts.reduce((all, one) => all + one, 0))}, hand at ${hand}`)
      .join("; ") });
  const most = Math.max(1, ...wheels.flatMap(({ counts }) => counts));
  wheels.forEach(({ counts, hand }, n) => {
    const wheel = WHEELS[n];
    const moved = hands[n] !== undefined && hands[n] !== hand;
    counts.forEach((held, slot) => {
      const shade = held && 0.22 + 0.78 * Math.log1p(held) / Math.log1p(most);
      const poured = moved && n > 0 && slot === hand;
      image.append(s("path", { d: slotPath(wheel, slot), "fill-opacity": held ? shade : null,
        class: ["slot", held && "full", slot === hand && "now", poured && "poured"]
          .filter(Boolean).join(" ") },
        s("title", {}, `${wheel.unit} ${slot}: ${jobs(held)}`)));
    });
    hands[n] = hand;
  });
  const turn = (now / 60) % 1;
  const [x2, y2] = at(240, turn).split(" "), [x1, y1] = at(30, turn).split(" ");
  image.append(s("line", { class: "hand", x1, y1, x2, y2 }), s("circle", { class: "hub", r: 34 }),
    s("text", { class: "time", y: 4.5 }, new Date(now * 1000).toISOString().slice(11, 16)));
  image.append(s("text", { class: "beyond", y: 47 }, beyond ? `${count(beyond)} beyond` : ""));
  return image;
}

function wheelTable({ wheels, beyond }) {
  const sum = (counts) => counts.reduce((all, one) => all + one, 0);
  return h("table", {}, h("thead", {}, h("tr", {}, ["wheel", "hand", "jobs"].map((name, n) =>
    h("th", { scope: "col", class: n ? "number" : null }, name)))),
  h("tbody", {}, wheels.map(({ counts, hand }, n) => h("tr", {},
    h("td", {}, ["seconds, outermost", "minutes", "hours", "days, innermost"][n]),
    h("td", { class: "number" }, hand), h("td", { class: "number" }, count(sum(counts))))),
  h("tr", {}, h("td", {}, "beyond"), h("td"), h("td", { class: "number" }, count(beyond)))));
}

// Returns the minutes with a tenth of the jobs each, and at least 20: [{ from, value }].
export function stormsOf(dues) {
  const minutes = new Map();
  for (const due of dues)
    minutes.set(Math.floor(due / 60), (minutes.get(Math.floor(due / 60)) || 0) + 1);
  return [...minutes].filter(([, value]) => value >= Math.max(20, dues.length / 10))
    .map(([minute, value]) => ({ from: minute * 60, value }));
}

// What is due in each part of the next minute, hour, day or month.
function comingBars(dues, now, [parts, span], storms) {
  const counts = Array(parts).fill(0);
  for (const due of dues) {
    const n = Math.floor((due - now) / span);
    if (n >= 0 && n < parts) ++counts[n];
  }
  const isIn = (n, { from }) => from + 60 > now + n * span && from < now + (n + 1) * span;
  return counts.map((value, n) => ({ value, storm: storms.some((storm) => isIn(n, storm)),
    name: n ? `+${duration(n * span)}` : "now" }));
}

function stormList(tube, storms) {
  if (!storms.length) return h("p", { class: "quiet" }, "No storm is coming.");
  return h("ul", {}, storms.map(({ from, value }) => {
    const after = new Date(from * 1000), before = new Date((from + 60) * 1000);
    return h("li", {}, h("a", { href: address("jobs", { tube, state: "delayed",
      due_after: after.toISOString(), due_before: before.toISOString() }) }, jobs(value)),
    ` within one minute, ${until(after)} (${clock(after)})`);
  }));
}

export async function showWheel(view) {
  const tubes = await allTubes();
  const names = tubes.filter(({ jobs: held }) => held.delayed).sort((a, b) =>
    b.jobs.delayed - a.jobs.delayed);
  const tube = view.query.tube || names[0]?.name;
  const choice = (name, chosen, options) => h("select", { "data-key": name, onchange: (event) => {
    event.target.blur();
    location.hash = address("wheel", { ...view.query, tube, [name]: event.target.value });
  } }, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  if (!tube) {
    view.draw(head("The Wheel", "Delayed jobs on their way round"), empty("No job is delayed."));
    return 2;
  }
  if (cache.tube !== tube) hands = [];
  const { dues, whole } = await nearest(tube);
  const now = Date.now() / 1000;
  const placed = place(dues, now);
  const reach = dues.at(-1);
  const unit = SPANS[view.query.next] ? view.query.next : "hour";
  const storms = stormsOf(dues);
  const bars = comingBars(dues, now, SPANS[unit], storms);
  const about = whole ? `All ${jobs(dues.length)} of tube ${tube} that are delayed` :
    `The next ${jobs(dues.length)} of tube ${tube}, up to ${clock(reach * 1000)}`;
  view.draw(
    head("The Wheel", about, field("Tube", choice("tube", tube, names.map(({ name, jobs: held }) =>
      [name, `${name} (${count(held.delayed)})`])))),
    h("div", { class: "wheel" },
      h("section", { class: "card", "aria-label": "Dials" }, drawDial(placed, now)),
      h("div", {},
        h("section", { class: "card" }, h("h2", {}, "Four wheels, in UTC"), wheelTable(placed),
          h("p", { class: "quiet" }, "A slot is darker the more jobs it holds. When a hand moves " +
            "on, its slot pours into the next finer wheel.")),
        h("section", { class: "card" }, h("h2", {}, "Storms"),
          stormList(tube, storms)))),
    h("section", { class: "card" },
      h("div", { class: "head" }, h("h2", {}, "Due next"), field("In the next",
        choice("next", unit, Object.keys(SPANS).map((name) => [name, name])))),
      barPlot(`Jobs due in the next ${unit}: ${jobs(bars.reduce((all, one) => all + one.value, 0))}`
        + (bars.some((bar) => bar.storm) ? ", with a storm" : ""), bars, count)));
  return 1;
}
