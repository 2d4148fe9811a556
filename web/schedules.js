// Schedules: when they fire next, in their own zones, and what an operator does to one.
import { attempt } from "./actions.js";
import { api, get } from "./api.js";
import { confirm } from "./dialog.js";
import { button, count, empty, h, head, link, time } from "./dom.js";
import { clock, inWords, until } from "./times.js";

function rule(one) {
  if (one.every) return `every ${inWords(one.every)}`;
  return [h("code", {}, one.cron), ` in ${one.time_zone || "UTC"}`];
}

function actions(view, one) {
  const path = `/v1/schedules/${encodeURIComponent(one.name)}`;
  const act = (what, question, action, said, button_class) =>
    button(what, async () => {
      if ((!question || await confirm(...question)) && await attempt(action, said)) view.again();
    }, { "aria-label": `${what} schedule ${one.name}`, class: button_class });
  return h("div", { class: "row" },
    one.paused ? act("Resume", null, () => api("POST", `${path}:resume`), "It fires again.") :
      act("Pause", [`Pause schedule ${one.name}?`, "What comes meanwhile is skipped, until it " +
        "is resumed.", "Pause it", false], () => api("POST", `${path}:pause`),
      `Schedule ${one.name} is paused.`),
    act("Trigger", [`Trigger schedule ${one.name}?`, `1 job is put into tube ${one.job.tube} now.`,
      "Put 1 job", false], () => api("POST", `${path}:trigger`),
    (reply) => `Job ${reply.body.id} is put.`),
    act("Delete", [`Delete schedule ${one.name}?`, "It puts no more jobs. Those that it has put " +
      "stay.", "Delete it"], () => api("DELETE", path), "It is deleted.",
    "danger"));
}

function card(view, one) {
  const zone = one.time_zone || "UTC";
  return h("section", { class: "card", "data-key": one.name },
    h("div", { class: "head" }, h("div", {}, h("h2", {}, one.name, " ",
      one.paused ? h("span", { class: "state dead" }, "paused") : ""),
    h("p", {}, rule(one), ", into tube ", link("jobs", { tube: one.job.tube }, one.job.tube))),
    actions(view, one)),
    one.broken ? h("p", { class: "bad" }, one.broken) : null,
    one.next.length ? h("ol", { class: "times" }, one.next.map((next) =>
      h("li", {}, `${clock(next, zone)}, `, time(next)))) :
      h("p", { class: "quiet" }, "It fires no more."),
    h("p", { class: "quiet" }, `fired ${count(one.fired)} times, skipped ${count(one.skipped)}`,
      one.last ? `, last ${until(one.last)}` : "",
      one.last_job ? [", as job ", link("job", { id: one.last_job }, one.last_job)] : ""));
}

export async function showSchedules(view) {
  const token = view.query.page_token;
  const page = await get("/v1/schedules?page_size=50" +
    (token ? `&page_token=${encodeURIComponent(token)}` : ""));
  view.draw(head("Schedules", "What is put by the calendar, with the next five times"),
    page.schedules.length ? page.schedules.map((one) => card(view, one)) :
      empty("There is no schedule."),
    page.next_page_token ? link("schedules", { page_token: page.next_page_token }, "Next page") :
      null);
  return 2;
}
