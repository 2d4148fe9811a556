// Questions and messages.
import { field, h } from "./dom.js";

export function toast(text) {
  const shown = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
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

export async function confirm(title, text, action, danger = true) {
  const { closed } = openDialog(title, h("p", {}, text), h("form", { method: "dialog" },
    h("div", { class: "row" }, h("button", { value: "", autofocus: true }, "Go back"),
      h("button", { value: "yes", class: danger ? "danger" : "main" }, action))));
  return await closed === "yes";
}

// Asks for the fields: [{ name, label, value, ...attributes }]. Returns what was given, or null.
export async function ask(title, text, action, fields) {
  const inputs = fields.map(({ label, ...attributes }) => [label, h("input", attributes)]);
  const { closed } = openDialog(title, h("p", {}, text), h("form", { method: "dialog" },
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
