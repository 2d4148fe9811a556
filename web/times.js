// Times and durations: read as people type them, told as people read them. A time without a zone is
// in the zone of the browser.
//
//   readDuration("1 h 30 min")               // 5 400 000, in ms
//   spell(5_400_000)                         // "1 h 30 min", which is read back as the same
//   readMoment("tomorrow 9:00", new Date())  // a Date
//
// What cannot be read gives null.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const UNITS = {
  __proto__: null, ms: 1, millisecond: 1, s: SECOND, sec: SECOND, second: SECOND,
  m: MINUTE, min: MINUTE, minute: MINUTE, h: HOUR, hr: HOUR, hour: HOUR,
  d: DAY, day: DAY, w: 7 * DAY, week: 7 * DAY,
};
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const unitOf = (word) => UNITS[word] ?? (word.length > 2 ? UNITS[word.replace(/s$/, "")] : null);

// 250ms, 90 s, 1.5 h, 1 h 30 min, 7 days, 2 weeks.
export function readDuration(text) {
  const part = /\s*(\d+(?:[.,]\d+)?)\s*([a-z]+)(?:\s*(?:,|and\b))?/y;
  const words = text.trim().toLowerCase();
  let ms = 0;
  for (let end = 0; end < words.length || end === 0; end = part.lastIndex) {
    part.lastIndex = end;
    const [, number, word] = part.exec(words) || [];
    const unit = word && unitOf(word);
    if (!unit) return null;
    ms += Math.round(Number(number.replace(",", ".")) * unit);
  }
  return ms;
}

// The whole duration in words: 30 days, 1 h 30 min, 250 ms.
export function spell(ms) {
  const told = [];
  for (const name of ["day", "h", "min", "s", "ms"]) {
    const unit = UNITS[name];
    const n = Math.floor(ms / unit);
    if (n) told.push(`${n} ${name}${name === "day" && n > 1 ? "s" : ""}`);
    ms -= n * unit;
  }
  return told.join(" ") || "0 s";
}

// The same, of what the server tells: 900s.
export const inWords = (duration) => spell(readDuration(duration));

// Returns [year, month from 0, day], as Date.UTC() takes them. `today` is a Date in UTC.
function readDay(text, today) {
  const from = (days) => [today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() + days];
  const near = { __proto__: null, "": 0, today: 0, tomorrow: 1, yesterday: -1 }[text];
  if (near !== undefined) return from(near);
  const weekday = text.match(/^(?:on |next )?(sun|mon|tue|wed|thu|fri|sat)(?:[a-z]*day)?$/);
  if (weekday) return from((WEEKDAYS.indexOf(weekday[1]) - today.getUTCDay() + 6) % 7 + 1);
  const iso = text.match(/^(\d{4})-(\d\d?)-(\d\d?)$/);
  const written = text.match(/^(?:[a-z]+,? )?(\d\d?)\.? ([a-z]{3})[a-z]*\.?,?(?: (\d{4}))?$/);
  const [year, month, day] = iso ? [iso[1], iso[2] - 1, iso[3]] : written ?
    [written[3] ?? today.getUTCFullYear(), MONTHS.indexOf(written[2]), written[1]] : [];
  const made = new Date(Date.UTC(year, month, day));
  const isReal = made.getUTCMonth() === month && made.getUTCDate() === Number(day);
  return isReal ? [Number(year), month, Number(day)] : null;
}

const CLOCK = new RegExp("^(.*?),? ?(?:\\bat |(?<=\\d)t)?" +
  "(?<hours>\\d\\d?)(?::(?<minutes>\\d\\d)(?::(?<seconds>\\d\\d)(?<fraction>\\.\\d+)?)?)?" +
  " ?(?<half>am|pm)? ?(?<zone>z|utc|gmt|[+-]\\d\\d:?\\d\\d)?$");

// Returns [hours, minutes, seconds, ms].
function readClock({ hours, minutes = 0, seconds = 0, fraction = 0, half }) {
  const isReal = half ? hours >= 1 && hours <= 12 : hours < 24;
  if (!isReal || minutes > 59 || seconds > 59) return null;
  const hour = half ? hours % 12 + (half === "pm" ? 12 : 0) : hours;
  return [hour, minutes, seconds, Math.floor(fraction * SECOND)];
}

function offsetOf(zone) {
  const [, sign, hours, minutes] = zone.match(/([+-])(\d\d):?(\d\d)/) || [zone, "+", 0, 0];
  return Number(`${sign}1`) * (hours * HOUR + minutes * MINUTE);
}

const real = (date) => Number.isNaN(date.getTime()) ? null : date;

// now, in 2 h, 2 h ago, 9:00, 9 pm, tomorrow 9:00, mon 9:00, 30 Nov 9:00, 2026-11-30,
// 2026-11-30 9:00, 2026-11-30T09:00:00Z, 2026-11-30 9:00 +01:00. A day alone begins at 0:00.
export function readMoment(text, now) {
  const words = text.trim().toLowerCase().replace(/\s+/g, " ");
  if (words === "") return null;
  if (words === "now") return now;
  const [, distance, ago] = words.match(/^(?:in |\+)?(.*?)( ago)?$/);
  const away = readDuration(distance);
  if (away !== null) return real(new Date(now.getTime() + (ago ? -away : away)));

  const found = words.match(CLOCK);
  const clock = found && (found.groups.minutes || found.groups.half) ? found.groups : null;
  const offset = clock?.zone ? offsetOf(clock.zone) : -now.getTimezoneOffset() * MINUTE;
  const day = readDay(clock ? found[1] : words, new Date(now.getTime() + offset));
  const time = clock ? readClock(clock) : [0];
  if (!day || !time) return null;
  return real(clock?.zone ? new Date(Date.UTC(...day, ...time) - offset) :
    new Date(...day, ...time));
}

// About how long, for what changes all the time: 340 ms, 12.5 s, 3 min, 2 h 5 min, 6 days.
export function duration(seconds) {
  if (seconds < 0.001) return "0 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  return `${Math.round(hours / 24)} days`;
}

export function until(moment) {
  const seconds = (new Date(moment) - Date.now()) / 1000;
  return seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`;
}

const clocks = new Map();  // by their zones: each takes a while to make

// A moment in the zone of the browser, or another one, and which zone that is.
export function clock(moment, timeZone) {
  if (!clocks.has(timeZone)) {
    clocks.set(timeZone, new Intl.DateTimeFormat("en-GB", {
      timeZone, weekday: "short", day: "numeric", month: "short", year: "numeric",
      hour: "2-digit", minute: "2-digit", second: "2-digit",
      timeZoneName: "short",
    }));
  }
  return clocks.get(timeZone).format(new Date(moment));
}

// A moment as it is typed into a field: 2026-11-30 09:00.
export function typed(moment) {
  const date = new Date(moment);
  const two = (n) => String(n).padStart(2, "0");
  const ms = date.getMilliseconds();
  const seconds = date.getSeconds() || ms ? `:${two(date.getSeconds())}` : "";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}${seconds}` +
    (ms ? `.${String(ms).padStart(3, "0")}` : "");
}
