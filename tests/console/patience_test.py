"""The console never takes away what somebody is doing: a press, a selection, a scroll, a field.
The pages update every 20 ms here, and each test changes what they show."""

import random

import console_case
from console_case import ENTER, ESCAPE, PAGES, ConsoleCase

PRESSES = 200

# A page waits 1 to 10 s before it asks again. What takes 6 s is left: when no events come.
FASTER = """const later = window.setTimeout;
window.setTimeout = (call, ms, ...rest) =>
  later(call, ms === 6000 ? ms : Math.min(ms, 20), ...rest);"""

# Counts the clicks that come where the press began. Nothing is done.
COUNT_CLICKS = """window.clicks = 0;
let pressed = null;
window.addEventListener("pointerdown", ({ target }) => { pressed = target; }, true);
window.addEventListener("click", (event) => {
  event.preventDefault();
  event.stopImmediatePropagation();
  if (event.target === pressed) ++window.clicks;
}, true);"""

# Returns the middles of what can be pressed and is seen.
TARGETS = """return [...document.querySelectorAll(
    "main :is(a, button:not(:disabled), time, td, h1, h2, b, pre, .plot, .slot)")].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return [x + Math.min(width, 40) / 2, y + height / 2];
}).filter(([x, y]) => document.querySelector("main").contains(document.elementFromPoint(x, y)))"""

# Returns when the page has something new to show, and waits; or when it waits no more.
UNTIL = """const [waits, done] = arguments;
const main = document.querySelector("main");
const look = () => main.classList.contains("waits") === waits && (watch.disconnect(), done());
const watch = new MutationObserver(look);
watch.observe(main, { attributes: true });
look();"""


class PatienceTest(ConsoleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FASTER})

    def mouse(self, kind, x, y):
        event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
        self.page.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def until_it_waits(self, waits=True):
        self.page.execute_async_script(UNTIL, waits)

    def put(self, tube, **job):
        return self.api("POST", f"/v1/tubes/{tube}/jobs", {"body": "x", **job})

    def test_no_press_is_lost_while_a_page_updates(self):
        chance = random.Random(39)
        self.api("POST", "/v1/tubes/images:pause")
        self.addCleanup(self.api, "POST", "/v1/tubes/images:resume")
        for n, path in enumerate(PAGES):
            presses = PRESSES * (n + 1) // len(PAGES) - PRESSES * n // len(PAGES)
            with self.subTest(path):
                self.is_loaded = False
                self.show(path)
                self.page.execute_script(COUNT_CLICKS)
                for _ in range(presses):
                    x, y = chance.choice(self.page.execute_script(TARGETS))
                    self.mouse("mousePressed", x, y)
                    self.until_it_waits()
                    self.mouse("mouseReleased", x, y)
                    self.until_it_waits(False)
                self.assertEqual(self.page.execute_script("return window.clicks"), presses)

    def test_a_selection_stays_and_the_page_goes_on_when_it_ends(self):
        self.show("dead?tube=invoices")
        self.page.execute_script(
            "getSelection().selectAllChildren([...document.querySelectorAll('td')].find("
            "(cell) => cell.textContent === 'no such customer'))"
        )
        self.put("invoices", retry={"max_attempts": 1}, priority=0)
        (job,) = self.api("POST", "/v1/tubes/invoices:reserve", {"max": 1})["jobs"]
        self.api("POST", f"/v1/leases/{job['lease']}:nack", {"error": "another error"})
        self.until_it_waits()
        shown = "return document.querySelector('main').innerText"
        self.assertNotIn("another error", self.page.execute_script(shown))
        selected = "return String(getSelection())"
        self.assertEqual(self.page.execute_script(selected), "no such customer")
        self.page.execute_script("getSelection().empty()")
        self.sees("another error")

    def test_a_scrolled_body_stays(self):
        job = self.put("long", body="\n".join(["a line"] * 500), delay="1h")
        self.show(f"job?id={job['id']}")
        self.page.execute_script("document.querySelector('main pre').scrollTop = 777")
        self.api("POST", f"/v1/jobs/{job['id']}:kick")
        self.sees("waits for a worker")
        top = "return document.querySelector('main pre').scrollTop"
        self.assertEqual(self.page.execute_script(top), 777)

    def test_a_filled_field_keeps_its_text_and_the_focus(self):
        self.put("filtered", key="the-first")
        self.show("jobs?tube=filtered")
        self.page.execute_script("document.querySelector('main [name=group]').focus()")
        self.keys("half a na")
        self.put("filtered", key="the-second")
        self.until_it_waits()
        self.keys("me")
        field = "return document.activeElement.name + '=' + document.activeElement.value"
        self.assertEqual(self.page.execute_script(field), "group=half a name")
        self.page.execute_script("document.activeElement.blur()")
        self.sees("the-second")
        text = "return document.querySelector('main [name=group]').value"
        self.assertEqual(self.page.execute_script(text), "half a name")

    def test_a_choice_that_is_not_sent_stays(self):
        self.put("filtered")
        self.show("jobs?tube=filtered")
        self.page.execute_script(
            "document.querySelector('main [name=state]').value = 'dead';"
            "document.querySelector('main [name=tube]').value = 'mail'"
        )
        # By the page itself, which does not ask for the tubes again for 10 s otherwise.
        self.page.execute_script(
            "import('/console/api.js').then(({ api }) =>"
            " api('POST', '/v1/tubes/a-tube-that-comes-first/jobs', { body: 'x' }))"
        )
        self.until("return document.querySelector('main [value=a-tube-that-comes-first]')")
        chosen = "return [...document.querySelectorAll('main select')].map((one) => one.value)"
        self.assertEqual(self.page.execute_script(chosen), ["mail", "dead"])

    def test_a_sideways_scroll_stays_on_a_narrow_page(self):
        self.put("a-first")
        console_case.console.resize(self.page, 390, 844)
        self.show("tubes")
        left = "document.querySelector('main .scroll').scrollLeft"
        self.page.execute_script(f"{left} = 222")
        self.put("a-newer-tube")
        self.sees("a-newer-tube")
        self.assertEqual(self.page.execute_script(f"return {left}"), 222)

    def test_the_focus_stays_where_rows_come_and_go(self):
        self.put("focused", delay="1h")
        self.show("tubes")
        focus = "[...document.querySelectorAll('td button')].find((one) => one.ariaLabel === '{}')"
        self.page.execute_script("window.was = " + focus.format("Pause tube focused"))
        self.page.execute_script("window.was.focus()")
        self.put("b-newer-tube")
        self.sees("b-newer-tube")
        self.assertTrue(
            self.page.execute_script("return document.activeElement === window.was"),
            "the button is the same element",
        )
        self.keys(ENTER)
        self.sees("Pause tube focused?")
        self.keys(ESCAPE)
        self.until("return document.activeElement === window.was")


if __name__ == "__main__":
    console_case.run()
