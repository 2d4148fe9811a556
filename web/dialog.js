// Questions and messages.
import { h } from "./dom.js";
import { blame, problemLine, readFields, typedField } from "./fields.js";
import { Problem } from "./problem.js";

export function toast(text) {
  const shown = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

// Says it, and returns true: it is done.
export function told(text) {
  toast(text);
  return true;
}

// Shows a dialog until it is closed; returns what it was closed with. The browser keeps the focus
// in it, and gives it back.
export function openDialog(title, ...content) {
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

const goBack = (attributes = {}) => h("button", { type: "button", ...attributes,
  onclick: ({ target }) => target.closest("dialog").close("") }, "Go back");

// The focus is on what Enter then does: on "Go back" before something that cannot be undone.
export async function confirm(title, text, action, danger = true) {
  const { closed } = openDialog(title, h("p", {}, text), h("form", { method: "dialog" },
    h("div", { class: "row" }, goBack({ autofocus: danger }),
      h("button", { value: "yes", class: danger ? "danger" : "main", autofocus: !danger },
        action))));
  return await closed === "yes";
}

// Asks for the fields (typedField()), and gives them to `submit`. If that throws a Problem, the
// dialog stays, and says what is wrong. Returns what `submit` returns, or null.
export async function ask(title, text, action, fields, submit, isOptional = true) {
  let result = null, isSending = false;
  const send = async (event) => {
    event.preventDefault();
    const form = event.target;
    const given = isSending ? null : readFields(form);
    if (!given) return;
    isSending = true;
    try {
      result = await submit(given);
      dialog.close();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      blame(form, problem);
    } finally {
      isSending = false;
    }
  };
  const { dialog, closed } = openDialog(title, h("p", {}, text),
    h("form", { novalidate: true, onsubmit: send }, fields.map(typedField), problemLine(),
      h("div", { class: "row" }, isOptional ? goBack() : null,
        h("button", { value: "yes", class: "main" }, action))));
  dialog.querySelector("input").focus();
  await closed;
  return result;
}
