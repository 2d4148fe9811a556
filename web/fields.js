// Fields that say below what they have understood, or what is wrong with it.
//
//   typedField({ name: "due", label: "Until when", kind: "moment", required: true })
//   const given = readFields(form);  // { due: "2026-11-30T08:00:00.000Z" }; null if any is wrong
import { h } from "./dom.js";
import { clock, readDuration, readMoment, spell, until } from "./times.js";

// How what is typed becomes what the server takes, or null; and how to say what that means.
const KINDS = {
  moment: {
    read: (text) => readMoment(text, new Date())?.toISOString() ?? null,
    tell: (moment) => `${clock(moment)}, ${until(moment)}`,
    wrong: "is no time; write it like in 2 h, tomorrow 9:00 or 2026-11-30 9:00",
    placeholder: "tomorrow 9:00",
  },
  later: {
    read: (text) => {
      const moment = readMoment(text, new Date());
      return moment > new Date() ? moment.toISOString() : null;
    },
    tell: (moment) => `${clock(moment)}, ${until(moment)}`,
    wrong: "is no time to come; write it like in 2 h, tomorrow 9:00 or 2026-11-30 9:00",
    placeholder: "tomorrow 9:00",
  },
  // A field of type number would lose what is no number, and be empty then.
  number: {
    read: (text) => (/^[1-9]\d{0,15}$/.test(text) ? text : null),
    tell: () => "",
    wrong: "is no whole number from 1 on",
    placeholder: "",
  },
  duration: {
    read: (text) => {
      const ms = readDuration(text);
      return ms === null ? null : `${ms}ms`;
    },
    tell: (duration) => spell(readDuration(duration)),
    wrong: "is no duration; write it like 90 s, 15 min, 2 h or 7 days",
    placeholder: "15 min",
  },
};

// Returns what the server takes; null if the text is wrong.
function valueOf({ value, dataset }) {
  const text = value.trim();
  const kind = KINDS[dataset.kind];
  return kind && text ? kind.read(text) : text;
}

function say(input, text, isWrong) {
  const note = input.parentElement.querySelector(".note");
  note.textContent = text;
  note.classList.toggle("bad", isWrong);
  input.setAttribute("aria-invalid", isWrong);
}

function sayWhatItMeans(input) {
  const value = valueOf(input);
  const meaning = value && input.dataset.kind ? KINDS[input.dataset.kind].tell(value) : "";
  say(input, meaning === input.value ? "" : meaning, false);
}

// `at` is what the server calls the field. A page that is patched leaves the field alone.
export function typedField({ name, label, kind, at = `/${name}`, ...attributes }) {
  const id = `note-${name}`;
  const input = h("input", { name, "data-kind": kind, "data-at": at, "aria-describedby": id,
    placeholder: KINDS[kind]?.placeholder, oninput: () => sayWhatItMeans(input), ...attributes });
  const made = h("label", { "data-own": true }, label, input,
    h("span", { id, class: "note", "aria-live": "polite" }));
  sayWhatItMeans(input);
  return made;
}

const typedInputs = (form) => [...form.querySelectorAll("[data-at]")];

export function readFields(form) {
  const wrong = typedInputs(form).filter((input) => {
    const isWrong = !input.validity.valid || valueOf(input) === null;
    if (isWrong) say(input, input.validationMessage ||
      `\u201c${input.value}\u201d ${KINDS[input.dataset.kind].wrong}`, true);
    return isWrong;
  });
  wrong[0]?.focus();
  return wrong.length ? null : Object.fromEntries([...form.elements].filter(({ name }) => name)
    .map((input) => [input.name, valueOf(input)]));
}

// Says below its field what the server finds wrong, and the rest in the form's `.problem`.
export function blame(form, problem) {
  let rest = problem.errors.length ? "" : problem.message;
  for (const { pointer, detail } of problem.errors) {
    const input = typedInputs(form).find(({ dataset }) => dataset.at === pointer);
    if (input) say(input, detail, true);
    else rest += `${pointer}: ${detail} `;
  }
  form.querySelector(".problem").textContent = rest;
  form.querySelector("[aria-invalid=true]")?.focus();
}

// Where blame() says what is of no field.
export const problemLine = () => h("p", { class: "problem bad", role: "alert" });
