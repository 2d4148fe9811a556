// Plots, drawn by uPlot: lines over the last minutes, and bars. A plot is made once and gets new
// data. It has its text beside it, and tells its values where the pointer or the arrow keys point.
import { h, s } from "./dom.js";
import { kept } from "./patch.js";

const { uPlot } = window;
const HEIGHT = 170;
const FONT = "11px system-ui, sans-serif";
const GAP_S = 2.5;  // between two points that no line connects
const AWAY = { left: -10, top: -10 };  // where uPlot's cursor is hidden
const LINES = [["accent", []], ["cool", [6, 3]], ["good", [2, 3]]];

export const plots = new Map();  // all of them, by their keys

// A program may have been built where uPlot could not be had.
const leftOut = () => h("p", { class: "quiet" }, "This program was built without uPlot, which " +
  "draws the plots.");

const color = (name) => () =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);

// Returns a bound for an axis that is round: 1, 2 or 5 times a power of ten.
function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((bound) => bound >= most);
}

// A plot in a box, of which x is 0 now. `splits` and `values` are uPlot's, of the axis of x; `show`
// turns a value into text; an arrow key moves what is pointed at by `step`. `tell` is called when
// that, or the data, have changed. It shows what is pointed at, and returns it in words.
class Plot {
  constructor(key, { series, splits, values, show, step, sync, tell }) {
    this.box = h("div", { class: "plot", role: "slider", tabindex: 0 });
    this.ends = [0, 1];
    this.tell = tell;
    const text = { stroke: color("quiet"), font: FONT, ticks: { show: false } };
    this.chart = new uPlot({
      width: 400, height: HEIGHT, legend: { show: false }, padding: [10, 12, 0, 0],
      series: [{}, ...series], hooks: { setCursor: [tell] },
      scales: { x: { time: false, range: () => this.ends },
        y: { range: (u, low, high) => [0, roundUp(Math.max(0, high))] } },
      axes: [{ ...text, grid: { show: false }, size: 28, gap: 9, splits, values },
        { ...text, grid: { stroke: color("line"), width: 1 }, size: 54, gap: 6,
          splits: (u, axis, low, high) => [0, high / 2, high],
          values: (u, [, , high]) => ["0", "", show(high)] }],
      cursor: { y: false, drag: { x: false, y: false, setScale: false }, sync },
    }, [[], ...series.map(() => [])], this.box);
    this.box.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -step, ArrowRight: step }[event.key];
      if (!steps && event.key !== "Escape") return;
      event.preventDefault();
      const [first, last] = this.ends, at = this.pointed();
      const x = at === null ? 0 : at + steps;
      this.pointAt(steps ? Math.min(Math.floor(last), Math.max(Math.ceil(first), x)) : null);
      this.say();
    });
    new ResizeObserver(() => {
      const { clientWidth: width } = this.box;
      if (!width) return;
      const at = this.pointed();
      this.chart.setSize({ width, height: HEIGHT });
      if (at !== null) this.pointAt(at);
    }).observe(this.box);
    plots.set(key, this);
  }

  // Tells a screen reader what a key points at, but not each second what has changed.
  say() {
    this.box.setAttribute("aria-valuenow", this.pointed() ?? 0);
    this.box.setAttribute("aria-valuetext", this.tell());
  }

  // Returns the x that is pointed at; null if none is.
  pointed() {
    const { left } = this.chart.cursor;
    return left < 0 ? null : this.chart.posToVal(left, "x");
  }

  pointAt(x) {
    const where = x === null ? AWAY : { left: this.chart.valToPos(x, "x"), top: 1 };
    this.chart.setCursor(where, true, true);
  }

  draw(label, ends, data) {
    for (const [name, value] of [["label", label], ["valuemin", ends[0]], ["valuemax", ends[1]]])
      this.box.setAttribute(`aria-${name}`, value);
    this.ends = ends;
    this.chart.setData(data);
    this.tell();
    if (!this.box.hasAttribute("aria-valuenow")) this.say();
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { chart } of plots.values()) chart.redraw();
});
window.addEventListener("hashchange", () => {
  for (const plot of plots.values()) {
    plot.pointAt(null);
    plot.say();
  }
});

function ago(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${minutes ? `${minutes} min ` : ""}${seconds % 60} s ago`;
}

// Puts the points of all lines, which are of the same moments, side by side.
function align(lines, seconds) {
  const moments = [], values = lines.map(() => []);
  const add = (moment, each) => {
    moments.push(moment);
    values.forEach((all, n) => all.push(each(lines[n])));
  };
  lines[0].points.forEach(([back], n) => {
    if (back > seconds) return;
    if (-back - moments.at(-1) > GAP_S) add((moments.at(-1) - back) / 2, () => null);
    add(-back, (line) => line.points[n][1]);
  });
  return [moments, ...values];
}

function linesOf(title, names, seconds) {
  const moment = h("span", { class: "quiet" });
  const values = names.map(() => h("span", {}));
  const minutes = Array.from({ length: seconds / 60 + 1 }, (_, n) => n * 60 - seconds);
  const plot = new Plot(title, {
    series: names.map((_, n) => ({ stroke: color(LINES[n][0]), dash: LINES[n][1], width: 2,
      points: { show: false } })),
    splits: () => minutes, step: 5, sync: { key: "lines" },
    values: (u, all) => all.map((x) => x ? `${x / -60} min` : "now"),
    show: (value) => plot.show(value),
    tell: () => {
      const { data, cursor } = plot.chart;
      const at = plot.pointed();
      const isNear = at !== null && Math.abs(data[0][cursor.idx] - at) <= GAP_S;
      moment.textContent = at === null ? "" : ago(Math.round(-at));
      names.forEach((name, n) => {
        const value = at === null ? data[n + 1].at(-1) : isNear ? data[n + 1][cursor.idx] : null;
        values[n].textContent = `${name} ${plot.text(value)}`;
      });
      return [moment.textContent || "now", ...values.map((one) => one.textContent)].join(", ");
    },
  });
  plot.text = (value) => value === null || value === undefined ? "none" : plot.show(value);
  plot.card = h("section", { class: "card" }, h("h2", {}, title, " ", moment), plot.box,
    h("ul", { class: "legend" }, names.map((_, n) => h("li", {},
      s("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" },
        s("line", { class: `stroke-${n + 1}`, "stroke-width": 3, x1: 0, x2: 26, y1: 4, y2: 4 })),
      values[n]))));
  return plot;
}

// `lines`: [{ name, points: [[seconds ago, value], ...] }], the newest point last; a null and some
// seconds without a point are gaps. `show` turns a value into text. The pointer, or the arrow keys,
// ask all these plots for the values of another moment.
export function linePlot(title, lines, show, seconds = 300) {
  if (!uPlot) return h("section", { class: "card" }, h("h2", {}, title), leftOut());
  const plot = plots.get(title) || linesOf(title, lines.map(({ name }) => name), seconds);
  plot.show = show;
  const now = lines.map(({ name, points }) => `${name} ${plot.text(points.at(-1)?.[1])}`);
  plot.draw(`${title}, the last ${seconds / 60} minutes; now ${now.join(", ")}`, [-seconds, 0],
    align(lines, seconds));
  return kept(plot.card);
}

function barsOf(key) {
  const value = h("p", { class: "quiet" });
  const paths = uPlot.paths.bars({ size: [0.8, 40] });
  const plot = new Plot(key, {
    series: ["accent", "bad"].map((name) => ({ fill: color(name), width: 0, paths,
      points: { show: false } })),
    splits: () => {
      const step = Math.ceil(plot.bars.length / 4);
      return plot.bars.map((_, n) => n).filter((n) => n % step === 0);
    },
    step: 1, show: (one) => plot.show(one),
    values: (u, all) => all.map((n) => plot.bars[n].name),
    tell: () => {
      const at = plot.pointed();
      const bar = at === null ? null : plot.bars[Math.round(at)];
      value.textContent = bar ? `${bar.name}: ${plot.show(bar.value)}` : "";
      return value.textContent || "no bar";
    },
  });
  plot.all = h("div", {}, plot.box, value);
  return plot;
}

// `bars`: [{ name, value, storm }]. `key` tells plots of bars apart.
export function barPlot(key, label, bars, show) {
  if (!uPlot) return leftOut();
  const plot = plots.get(key) || barsOf(key);
  Object.assign(plot, { bars, show });
  const least = roundUp(Math.max(0, ...bars.map((bar) => bar.value))) / 80;  // that can be seen
  const those = (storm) => bars.map((bar) =>
    bar.value && !bar.storm === !storm ? Math.max(bar.value, least) : null);
  plot.draw(label, [-0.5, bars.length - 0.5],
    [bars.map((_, n) => n), those(false), those(true)]);
  plot.chart.redraw(false, true);  // the names, which uPlot keeps for the same ends
  return kept(plot.all);
}
