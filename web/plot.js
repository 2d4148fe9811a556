// Plots: lines over the last minutes, and bars. Each is an SVG with its text beside it.
import { h, s } from "./dom.js";

const HEIGHT = 150, LEFT = 50, BOTTOM = 20;
const GAP_S = 2.5;  // between two points that no line connects
// On a telephone a plot has fewer units, so that its text can be read.
const isNarrow = matchMedia("(max-width: 40rem)");

// Returns a bound for an axis that is round: 1, 2 or 5 times a power of ten.
export function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((bound) => bound >= most);
}

function frame(label, width, top, bottom) {
  const image = s("svg", { class: "plot", role: "img", viewBox: `0 0 ${width} ${HEIGHT}`,
    "aria-label": label });
  for (const [y, text] of [[10, top], [HEIGHT - BOTTOM, bottom]]) {
    image.append(s("line", { class: "rule", x1: LEFT, x2: width, y1: y, y2: y }),
      s("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, text));
  }
  return image;
}

// What the pointer or the arrow keys point at in all line plots, in seconds ago; null: nothing.
let pointed = null;

window.addEventListener("hashchange", () => { pointed = null; });

function ago(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${minutes ? `${minutes} min ` : ""}${seconds % 60} s ago`;
}

function point(seconds) {
  pointed = seconds;
  for (const card of document.querySelectorAll(".card")) card.showPointed?.();
}

// Returns the value that a line had so many seconds ago; null if it had none.
function valueAt(line, seconds) {
  const off = (one) => Math.abs(one[0] - seconds);
  const nearest = line.points.reduce((a, b) => off(b) < off(a) ? b : a, [Infinity, null]);
  return off(nearest) > GAP_S ? null : nearest[1];
}

// `key`: a name by which the image keeps the focus when it is drawn anew.
function letPoint(image, key, width, seconds) {
  const within = (ago) => Math.min(seconds, Math.max(0, ago));
  image.setAttribute("tabindex", 0);
  image.setAttribute("data-key", key);
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    point(Math.round(within(((width - x) / (width - LEFT)) * seconds)));
  });
  image.addEventListener("pointerleave", () => point(null));
  image.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 5, ArrowRight: -5 }[event.key];
    if (event.key === "Escape") point(null);
    if (!step) return;
    event.preventDefault();
    point(within((pointed ?? 0) + step));
  });
}

// `lines`: [{ name, points: [[seconds ago, value], ...] }], the newest point last; a null and some
// seconds without a point are gaps. `show` turns a value into text. The pointer, or the arrow keys,
// ask for the values of another moment.
export function linePlot(title, lines, show, seconds = 300) {
  const known = lines.flatMap((line) => line.points.map(([, value]) => value));
  const most = roundUp(Math.max(0, ...known));
  const width = isNarrow.matches ? 300 : 400;
  const x = (ago) => width - (ago / seconds) * (width - LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - 10);
  const text = (value) => value === null ? "none" : show(value);
  const last = (line) => text(line.points.at(-1)?.[1] ?? null);
  const image = frame(`${title}, the last 5 minutes; now ${lines.map((line) =>
    `${line.name} ${last(line)}`).join(", ")}`, width, show(most), "0");
  lines.forEach((line, n) => {
    let path = "", before = Infinity;
    for (const [ago, value] of line.points.filter((one) => one[0] <= seconds)) {
      if (value !== null)
        path += `${before - ago > GAP_S ? "M" : "L"}${x(ago).toFixed(1)} ${y(value).toFixed(1)}`;
      before = value === null ? Infinity : ago;
    }
    image.append(s("path", { class: `line stroke-${n + 1}`, d: path }));
  });
  for (const [back, when, anchor] of [[seconds, "5 min ago", "start"], [0, "now", "end"]])
    image.append(s("text", { x: x(back), y: HEIGHT - 4, "text-anchor": anchor }, when));
  const cursor = s("line", { class: "cursor", y1: 10, y2: HEIGHT - BOTTOM });
  const moment = h("span", { class: "quiet" });
  const values = lines.map(() => h("span", {}));
  image.append(cursor);
  const card = h("section", { class: "card" }, h("h2", {}, title, " ", moment), image,
    h("ul", { class: "legend" }, lines.map((line, n) => h("li", {},
      s("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" },
        s("line", { class: `stroke-${n + 1}`, "stroke-width": 3, x1: 0, x2: 26, y1: 4, y2: 4 })),
      values[n]))));
  card.showPointed = () => {
    cursor.toggleAttribute("hidden", pointed === null);
    moment.textContent = pointed === null ? "" : ago(pointed);
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(pointed ?? 0));
    lines.forEach((line, n) => {
      values[n].textContent =
        `${line.name} ${pointed === null ? last(line) : text(valueAt(line, pointed))}`;
    });
  };
  card.showPointed();
  letPoint(image, title, width, seconds);
  return card;
}

// `bars`: [{ name, value, storm }].
export function barPlot(label, bars, show) {
  const most = roundUp(Math.max(0, ...bars.map((bar) => bar.value)));
  const width = isNarrow.matches ? 300 : 340;
  const image = frame(label, width, show(most), "0");
  image.classList.add("bars");
  const step = (width - LEFT) / bars.length;
  bars.forEach((bar, n) => {
    const height = Math.max(1.5, (bar.value / most) * (HEIGHT - BOTTOM - 10));
    const x = LEFT + n * step;
    if (bar.value) {
      image.append(s("rect", { class: bar.storm ? "storm" : null, x: x + 1, rx: 1.5,
        y: HEIGHT - BOTTOM - height, width: step - 2, height },
        s("title", {}, `${bar.name}: ${show(bar.value)}`)));
    }
    if (n % Math.ceil(bars.length / 4) === 0)
      image.append(s("text", { x, y: HEIGHT - 4 }, bar.name));
  });
  return image;
}
