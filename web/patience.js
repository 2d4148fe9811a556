// Whether somebody is in the middle of something that a change of the page would take away: a
// press, a scroll, a selection, a field. Then the page waits.

const CLICK_MS = 100;   // a click may come after the end of its press
const SCROLL_MS = 300;  // between two events of one scroll
const RETRY_MS = 50;

const main = document.getElementById("main");
let pressEnds = 0;  // Infinity: it goes on
let scrollEnds = 0;

const listen = (name, listener) =>
  window.addEventListener(name, listener, { capture: true, passive: true });

listen("pointerdown", () => { pressEnds = Infinity; });
// A press on a scroll bar has no pointerup: the next move tells that it is over.
for (const name of ["pointerup", "pointercancel", "pointermove"]) {
  listen(name, ({ buttons }) => {
    if (pressEnds === Infinity && !buttons) pressEnds = performance.now() + CLICK_MS;
  });
}
listen("click", () => { pressEnds = 0; });
listen("scroll", () => { scrollEnds = performance.now() + SCROLL_MS; });

function isBusy() {
  if (performance.now() < Math.max(pressEnds, scrollEnds) || document.hidden) return true;
  if (document.activeElement.matches("#main :is(input, select, textarea)")) return true;
  const selection = getSelection();
  return !selection.isCollapsed && main.contains(selection.anchorNode);
}

// Returns when the page may change.
export async function untilFree() {
  while (isBusy()) {
    main.classList.add("waits");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  main.classList.remove("waits");
}
