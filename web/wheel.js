// The Wheel: the delayed jobs that are due next, as the slots of four wheels of a clock. Each wheel
// holds what the finer ones do not: jobs of this minute are on the wheel of seconds, those of this
// hour on that of minutes, and so on. When a hand moves on, its slot pours into the finer wheel.
import { changeMany, countMany } from "./actions.js";
import { allTubes, getIfThere } from "./api.js";
import { ask } from "./dialog.js";
import { address, button, count, empty, field, h, head, jobs, link, s } from "./dom.js";
import { barPlot } from "./plot.js";
import { clock, duration, until } from "./times.js";
import { tubeChooser } from "./tube_lists.js";

const WHEELS = [
  { unit: "second", slots: 60, outer: 238, inner: 196 },
  { unit: "minute", slots: 60, outer: 190, inner: 148 },
  { unit: "hour", slots: 24, outer: 142, inner: 100 },
  { unit: "day", slots: 30, outer: 94, inner: 52 },
];
// What is shown of the time to come: which of the wheel's spans, and how long one is.
const SPANS = { minute: ["second", 1], hour: ["minute", 60], day: ["hour", 3600],
  month: ["day", 86400] };
const READ_MS = 2_000;
const TUBES_MS = 10_000;

let cache = { tube: null };
let hands = [];

// Returns the server's answer, and what time it is there; nothing if there is no such tube.
async function read(tube) {
  const passed = () => performance.now() - cache.read;
  const minute = () => Math.floor((cache.now + passed()) / 60000);
  if (cache.tube !== tube || passed() > READ_MS || minute() > Math.floor(cache.now / 60000)) {
    const wheel = await getIfThere(`/v1/wheel?tube=${encodeURIComponent(tube)}`);
    cache = { tube, wheel, now: wheel && Date.parse(wheel.now), read: performance.now() };
  }
  if (cache.wheel === null) cache = { tube: null };
  return cache.wheel && { wheel: cache.wheel, now: (cache.now + passed()) / 1000 };
}

// Returns the counts of each dial's slots, and its hand. What the first hand has passed since the
// server was asked has fired.
function place({ dials, beyond }, now) {
  const wheels = dials.map(({ jobs: counts, hand }) => ({ counts: [...counts], hand }));
  const [seconds] = wheels;
  const hand = Math.floor(now) % 60;
  for (; seconds.hand < hand; ++seconds.hand) seconds.counts[seconds.hand] = 0;
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
    const isEmpty = (slot) => !counts[slot] && slot !== hand;
    const slots = [...counts.keys()];
    image.append(s("path", { class: "slot",
      d: slots.filter(isEmpty).map((slot) => slotPath(wheel, slot)).join("") }));
    for (const slot of slots) {
      if (isEmpty(slot)) continue;
      const held = counts[slot];
      const shade = held && 0.22 + 0.78 * Math.log1p(held) / Math.log1p(most);
      const poured = moved && n > 0 && slot === hand;
      image.append(s("path", { d: slotPath(wheel, slot), "data-key": `${wheel.unit} ${slot}`,
        "fill-opacity": held ? shade : null,
        class: ["slot", held && "full", slot === hand && "now", poured && "poured"]
          .filter(Boolean).join(" ") },
        s("title", {}, `${wheel.unit} ${slot}: ${jobs(held)}`)));
    }
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

// What is due in each part of the next minute, hour, day or month.
function comingBars({ next, storms }, unit) {
  const [part, span] = SPANS[unit];
  const { jobs: counts } = next.find((one) => one.unit === part);
  const first = Math.floor(cache.now / 1000 / span);
  const isIn = (n, { from, before }) => Date.parse(from) / 1000 < (first + n + 1) * span &&
    Date.parse(before) / 1000 > (first + n) * span;
  return counts.map((value, n) => ({ value, storm: storms.some((storm) => isIn(n, storm)),
    name: n ? `+${duration(n * span)}` : "now" }));
}

function comingCard(wheel, unit, to) {
  const bars = comingBars(wheel, unit);
  const sum = bars.reduce((all, one) => all + one.value, 0);
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, "Due next"), field("In the next",
      h("select", { onchange: (event) => { location.hash = to(event.target.value); } },
        Object.keys(SPANS).map((name) =>
          h("option", { value: name, selected: name === unit }, name))))),
    barPlot("due next", `Jobs due in the next ${unit}: ${jobs(sum)}` +
      (bars.some((bar) => bar.storm) ? ", with a storm" : ""), bars, count));
}

async function spread({ tube, from, before, jobs: held }) {
  const filter = { tube, due_after: from, due_before: before };
  let body;
  const counted = await ask(`Spread a storm of ${jobs(held)}?`, `Jobs of tube ${tube} that are ` +
    `due at ${clock(from)}, within one minute. They are dealt out evenly over a longer time, ` +
    "which begins then. None comes earlier.", "Count them",
  [{ name: "over", label: "Over how long", kind: "duration", value: "1 h", required: true }],
  ({ over }) => countMany("spread", body = { over, filter }));
  return counted && changeMany("spread", "Spread", body, counted);
}

function stormList(view, storms) {
  if (!storms.length) return h("p", { class: "quiet" }, "No storm is coming.");
  return h("ul", { class: "storms" }, storms.map((storm) => {
    const { tube, from, before, jobs: held, estimated } = storm;
    return h("li", { "data-key": from }, h("span", {},
      link("jobs", { tube, state: "delayed", due_after: from, due_before: before },
        `${estimated ? "about " : ""}${jobs(held)}`),
    ` within one minute, ${until(from)} (${clock(from)})`),
    button("Spread\u2026", async () => { if (await spread(storm)) again(view); },
      { "aria-label": `Spread the storm of ${clock(from)}` }));
  }));
}

function again(view) {
  cache = { tube: null };
  view.again();
}

export async function showWheel(view) {
  const reading = allTubes(TUBES_MS).then((all) => all.filter(({ jobs: held }) => held.delayed)
    .sort((a, b) => b.jobs.delayed - a.jobs.delayed));
  const tube = view.query.tube || (await reading)[0]?.name;
  const to = (what) => (value) => address("wheel", { ...view.query, tube, [what]: value });
  if (cache.tube !== tube) hands = [];
  const [names, told] = await Promise.all([reading, tube ? read(tube) : null]);
  if (!told) {
    view.draw(head("The Wheel", "Delayed jobs on their way round"), empty("No job is delayed."));
    return 2;
  }
  const { wheel, now } = told;
  const placed = place(wheel, now);
  const unit = SPANS[view.query.next] ? view.query.next : "hour";
  const about = `${jobs(wheel.delayed)} of tube ${tube} that ` +
    `${wheel.delayed === 1 ? "is" : "are"} delayed` + (wheel.exact ? "" :
    `; what is due later than ${clock(wheel.exact_until)} is estimated`);
  view.draw(
    head("The Wheel", about, tubeChooser("Tube", names.map(({ name, jobs: held }) =>
      [name, `${name} (${count(held.delayed)})`]), tube, to("tube"))),
    h("div", { class: "wheel" },
      h("section", { class: "card", "aria-label": "Dials" }, drawDial(placed, now)),
      h("div", {},
        h("section", { class: "card" }, h("h2", {}, "Four wheels, in UTC"), wheelTable(placed),
          h("p", { class: "quiet" }, "A slot is darker the more jobs it holds. When a hand moves " +
            "on, its slot pours into the next finer wheel.")),
        h("section", { class: "card" }, h("h2", {}, "Storms"), stormList(view, wheel.storms)),
        comingCard(wheel, unit, to("next")))));
  return 1;
}
