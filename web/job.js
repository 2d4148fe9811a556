// One job, found by its id, or its tube and key: its story, its body, and what can be done to it.
import { attempt } from "./actions.js";
import { api, get, tubePath } from "./api.js";
import { ask, confirm, told } from "./dialog.js";
import { address, button, count, field, h, head, link, state, time } from "./dom.js";
import { Problem } from "./problem.js";
import { clock, inWords } from "./times.js";

function finder(query) {
  const input = (name, label, attributes) =>
    field(label, h("input", { name, value: query[name], ...attributes }));
  return h("form", { class: "card row", role: "search", "aria-label": "Find a job",
    onsubmit: (event) => {
      event.preventDefault();
      const { id, tube, key } = Object.fromEntries(new FormData(event.target));
      location.hash = address("job", key ? { tube, key } : { id });
    } }, input("id", "Id", { inputmode: "numeric", size: 10 }), h("span", {}, "or"),
  input("tube", "Tube", { size: 12 }), input("key", "Key"),
  h("button", { class: "main" }, "Find"));
}

function story(job) {
  const events = [h("li", {}, "Put ", time(job.created), ` (${clock(job.created)})`)];
  for (const one of job.attempts || []) {
    events.push(h("li", { class: "bad" },
      { failed: "Failed ", timed_out: "Its time was over ", lost: "Its worker was lost " }[
        one.ended],
      time(one.at), one.worker ? ` at ${one.worker}` : "",
      one.error || one.error_base64 ? h("pre", {}, one.error ?? atob(one.error_base64)) : null));
  }
  const now = {
    delayed: ["Due ", time(job.due), ` (${clock(job.due)})`],
    ready: ["Ready since ", time(job.due), ", and waits for a worker"],
    reserved: ["Reserved", job.worker ? ` by ${job.worker}` : "",
      job.lease_ends ? [", until ", time(job.lease_ends)] : ""].flat(),
    buried: ["Buried: it waits for a kick"], dead: ["Dead: it has failed too often, or expired"],
  }[job.state];
  events.push(h("li", { class: job.state === "dead" ? "bad" : null }, ...now));
  return h("ul", { class: "story" }, events);
}

function shown(job) {
  if (job.body_url) return `It is too large to be shown here: GET ${job.body_url}`;
  if (job.body_base64 !== undefined) return `${job.body_base64}\n(Base64)`;
  try {
    return JSON.stringify(JSON.parse(job.body), null, 2);
  } catch {
    return job.body ?? "";
  }
}

function actions(view, job) {
  const path = `/v1/jobs/${job.id}`;
  const then = (action) => async () => { if (await action()) view.again(); };
  const free = job.state !== "reserved";
  return [
    free && job.state !== "ready" ? button(job.state === "delayed" ? "Make it ready" : "Retry",
      then(() => attempt(() => api("POST", `${path}:kick`), `Job ${job.id} is ready.`))) : null,
    free ? button("Put off\u2026", then(() => ask(`Put off job ${job.id}`, "It is due then.",
      "Put off", [{ name: "due", label: "Until when", kind: "later", required: true }],
      async (given) => {
        await api("PATCH", path, given, "application/merge-patch+json");
        return told(`Job ${job.id} has another time.`);
      }))) : null,
    button("Cancel\u2026", then(async () => await confirm(`Cancel job ${job.id}?`,
      free ? "1 job is deleted, and cannot be brought back." :
        "Its worker is asked to stop; the 1 job is deleted when it has.", "Cancel 1 job") &&
      attempt(() => api("DELETE", path + (free ? "" : "?if_reserved=ask")),
        free ? `Job ${job.id} is cancelled.` : "Its worker is asked.")), { class: "danger" }),
  ].filter(Boolean);
}

export async function showJob(view) {
  const { id, tube, key } = view.query;
  const path = key ? `${tubePath(tube)}/keys/${encodeURIComponent(key)}` : id && `/v1/jobs/${id}`;
  if (!path) {
    view.draw(head("Find a job", "By its id, or its tube and key"), finder(view.query));
    return 0;
  }
  let job;
  try {
    job = await get(path);
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status === 0) throw problem;
    view.draw(head("Find a job", "By its id, or its tube and key"), finder(view.query),
      h("p", { class: "card", role: "alert" }, problem.status === 404 ?
        "There is no such job: it is done, or was cancelled." : problem.message));
    return 0;
  }
  const retry = job.retry?.max_attempts ? ` of ${job.retry.max_attempts}` : "";
  const facts = { tube: link("jobs", { tube: job.tube }, job.tube), key: job.key, group: job.group,
    priority: count(job.priority), due: clock(job.due), "time to run": inWords(job.ttr),
    "failed attempts": job.failed_attempts + retry,
    expires: job.expires_at && `${clock(job.expires_at)} (${job.at_expiry || "drop"})`,
    type: job.content_type, trace: job.traceparent,
    metadata: job.metadata && h("code", {}, JSON.stringify(job.metadata)) };
  view.draw(head(`Job ${job.id}`, state(job.state), ...actions(view, job)),
    h("div", { class: "grid" },
      h("section", { class: "card" }, h("h2", {}, "Story"), story(job)),
      h("section", { class: "card" }, h("h2", {}, "Facts"), h("dl", { class: "facts" },
        Object.entries(facts).filter(([, value]) => value).flatMap(([name, value]) =>
          [h("dt", {}, name), h("dd", {}, value)])))),
    h("section", { class: "card" }, h("h2", {}, `Body, ${count(job.body_bytes)} bytes`),
      h("pre", { tabindex: 0, role: "region", "aria-label": "Body" }, shown(job))),
    finder(view.query));
  return 2;
}
