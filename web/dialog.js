// Questions, messages, and changes of many jobs: counted first, confirmed, then watched.
import { api, get, Problem } from "./api.js";
import { count, field, h, jobs } from "./dom.js";

export function toast(text) {
  const shown = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

// Shows a dialog until it is closed; returns what it was closed with. The browser keeps the focus
// in it, and gives it back.
function open(title, ...content) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" },
    h("h2", { id: "dialog-title" }, title), ...content);
  document.body.append(dialog);
  dialog.showModal();
  const closed = new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue);
  }));
  return { dialog, closed };
}

export async function confirm(title, text, action, danger = true) {
  const { closed } = open(title, h("p", {}, text), h("form", { method: "dialog" },
    h("div", { class: "row" }, h("button", { value: "", autofocus: true }, "Go back"),
      h("button", { value: "yes", class: danger ? "danger" : "main" }, action))));
  return await closed === "yes";
}

// Asks for the fields: [{ name, label, value, ...attributes }]. Returns what was given, or null.
export async function ask(title, text, action, fields) {
  const inputs = fields.map(({ label, ...attributes }) => [label, h("input", attributes)]);
  const { closed } = open(title, h("p", {}, text), h("form", { method: "dialog" },
    inputs.map(([label, input]) => field(label, input)),
    h("div", { class: "row" }, h("button", { value: "", formnovalidate: true }, "Go back"),
      h("button", { value: "yes", class: "main" }, action))));
  inputs[0][1].focus();
  if (await closed !== "yes") return null;
  return Object.fromEntries(inputs.map(([, input]) => [input.name, input.value.trim()]));
}

export async function askForToken(refused) {
  for (;;) {
    const given = await ask("A token is needed",
      refused ? "The server does not take this token." : "The server asks who you are.", "Go on",
      [{ name: "token", label: "Token", type: "password", required: true, autocomplete: "off" }]);
    if (given?.token) return given.token;
  }
}

// Calls `action`, and says what is wrong if it fails. Returns true if it did not.
export async function attempt(action, done) {
  try {
    const said = await action();
    if (done) toast(typeof done === "function" ? done(said) : done);
    return true;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    toast(problem.message);
    return false;
  }
}

// Sends a request that may go on as an operation (202), and shows how far it is.
async function run(title, expected, path, body) {
  const reply = await api("POST", path, body);
  if (reply.status !== 202) return reply.body;
  const bar = h("progress", { "aria-label": title, max: expected || null });
  const words = h("p", {}, "It has begun.");
  const { dialog, closed } = open(title, bar, words, h("form", { method: "dialog" },
    h("div", { class: "row" }, h("button", { value: "" }, "Let it go on"),
      h("button", { value: "stop", class: "danger" }, "Stop it"))));
  let left = false;
  closed.then((value) => {
    left = true;
    if (value === "stop") attempt(() => api("DELETE", reply.location));
  });
  let operation = reply.body;
  while (operation.state === "running") {
    await new Promise((resolve) => setTimeout(resolve, 250));
    operation = await get(reply.location);
    if (expected) bar.value = operation.changed;
    words.textContent =
      `${jobs(operation.changed)} so far; ${count(operation.looked_at)} looked at`;
  }
  if (!left) dialog.close();
  if (operation.state === "failed") throw new Problem(500, operation.error);
  return operation;
}

// Changes the jobs that a filter means: counts them, asks, does it. Returns true if it was done.
export async function changeMany(verb, words, body) {
  const path = `/v1/jobs:${verb}`;
  let done = false;
  await attempt(async () => {
    const { changed } = await run("Counting the jobs", 0, path, { ...body, dry_run: true });
    if (!changed) return toast("There is no such job.");
    const title = `${words} ${jobs(changed)}?`;
    const where = body.to ? `from tube ${body.filter.tube} to ${body.to}` :
      `of tube ${body.filter.tube}`;
    const then = { cancel: "They are deleted, and cannot be brought back.",
      spread: `They get later times, dealt out over ${body.over}. The others keep theirs.` };
    if (!await confirm(title, `${jobs(changed)} ${where}. ` +
      (then[verb] || "Jobs that are reserved stay."),
      `${words} ${jobs(changed)}`, verb === "cancel")) return;
    const result = await run(`${words}: ${jobs(changed)}`, changed, path, body);
    toast(`${words}: ${jobs(result.changed)} done.`);
    done = true;
  });
  return done;
}
