// Changes what is shown into something else. Elements that are in both stay, with their focus,
// scroll, selection, and what somebody has typed.
//
//   patch(main, h("ul", {}, names.map((name) => h("li", { "data-key": name }, name))));
//
// An element becomes the next one of the same tag and data-key. Elements without a key are matched
// in their order. One that another has overtaken is made anew, and gets the focus back by its key.
// One with data-own stays as it is: what is in it is somebody's.

const HANDLERS = ["onclick", "onchange", "onfocus", "oninput", "onsubmit"];  // that h() is given

// Stands for an element that is made once and draws itself, as a plot does.
export const kept = (element) => Object.assign(document.createComment(""), { element });

const canBecome = (old, next) => next.element ? old === next.element :
  old.nodeName === next.nodeName && old.dataset?.key === next.dataset?.key;

function become(old, next) {
  if (next.element || old.dataset?.own !== undefined) return;
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) if (old[name] !== next[name]) old[name] = next[name];
  arrange(old, [...next.childNodes]);
}

function arrange(parent, wanted) {
  let at = parent.firstChild;
  for (const next of wanted) {
    let old = at;
    while (old && !canBecome(old, next)) old = old.nextSibling;
    if (!old) {
      parent.insertBefore(next, at);
      continue;
    }
    while (at !== old) at = removed(at);
    become(old, next);
    at = old.nextSibling;
  }
  while (at) at = removed(at);
}

// Removes a node; returns the one after it.
function removed(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

export function patch(parent, ...children) {
  const focused = document.activeElement;
  const { key } = focused.dataset;
  arrange(parent, children);
  const stands = document.createNodeIterator(parent, NodeFilter.SHOW_COMMENT);
  for (let one; (one = stands.nextNode());) one.replaceWith(one.element);
  if (key && !focused.isConnected)
    parent.querySelector(`${focused.localName}[data-key="${CSS.escape(key)}"]`)?.focus();
}
