"""What the tests of the console share: a server, a browser, and how to click and to wait."""

import os
import shutil
import tempfile
import time
import unittest

import browser as console
from browser import daemon

PAGES = ["", "wheel", "tubes", "jobs", "job?id=901", "dead", "schedules", "limits", "audit"]
# The keys, as WebDriver names them.
TAB, ENTER, ESCAPE, ARROW_LEFT, ARROW_RIGHT = "\ue004", "\ue007", "\ue00c", "\ue012", "\ue014"


class ConsoleCase(unittest.TestCase):
    """One server and one browser for all tests: both take a while to start."""

    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.data, True)
        # The same port after a restart; none of the ephemeral ones, which others may take.
        cls.http = f"{daemon.HOST}:{20000 + os.getpid() % 10000}"
        cls.serve()
        cls.api = console.Api(cls.server.http_port())
        console.fill(cls.api, time.time() * 1000)
        cls.page = console.open_browser()
        cls.addClassCleanup(shutil.rmtree, cls.page.profile, True)
        cls.addClassCleanup(cls.page.quit)

    @classmethod
    def serve(cls):
        cls.server = daemon.carillon_serve(cls.data, "--http", cls.http).start()
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.http_port()  # waits for it: it opens after the other port

    def setUp(self):
        console.resize(self.page, 1280, 900)
        self.is_loaded = False

    def show(self, path):
        """The first page of a test is loaded anew."""
        if self.is_loaded:
            console.turn(self.page, path)
            return
        self.page.get("about:blank")
        self.page.get(f"http://{self.http}/#/{path}")
        self.until(
            "return !document.querySelector('main').hasAttribute('aria-busy')"
            " && document.querySelector('h1')"
        )
        self.is_loaded = True

    def until(self, script, *arguments):
        end = time.monotonic() + 15
        while not (got := self.page.execute_script(script, *arguments)):
            if time.monotonic() > end:
                text = self.page.execute_script("return document.body.innerText")
                self.fail(f"never true: {script} {arguments}\n{text}")
            time.sleep(0.05)
        return got

    def until_it_says(self, script, wanted):
        script = f"return JSON.stringify((() => {{ {script} }})()) === JSON.stringify(arguments[0])"
        self.until(script, wanted)

    def until_plots_are_drawn(self, count):
        """A key moves what a plot points at by a part of its width, which comes later than it."""
        self.until(
            "const all = [...document.querySelectorAll('.plot .u-over')];"
            "return all.length === arguments[0] && all.every(e => e.clientWidth > 0)",
            count,
        )

    def sees(self, text):
        self.until("return document.body.innerText.includes(arguments[0])", text)

    def click(self, text, within="main"):
        """Clicks the button or link with this text or label."""
        self.until(
            "const all = [...document.querySelectorAll(arguments[1] + ' :is(button, a)')];"
            "const one = all.find(e => (e.getAttribute('aria-label') || e.textContent.trim())"
            " === arguments[0]); one?.click(); return Boolean(one)",
            text,
            within,
        )

    def type(self, name, text):
        self.until(
            "const input = document.querySelector(`dialog[open] input[name=${arguments[0]}]`);"
            "if (input) input.value = arguments[1]; return Boolean(input)",
            name,
            text,
        )

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.page).send_keys(*keys).perform()


def run():
    if reason := console.why_not():
        print(f"left out: {reason}")
        raise SystemExit(77)
    unittest.main(module="__main__")
