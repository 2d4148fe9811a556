"""Dialogs and filters: what Enter does, what is said of a wrong value and where, and how times and
durations are typed and told."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import console_case
from browser import daemon
from console_case import ENTER, ESCAPE, ConsoleCase

ZONE = "Europe/Berlin"
NOW = "2026-11-29T13:00:00Z"  # a Sunday, 14:00 in Berlin

MOMENTS = {
    "now": NOW,
    "in 2 h": "2026-11-29T15:00:00Z",
    "2h": "2026-11-29T15:00:00Z",
    "+ 90 s": "2026-11-29T13:01:30Z",
    "In 1 hour and 30 minutes": "2026-11-29T14:30:00Z",
    "2 days ago": "2026-11-27T13:00:00Z",
    "9:00": "2026-11-29T08:00:00Z",
    "9 pm": "2026-11-29T20:00:00Z",
    "12:30 am": "2026-11-28T23:30:00Z",
    "12 pm": "2026-11-29T11:00:00Z",
    "today 21:05": "2026-11-29T20:05:00Z",
    "Tomorrow": "2026-11-29T23:00:00Z",
    "tomorrow  9:00": "2026-11-30T08:00:00Z",
    "tomorrow at 9am": "2026-11-30T08:00:00Z",
    "tomorrow 9:00 UTC": "2026-11-30T09:00:00Z",
    "yesterday 18:00": "2026-11-28T17:00:00Z",
    "mon 9:00": "2026-11-30T08:00:00Z",
    "next Friday, 9:00": "2026-12-04T08:00:00Z",
    "sunday 9:00": "2026-12-06T08:00:00Z",
    "30 Nov 9:00": "2026-11-30T08:00:00Z",
    "1. June 2027, 9:00": "2027-06-01T07:00:00Z",
    "Mon, 30 Nov 2026, 09:00:00": "2026-11-30T08:00:00Z",
    "2026-11-30": "2026-11-29T23:00:00Z",
    "2026-11-30 9:00": "2026-11-30T08:00:00Z",
    "2026-11-30T09:00": "2026-11-30T08:00:00Z",
    "2026-11-30T09:00:00Z": "2026-11-30T09:00:00Z",
    "2026-11-30T09:00:00.25Z": "2026-11-30T09:00:00.250Z",
    "2026-11-30 9:00 +05:30": "2026-11-30T03:30:00Z",
    "2026-11-30T09:00:00-0800": "2026-11-30T17:00:00Z",
    "2026-03-29 2:30": "2026-03-29T01:30:00Z",  # not on the clock: an hour later
    "2028-02-29 0:00": "2028-02-28T23:00:00Z",
    **dict.fromkeys(
        ["", "soon", "9", "2026", "25:00", "9:60", "13 pm", "0 am", "31 Feb 9:00", "2026-02-29"]
        + ["2026-13-01", "monkey 9:00", "in a while", "constructor", "tomorrow noon", "9:00 CET"]
        + ["99999999999 weeks", "5 constructors"]
    ),
}

MS = {
    "250ms": 250,
    "90 s": 90_000,
    "1.5 h": 5_400_000,
    "1,5 h": 5_400_000,
    "1h30m": 5_400_000,
    "1 hour, 30 minutes": 5_400_000,
    "15 min": 900_000,
    "900s": 900_000,
    "2592000s": 2_592_000_000,
    "2 weeks": 1_209_600_000,
    "0s": 0,
    **dict.fromkeys(["", "5", "h", "5 x", "-5 s", "5 s 3", "s 5", "5 minutess", "1..5 h"]),
}

WORDS = {
    0: "0 s",
    250: "250 ms",
    1_000: "1 s",
    90_000: "1 min 30 s",
    900_000: "15 min",
    5_400_000: "1 h 30 min",
    86_400_000: "1 day",
    2_592_000_000: "30 days",
    90_061_001: "1 day 1 h 1 min 1 s 1 ms",
}

CALL = """const [name, all, more, done] = arguments;
import("/console/times.js").then((times) => done(all.map((one) => {
  const got = times[name](one, ...more.map((moment) => new Date(moment)));
  return got instanceof Date ? got.toISOString().replace(".000Z", "Z") : got;
})));"""


class TimesTest(ConsoleCase):
    """times.js is pure: it is called with a table."""

    def setUp(self):
        super().setUp()
        self.page.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
        self.addCleanup(
            self.page.execute_cdp_cmd, "Emulation.setTimezoneOverride", {"timezoneId": ""}
        )
        self.show("job")

    def call(self, name, given):
        now = [NOW] if name == "readMoment" else []
        got = self.page.execute_async_script(CALL, name, list(given), now)
        return dict(zip(given, got))

    def test_moments_are_read(self):
        self.assertEqual(self.call("readMoment", MOMENTS), MOMENTS)

    def test_durations_are_read(self):
        self.assertEqual(self.call("readDuration", MS), MS)

    def test_durations_are_told_and_read_back(self):
        self.assertEqual(self.call("spell", WORDS), WORDS)
        back = self.call("readDuration", WORDS.values())
        self.assertEqual(list(back.values()), list(WORDS))

    def test_a_moment_that_is_told_for_a_field_is_read_back(self):
        moments = ["2026-11-30T08:00:00Z", "2026-11-30T08:00:07Z", "2026-11-30T08:00:00.250Z"]
        told = self.call("typed", moments)
        self.assertEqual(told[moments[0]], "2026-11-30 09:00")
        self.assertEqual(list(self.call("readMoment", told.values()).values()), moments)

    def test_a_time_is_told_with_its_zone(self):
        (told,) = self.call("clock", [NOW]).values()
        self.assertEqual(told, "Sun, 29 Nov 2026, 14:00:00 CET")


class DialogTest(ConsoleCase):
    def ask(self, page, button, name):
        """Opens a dialog; returns when its field has the focus."""
        self.show(page)
        self.click(button)
        self.until(f"return document.activeElement.matches('dialog [name=\"{name}\"]')")

    def replace(self, text):
        self.page.execute_script("document.activeElement.select()")
        self.keys(text)

    def note(self, name):
        return self.page.execute_script(
            f"return document.querySelector('#note-{name}').textContent"
        )

    def no_dialog(self):
        self.until("return !document.querySelector('dialog')")

    def test_enter_sends_what_is_typed_and_a_wrong_value_keeps_the_dialog(self):
        self.api("POST", "/v1/tubes/pausing/jobs", {"body": "x"})
        self.ask("tubes", "Pause tube pausing", "duration")
        self.keys("a while", ENTER)
        self.assertEqual(
            self.note("duration"),
            "\u201ca while\u201d is no duration; write it like 90 s, 15 min, 2 h or 7 days",
        )
        self.replace("90 min")
        self.assertEqual(self.note("duration"), "1 h 30 min")
        self.keys(ENTER)
        self.no_dialog()
        self.sees("Tube pausing is paused.")
        left = self.api("GET", "/v1/tubes/pausing")["pause_left_ms"]
        self.assertTrue(5_340_000 < left <= 5_400_000, left)

    def test_a_job_is_put_off_until_a_time_as_people_write_it(self):
        job = self.api("POST", "/v1/tubes/orders/jobs", {"body": "x", "delay": "1h"})
        path = f"/v1/jobs/{job['id']}"
        due = self.api("GET", path)["due"]
        self.ask(f"job?id={job['id']}", "Put off\u2026", "due")
        self.keys(ENTER)
        self.until("return document.querySelector('#note-due').textContent !== ''")
        self.replace("2 h ago")
        self.keys(ENTER)
        self.assertIn("is no time to come", self.note("due"))
        self.assertEqual(self.api("GET", path)["due"], due)
        self.replace("2030-01-31 9:00 +01:00")
        self.assertRegex(self.note("due"), r"^Thu, 31 Jan 2030, 08:00:00 UTC, in \d+ days$")
        self.keys(ENTER)
        self.no_dialog()
        self.assertEqual(self.api("GET", path)["due"], "2030-01-31T08:00:00.000Z")

    def test_what_the_server_refuses_is_said_below_its_field(self):
        self.ask("jobs?tube=mail", "Move all\u2026", "to")
        self.keys("two words", ENTER)
        self.until("return /not the name of a tube/.test(arguments[0])", self.wait_for_note("to"))
        self.assertEqual(
            self.page.execute_script("return document.activeElement.value"), "two words"
        )
        self.keys(ESCAPE)
        self.no_dialog()

    def wait_for_note(self, name):
        return self.until(f"return document.querySelector('#note-{name}').textContent")

    def test_durations_and_rates_are_told_in_words(self):
        limits = {"rate": {"jobs": 5, "per": "900s"}, "put_rate": {"jobs": 70, "per": "60s"}}
        self.api("POST", "/v1/tubes/told/jobs", {"body": "x"})
        self.api("PATCH", "/v1/tubes/told", {"limits": limits, "retention": "2592000s"})
        self.show("limits?name=told")
        self.sees("5 per 15 min")
        self.sees("70 per min")
        self.sees("30 days")
        self.click("Change tube told")
        values = "return ['per', 'put_per', 'retention'].map((name) =>"
        values += " document.querySelector(`dialog [name=${name}]`)?.value)"
        self.until_it_says(values, ["15 min", "1 min", "30 days"])
        self.click("Set them", "dialog[open]")
        self.no_dialog()
        tube = self.api("GET", "/v1/tubes/told")
        self.assertEqual(tube["limits"]["rate"]["per"], "900s")
        self.assertEqual(tube["retention"], "2592000s")

    def test_what_is_no_whole_number_from_1_on_keeps_the_dialog(self):
        self.ask("limits?name=images", "Change tube images", "max_running")
        for wrong in ("0", "abc", "1.5", "-1", "1e3"):
            self.replace(wrong)
            self.keys(ENTER)
            self.assertIn("is no whole number", self.note("max_running"))
        limits = self.api("GET", "/v1/tubes/images")["limits"]
        self.assertEqual(limits["max_running"], 4)
        self.replace("4")
        self.keys(ENTER)
        self.no_dialog()

    def test_enter_goes_back_before_what_cannot_be_undone_and_goes_on_before_the_rest(self):
        self.api("POST", "/v1/tubes/entered/jobs", {"body": "x", "delay": "1h"})
        count = lambda state: self.api("GET", "/v1/tubes/entered")["jobs"][state]
        focused = "return document.activeElement.closest('dialog') && document.activeElement.text"
        focused += "Content"
        self.show("tubes?name=entered")
        self.click("Clear tube entered")
        self.until(focused.replace("return ", "return (") + ") === 'Go back'")
        self.keys(ENTER)
        self.no_dialog()
        self.assertEqual(count("delayed"), 1)
        self.click("Kick tube entered")
        self.until(focused.replace("return ", "return (") + ") === 'Kick 1 job'")
        self.keys(ENTER)
        self.sees("1 job kicked.")
        self.assertEqual(count("ready"), 1)

    def test_a_filter_is_typed_as_people_write_times(self):
        self.api("POST", "/v1/tubes/sought/jobs", {"body": "x", "key": "soon", "delay": "1h"})
        self.api("POST", "/v1/tubes/sought/jobs", {"body": "x", "key": "later", "delay": "9h"})
        self.show("jobs?tube=sought")
        self.sees("later")
        field = "document.querySelector('main [name=due_before]')"
        self.page.execute_script(f"{field}.focus()")
        self.keys("in a while", ENTER)
        self.assertIn("is no time", self.note("due_before"))
        self.replace("in 2 h")
        self.assertRegex(self.note("due_before"), r" UTC, in 2 h$")
        self.keys(ENTER)
        self.until("return !document.querySelector('main').innerText.includes('later')")
        self.sees("soon")
        value = self.page.execute_script(f"return {field}.value")
        self.assertRegex(value, r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.?\d*$")

    def test_a_filter_that_the_server_refuses_keeps_its_form(self):
        self.show("jobs?tube=mail&due_after=yesteryear&group=some")
        self.until("return /not an RFC 3339 time/.test(arguments[0])", self.note("due_after"))
        fields = "return ['group', 'due_after'].map((name) =>"
        fields += " document.querySelector(`main [name=${name}]`).value)"
        self.assertEqual(self.page.execute_script(fields), ["some", "yesteryear"])

    def test_a_wrong_token_stays_and_enter_sends_a_right_one(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, True)
        tokens = pathlib.Path(folder) / "tokens"
        new = [daemon.carillon_path(), "token", "new", "--name", "me", "--file", str(tokens)]
        new += ["--scope", "admin"]
        text = subprocess.run(new, check=True, capture_output=True, text=True).stdout.strip()
        data = os.path.join(folder, "data")
        with daemon.carillon_serve(
            data, "--http", f"{daemon.HOST}:0", "--tokens", str(tokens)
        ) as server:
            self.page.get(f"http://{daemon.HOST}:{server.http_port()}/")
            self.until("return document.activeElement.matches('dialog [name=token]')")
            self.keys("wrong", ENTER)
            self.sees("The server does not take this token.")
            value = "return document.querySelector('dialog [name=token]').value"
            self.assertEqual(self.page.execute_script(value), "wrong")
            self.replace(text)
            self.keys(ENTER)
            self.no_dialog()
            self.sees("workers wait")


if __name__ == "__main__":
    console_case.run()
