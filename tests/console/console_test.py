"""The console in a real browser, against a real server: each page and action, a server that
restarts, a narrow screen, dark mode, the keyboard alone, axe, and 100 000 jobs.
Row Q17 of the product's table."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import browser as console
import console_case
from browser import daemon
from console_case import ARROW_LEFT, ARROW_RIGHT, ENTER, ESCAPE, PAGES, TAB, ConsoleCase

AXE = """const [options, done] = arguments;
axe.run({ resultTypes: ["violations"], ...options }).then((found) =>
  done(found.violations.map((one) => [one.id, one.nodes[0].html])));"""


class ConsoleTest(ConsoleCase):
    def test_each_page_is_shown_with_no_error_and_asks_only_the_server(self):
        self.page.get_log("browser"), self.page.get_log("performance")
        for path in PAGES:
            self.show(path)
        faults = [line for line in self.page.get_log("browser") if line["level"] == "SEVERE"]
        self.assertEqual(faults, [])
        asked = [
            json.loads(line["message"])["message"] for line in self.page.get_log("performance")
        ]
        urls = [
            one["params"]["request"]["url"]
            for one in asked
            if one["method"] == "Network.requestWillBeSent"
        ]
        self.assertGreater(len(urls), 20)
        own = (f"http://{self.http}/", "about:blank", "data:")
        self.assertEqual([url for url in urls if not url.startswith(own)], [])
        named = self.page.execute_script(
            "return [...document.querySelectorAll('script, link[rel=modulepreload]')]"
            ".map(one => one.src || one.href)"
        )
        self.assertEqual(set(named), {url for url in urls if url.endswith(".js")})

    def test_axe_finds_nothing(self):
        script = console.axe_source(os.environ.get("CARILLON_AXE_DIR", self.data))
        if script is None:
            self.skipTest("npm cannot bring axe-core")
        self.show("job")
        self.page.execute_script(script)
        for path in PAGES:
            with self.subTest(path):
                self.show(path)
                self.assertEqual(self.page.execute_async_script(AXE, {}), [])
        # The same elements have other colours in dark mode, and nothing else.
        console.resize(self.page, 1280, 900, dark=True)
        for path in [*PAGES[1:], "job"]:
            with self.subTest(path, dark=True):
                self.show(path)
                contrast = {"runOnly": ["color-contrast"]}
                self.assertEqual(self.page.execute_async_script(AXE, contrast), [])

    def test_a_narrow_page_needs_no_sideways_scrolling(self):
        console.resize(self.page, 360, 740)
        for path in PAGES:
            with self.subTest(path):
                self.show(path)
                width = self.page.execute_script("return document.documentElement.scrollWidth")
                self.assertLessEqual(width, 360)

    def test_dark_mode_has_other_colours(self):
        self.show("")
        script = "return getComputedStyle(document.body).backgroundColor"
        light = self.page.execute_script(script)
        console.resize(self.page, 1280, 900, dark=True)
        self.assertNotEqual(self.page.execute_script(script), light)

    def test_the_wheel_shows_the_storm(self):
        self.show("wheel")
        self.sees("jobs of tube mail that are delayed")
        self.sees("jobs within one minute, in")

    def test_a_storm_is_spread(self):
        begin = int(time.time() * 1000) // 60_000 * 60_000 + 1_800_000
        storm = [{"body": "x", "due": begin + 30_000} for _ in range(120)]
        self.api("POST", "/v1/tubes/storm/jobs:batch", {"jobs": storm})
        self.show("wheel?tube=storm")
        self.sees("120 jobs within one minute")
        self.until(
            "const one = document.querySelector('.storms button'); one?.click();"
            "return Boolean(one)"
        )
        self.type("over", "2h")
        self.click("Count them", "dialog[open]")
        self.until(
            "const yes = document.querySelector('dialog[open] button[value=yes]');"
            "const title = yes?.closest('dialog').querySelector('h2').textContent;"
            "const asks = /^Spread 1[12]\\d jobs\\?$/.test(title);"
            "if (asks) yes.click(); return asks"
        )
        self.sees("No storm is coming.")
        dues = self.api("GET", "/v1/tubes/storm/jobs?page_size=200")["jobs"]
        self.assertEqual(len(dues), 120)
        self.assertGreater(len({job["due"][:16] for job in dues}), 80)  # minutes

    def test_a_tube_is_paused_resumed_kicked_and_cleared(self):
        jobs = [{"body": "x", "delay": "1h"} for _ in range(7)]
        self.api("POST", "/v1/tubes/actions/jobs:batch", {"jobs": jobs})
        tube = lambda: self.api("GET", "/v1/tubes/actions")
        self.show("tubes")
        self.click("Pause tube actions")
        self.type("duration", "10m")
        self.click("Pause it", "dialog[open]")
        self.click("Resume tube actions")
        self.sees("Jobs go out again.")
        self.assertFalse(tube()["paused"])
        self.click("Kick tube actions")
        self.click("Kick 7 jobs", "dialog[open]")
        self.sees("kicked.")
        self.assertEqual(tube()["jobs"]["ready"], 7)
        self.click("Clear tube actions")
        self.click("Go back", "dialog[open]")
        self.assertEqual(tube()["jobs"]["ready"], 7)
        self.click("Clear tube actions")
        self.click("Cancel 7 jobs", "dialog[open]")
        self.sees("7 jobs done.")

    def test_jobs_come_in_pages_and_are_moved(self):
        self.show("jobs?tube=mail&state=delayed")
        first = self.page.execute_script("return document.querySelector('td a').textContent")
        self.click("Next page")
        self.until("return document.querySelector('td a')?.textContent !== arguments[0]", first)
        self.show("jobs?tube=images&group=customer-1")
        self.click("Move all\u2026")
        self.type("to", "elsewhere")
        self.click("Count them", "dialog[open]")
        self.click("Move 2 jobs", "dialog[open]")
        self.sees("2 jobs done.")
        self.assertEqual(self.api("GET", "/v1/tubes/elsewhere")["jobs"]["ready"], 2)

    def test_a_job_is_found_by_its_key_put_off_made_ready_and_cancelled(self):
        body = {"body": '{"a":1}', "key": "order/7", "delay": "1h"}
        job = self.api("POST", "/v1/tubes/orders/jobs", body)
        self.show("job?tube=orders&key=order%2F7")
        self.sees(f"Job {job['id']}")
        self.sees('"a": 1')
        self.click("Put off\u2026")
        self.type("due", "in 3 h")
        self.click("Put off", "dialog[open]")
        self.sees("has another time.")
        self.click("Make it ready")
        self.sees("is ready.")
        self.click("Cancel\u2026")
        self.click("Cancel 1 job", "dialog[open]")
        self.sees("There is no such job")

    def test_what_nobody_sees_in_a_text_is_shown(self):
        key = "a\u202eb\u200b\u2028\U000e0041\u26a0\ufe0f"
        body = {"body": "one\ntwo\u200f", "key": key, "delay": "1h"}
        job = self.api("POST", "/v1/tubes/orders/jobs", body)
        self.show(f"job?id={job['id']}")
        self.sees(r"a\u202Eb\u200B\u2028\uDB40\uDC41" + "\u26a0\ufe0f")
        self.sees("one\ntwo" + r"\u200F")

    def test_what_nobody_sees_in_an_attribute_is_shown(self):
        retry = {"max_attempts": 1}
        self.api("POST", "/v1/tubes/hidden/jobs", {"body": "x", "retry": retry})
        (job,) = self.api("POST", "/v1/tubes/hidden:reserve", {"max": 1})["jobs"]
        self.api("POST", f"/v1/leases/{job['lease']}:nack", {"error": "no\u202eway\u200b"})
        self.show("dead?tube=hidden")
        shown = r"no\u202Eway\u200B"
        self.sees(shown)
        self.until(f"return document.querySelector('main [title]')?.title === {json.dumps(shown)}")
        label = json.dumps(f"Retry the jobs: {shown}")
        self.until(
            "return [...document.querySelectorAll('main [aria-label]')]"
            f".some((node) => node.getAttribute('aria-label') === {label})"
        )

    def test_dead_jobs_are_grouped_by_reason_and_retried(self):
        self.show("dead?tube=invoices")
        self.sees("no such customer")
        self.click("Retry the jobs: the printer is out of paper")
        self.until(
            "return /^Retry \\d+ jobs\\?$/.test("
            "document.querySelector('dialog[open] h2')?.textContent)"
        )
        self.until("document.querySelector('dialog[open] button[value=yes]').click(); return true")
        self.sees("jobs done.")
        self.assertIn(self.api("GET", "/v1/tubes/invoices")["jobs"]["ready"], (2, 3))

    def test_a_schedule_is_triggered_paused_and_resumed(self):
        self.show("schedules")
        self.sees("02:30:00 CET")
        self.click("Trigger schedule sales-report")
        self.click("Put 1 job", "dialog[open]")
        self.sees("is put.")
        self.click("Pause schedule sales-report")
        self.click("Pause it", "dialog[open]")
        self.click("Resume schedule sales-report")
        self.sees("It fires again.")
        self.assertEqual(self.api("GET", "/v1/tubes/reports")["jobs"]["ready"], 1)

    def test_limits_are_changed(self):
        self.show("limits?tube=images")
        self.sees("customer-0")
        self.click("Change tube images")
        self.type("jobs", "5")
        self.type("per", "1m")
        self.type("put_jobs", "70")
        self.type("retention", "7d")
        self.click("Set them", "dialog[open]")
        self.sees("are set.")
        tube = self.api("GET", "/v1/tubes/images")
        limits = tube["limits"]
        self.assertEqual([limits["max_running"], limits["rate"]["jobs"]], [4, 5])
        self.assertEqual([limits["put_rate"]["jobs"], tube["retention"]], [70, "604800s"])
        self.sees("70 per s")

    def test_many_tubes_come_in_pages_and_are_found_by_their_names(self):
        puts = "".join(f"use z-{n}\r\nput 0 3600 60 1\r\nx\r\n" for n in range(110))
        with self.server.connect() as connection:
            connection.send(puts.encode())
            for _ in range(110):
                self.assertEqual(connection.reply().word, b"USING")
                self.assertEqual(connection.reply().word, b"INSERTED")
        self.show("tubes")
        rows = "return document.querySelectorAll('tbody tr').length === arguments[0]"
        self.until(rows, 50)
        self.click("Next page")
        self.sees("51 to 100 of")
        self.until(
            "const form = document.querySelector('main form'); form.elements.name.value = 'z-10';"
            "form.requestSubmit(); return true"
        )
        self.until(rows, 11)  # z-10, z-100 to z-109
        # There are too many tubes for a list: the user types the name.
        self.show("wheel")
        self.until(
            "const input = document.querySelector('main input[list]'); if (!input) return false;"
            "input.focus(); const offers = [...input.list.options].map(one => one.value);"
            "input.value = 'z-42'; input.dispatchEvent(new Event('change'));"
            "return offers.includes('z-42')"
        )
        self.sees("of tube z-42 that")

    def test_the_keyboard_alone_is_enough(self):
        self.show("")
        focus = "return document.activeElement.textContent.trim()"
        self.keys(TAB)
        self.assertEqual(self.page.execute_script(focus), "Skip to the page")
        self.keys(*[TAB] * 4, ENTER)
        self.until("return location.hash === '#/tubes' && document.activeElement.id === 'main'")
        script = "document.querySelector('td button:not(:disabled)').focus()"
        self.until("return document.querySelector('td button:not(:disabled)') !== null")
        self.page.execute_script(script)
        self.keys(ENTER)
        self.until("return document.activeElement.closest('dialog') !== null")
        self.keys(*[TAB] * 7)
        self.until(
            "return document.activeElement.closest('dialog') || document.activeElement"
            " === document.body"
        )
        self.keys(ESCAPE)
        self.until(
            "return !document.querySelector('dialog') &&"
            " document.activeElement.matches('td button')"
        )

    def test_the_plots_tell_their_values_at_another_moment(self):
        moments = "return [...document.querySelectorAll('.card h2 .quiet')].map(e => e.textContent)"
        self.show("")
        self.until_plots_are_drawn(4)
        self.page.execute_script("document.querySelector('.plot').focus()")
        self.keys(*[ARROW_LEFT] * 3)
        self.until_it_says(moments, ["10 s ago"] * 4)
        said = "return document.activeElement.getAttribute('aria-valuetext')"
        self.assertRegex(self.page.execute_script(said), "^10 s ago, put .*, fired .*, deleted ")
        width = "document.querySelector('.plot canvas').width"
        before = self.page.execute_script(f"return {width}")
        console.resize(self.page, 1000, 900)
        self.until(f"return {width} !== arguments[0]", before)
        self.until_it_says(moments, ["10 s ago"] * 4)
        console.resize(self.page, 1280, 900)
        self.until("return document.querySelector('.legend').innerText.startsWith('put ')")
        self.keys(ESCAPE)
        self.until_it_says(moments, [""] * 4)
        self.assertRegex(self.page.execute_script(said), "^now, put ")
        self.point_at(".head h1")
        self.point_at(".plot .u-over")
        half = "every(text => /^2 min (29|30|31) s ago$/.test(text))"
        self.until(moments.replace("return", "return (") + ")." + half)
        legend = "document.querySelector('.legend').innerText"
        self.until(f"return /put (none|[0-9.]+\\/s)/.test({legend})")

    def point_at(self, selector):
        from selenium.webdriver.common.action_chains import ActionChains

        one = self.page.find_element("css selector", selector)
        ActionChains(self.page).move_to_element(one).perform()

    def test_the_bars_tell_their_values(self):
        self.show("wheel")
        self.until_plots_are_drawn(1)
        self.page.execute_script("document.querySelector('.plot').focus()")
        for times, told in ((1, "now: "), (2, "+2 min: ")):
            self.keys(*[ARROW_RIGHT] * times)
            below = "document.querySelector('.plot').nextElementSibling.textContent"
            self.until(
                f"return new RegExp(arguments[0]).test({below})", f"^{re.escape(told)}[0-9]+$"
            )
        drawn, bars = self.page.execute_async_script(
            "const [done] = arguments; import('/console/plot.js').then(({ plots }) => {"
            " const { chart, bars } = plots.get('due next');"
            " done([chart.data[1], bars.map(bar => bar.value)]); })"
        )
        seen = max(bars) / 100  # more than a pixel
        few = [height for height, value in zip(drawn, bars) if 0 < value < seen]
        self.assertGreater(min(few), seen, "a job beside a storm has a bar")
        # As many bars, and as high: uPlot would keep the names.
        self.api("POST", "/v1/tubes/one/jobs", {"body": "x", "delay": "55s"})
        self.show("wheel?tube=one&next=minute")
        self.until_names(["now", "+15 s", "+30 s", "+45 s"])
        self.show("wheel?tube=one&next=hour")
        self.until_names(["now", "+15 min", "+30 min", "+45 min"])

    def test_a_program_without_uplot_says_so(self):
        def block(urls):
            self.page.execute_cdp_cmd("Network.setBlockedURLs", {"urls": urls})

        self.page.execute_cdp_cmd("Network.enable", {})
        self.page.execute_cdp_cmd("Network.clearBrowserCache", {})
        block(["*uPlot*"])
        self.addCleanup(block, [])
        for page in "", "wheel":
            self.is_loaded = False
            self.show(page)
            self.sees("This program was built without uPlot, which draws the plots.")

    def until_names(self, names):
        """The names under the bars, as uPlot has drawn them."""
        end = time.monotonic() + 15
        script = (
            "const [done] = arguments; import('/console/plot.js').then(({ plots }) =>"
            " done(plots.get('due next').chart.axes[0]._values))"
        )
        while (got := self.page.execute_async_script(script)) != names:
            self.assertLess(time.monotonic(), end, got)
            time.sleep(0.05)

    def moments(self):
        """How many seconds ago the points of the first plot were, the oldest first."""
        return self.page.execute_async_script(
            "const [done] = arguments; import('/console/plot.js').then(({ plots }) =>"
            " done((plots.get('Jobs per second')?.chart.data[0] ?? []).map(x => -x)))"
        )

    def until_moments(self, are_right):
        end = time.monotonic() + 15
        while not are_right(moments := self.moments()):
            self.assertLess(time.monotonic(), end, moments)
            time.sleep(0.05)

    def test_a_reload_shows_the_plots_at_once_and_asks_for_nothing_again(self):
        self.show("")
        self.until_moments(lambda moments: len(moments) >= 4)  # an event each second
        canvas = "return document.querySelector('.plot canvas')"
        before = self.page.execute_script(canvas)
        self.until_moments(lambda moments: len(moments) >= 6)
        self.assertEqual(self.page.execute_script(canvas), before, "a plot stays")
        self.is_loaded = False
        self.show("")
        here = "return performance.now() / 1000"
        self.until_moments(
            lambda moments: moments and moments[0] > self.page.execute_script(here) + 2
        )
        self.page.execute_async_script(
            "const done = arguments[0]; import('/console/live.js').then(({ live }) =>"
            " live.addEventListener('sample', () => done(), { once: true }))"
        )
        asked = self.page.execute_script(
            "return performance.getEntriesByType('resource').map(one => new URL(one.name).pathname)"
        )
        self.assertEqual(asked.count("/v1/stats"), 1)
        self.assertNotIn("/metrics", asked)

    def test_the_audit_shows_an_action_as_it_happens(self):
        self.api("POST", "/v1/tubes/watched/jobs", {"body": "x"})
        self.show("audit")
        self.api("POST", "/v1/tubes/watched:pause")
        self.addCleanup(self.api, "POST", "/v1/tubes/watched:resume")
        self.until(
            "return [...document.querySelectorAll('tbody tr')].some(row =>"
            " /tube:pause.*watched.*done/s.test(row.textContent))"
        )

    def test_a_token_for_some_tubes_sees_counts_though_it_may_hear_no_events(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, True)
        data, tokens = os.path.join(folder, "data"), os.path.join(folder, "tokens")
        new = [daemon.carillon_path(), "token", "new", "--name", "me", "--file", tokens]
        new += ["--scope", "read", "--tube", "mail"]
        text = subprocess.run(new, check=True, capture_output=True, text=True).stdout.strip()
        with daemon.carillon_serve(
            data, "--http", f"{daemon.HOST}:0", "--tokens", tokens
        ) as server:
            self.page.get(f"http://{daemon.HOST}:{server.http_port()}/")
            self.type("token", text)
            self.click("Go on", "dialog[open]")
            self.sees("connected")
            self.sees("workers wait")

    def test_a_restart_is_told_and_mended(self):
        self.show("")
        self.sees("connected")
        self.server.kill()
        self.sees("The server does not answer.")
        self.serve()
        self.sees("the server restarted at")

    def test_a_long_change_of_100_000_jobs_is_watched(self):
        jobs = json.dumps({"jobs": [{"body": "x", "delay": "5h"}] * 1000})
        for _ in range(100):
            self.api("POST", "/v1/tubes/many/jobs:batch", jobs)
        self.show("tubes")
        self.click("Clear tube many")
        self.sees("Cancel 100\u202f000 jobs?")
        self.click("Cancel 100\u202f000 jobs", "dialog[open]")
        self.sees("so far")
        self.sees("100\u202f000 jobs done.")


if __name__ == "__main__":
    console_case.run()
