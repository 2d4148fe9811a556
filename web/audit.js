// The audit: what operators have done, the newest first.
import { get } from "./api.js";
import { count, empty, h, head, state, table, time } from "./dom.js";
import { live } from "./live.js";

const MOST = 200;

// Returns when there is another action, or after `seconds` seconds.
const news = (seconds) => new Promise((resolve) => {
  live.addEventListener("audit", resolve, { once: true });
  setTimeout(resolve, seconds * 1000);
});

export async function showAudit(view) {
  const { actions } = await get(`/v1/audit?page_size=${MOST}`);
  view.draw(head("Audit", actions.length === MOST ? `The last ${MOST} actions of operators` :
    `${count(actions.length)} ${actions.length === 1 ? "action" : "actions"} of operators since ` +
    "the server started"),
  actions.length ? h("section", { class: "card" }, table("Actions",
    ["when", "who", "action", "on", "outcome"], actions.map((one) => [
      `${one.at} ${one.action} ${one.target}`,
      time(one.at), one.who, h("code", {}, one.action), one.target,
      one.outcome === "done" ? state("done") : one.outcome]))) :
    empty("Nobody has changed many jobs, a tube, a group or a schedule since the server started."));
  news(10).then(view.again);
}
