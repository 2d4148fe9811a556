"""Debian's Chromium on the console of a real `carillon serve`; it asks only the server."""

import http.client
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
# Selenium is installed for Debian's python3, which may not be the one that runs this.
sys.path.append("/usr/lib/python3/dist-packages")

import daemon

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --disable-dev-shm-usage --disable-default-apps --force-prefers-reduced-motion""".split()

TURN = """const [page, done] = arguments;
const main = document.querySelector("main");
const began = performance.now();
let isBusy = false;
new MutationObserver((_, self) => {
  if (main.hasAttribute("aria-busy")) isBusy = true;
  else if (isBusy) {
    self.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  }
}).observe(main, { attributes: true });
location.hash = `#/${page}`;"""


def why_not():
    """Returns why there is no browser to drive; None if there is one."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium is not installed"
    if not shutil.which("chromedriver") or not shutil.which("chromium"):
        return "chromium-driver is not installed"
    return None


def open_browser(width=1280, height=900, dark=False):
    """Returns a browser with a profile of its own; the caller quits it, and removes .profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    profile = tempfile.mkdtemp()
    for flag in FLAGS + [f"--user-data-dir={profile}", f"--window-size={width},{height}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.profile = profile
    resize(browser, width, height, dark)
    return browser


def resize(browser, width, height, dark=False):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    scheme = "dark" if dark else "light"
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )


def turn(browser, page):
    """Turns from one page of the console to another; returns how long it took to draw, in ms."""
    return browser.execute_async_script(TURN, page)


def axe_source(folder):
    """Returns the script of axe-core, which npm brings into the folder; None if it cannot."""
    script = pathlib.Path(folder) / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists() and shutil.which("npm"):
        command = ["npm", "install", "--silent", "--no-save", "--prefix", folder, "axe-core@4"]
        try:
            subprocess.run(command, timeout=40, check=False, capture_output=True)
        except subprocess.TimeoutExpired:
            pass
    return script.read_text() if script.exists() else None


class Api:
    """Asks the server what the console asks it."""

    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, body=None):
        client = http.client.HTTPConnection(daemon.HOST, self.port, timeout=30)
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        client.request(method, path, text, {"Content-Type": "application/json"})
        reply = client.getresponse()
        got = reply.read()
        client.close()
        if reply.status >= 400:
            raise RuntimeError(f"{method} {path}: {reply.status} {got!r}")
        return json.loads(got) if got else None


def fill(api, now_ms):
    """Puts what the pages show: delayed jobs and a storm, dead jobs, a schedule, limits, groups."""

    def due(seconds):
        return int(now_ms + seconds * 1000)

    delayed = [{"body": "later", "due": due(20 + n * n * 0.7)} for n in range(300)]
    delayed += [{"body": "days", "due": due(86400 * (1 + n % 25) + n * 631)} for n in range(200)]
    delayed += [{"body": "storm", "due": due(1500)} for _ in range(400)]
    api("POST", "/v1/tubes/mail/jobs:batch", {"jobs": delayed})
    retry = {"max_attempts": 1}
    for n in range(5):
        body = {"body": json.dumps({"invoice": n}), "key": f"invoice-{n}", "retry": retry}
        api("POST", "/v1/tubes/invoices/jobs", body)
    for job in api("POST", "/v1/tubes/invoices:reserve", {"max": 5, "worker": "host-7"})["jobs"]:
        error = "the printer is out of paper" if job["id"] % 2 else "no such customer"
        api("POST", f"/v1/leases/{job['lease']}:nack", {"error": error})
    for n in range(6):
        group = f"customer-{n % 3}"
        api("POST", "/v1/tubes/images/jobs", {"body": f"resize {n}.png", "group": group})
    api("PATCH", "/v1/tubes/images", {"limits": {"max_running": 4}})
    schedule = {
        "cron": "30 2 * * MON-FRI",
        "time_zone": "Europe/Berlin",
        "job": {"tube": "reports", "body": "sales"},
    }
    api("PUT", "/v1/schedules/sales-report", schedule)
