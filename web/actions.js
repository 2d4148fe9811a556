// What changes jobs: says what goes wrong; many jobs are counted first, confirmed, then watched.
import { api, get } from "./api.js";
import { confirm, openDialog, toast } from "./dialog.js";
import { count, h, incomplete, jobs } from "./dom.js";
import { Problem } from "./problem.js";
import { inWords } from "./times.js";

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

// Returns what a change did. Throws if it has stopped half-way.
function whole(change) {
  if (!change.error) return change;
  throw new Problem(500, `${jobs(change.changed ?? change.kicked)} done, then: ${change.error}`);
}

// Sends a request that may go on as an operation (202), and shows how far it is.
export async function run(title, expected, path, body) {
  const reply = await api("POST", path, body);
  if (reply.status !== 202) return whole(reply.body);
  const bar = h("progress", { "aria-label": title, max: expected || null });
  const words = h("p", {}, "It has begun.");
  const { dialog, closed } = openDialog(title, bar, words, h("form", { method: "dialog" },
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
  return whole(operation);
}

export const countMany = (verb, body) =>
  run("Counting the jobs", 0, `/v1/jobs:${verb}`, { ...body, dry_run: true });

// Changes the jobs that a filter means: counts them, unless they are `counted`, asks, does it.
// Returns true if it was done.
export async function changeMany(verb, words, body, counted) {
  let done = false;
  await attempt(async () => {
    counted ??= await countMany(verb, body);
    const { changed } = counted;
    if (!changed) return toast(incomplete(counted) || "There is no such job.");
    const title = `${words} ${jobs(changed)}?`;
    const where = body.to ? `from tube ${body.filter.tube} to ${body.to}` :
      `of tube ${body.filter.tube}`;
    const then = { cancel: "They are deleted, and cannot be brought back.",
      spread: body.over && `They get later times, dealt out over ${inWords(body.over)}. The ` +
        "others keep theirs." };
    if (!await confirm(title, `${jobs(changed)} ${where}. ` +
      (then[verb] || "Jobs that are reserved stay."),
      `${words} ${jobs(changed)}`, verb === "cancel")) return;
    const result = await run(`${words}: ${jobs(changed)}`, changed, `/v1/jobs:${verb}`, body);
    toast([`${words}: ${jobs(result.changed)} done.`, incomplete(result)].join(" ").trim());
    done = true;
  });
  return done;
}
