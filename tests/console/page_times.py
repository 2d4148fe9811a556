#!/usr/bin/env python3
"""Prints how long each page of the console takes with many jobs: what the server takes to answer
its requests, and what a browser takes from a click on the page's name until it is shown.

    CARILLON_BIN=build/carillon tests/console/page_times.py --jobs 10000000
    CARILLON_BIN=build/carillon tests/console/page_times.py --data FOLDER    # fills it once only

The jobs are due over 30 days, in one tube. Another has dead jobs, and 1 000 more have one each.
"""

import argparse
import contextlib
import http.client
import json
import os
import shutil
import statistics
import tempfile
import time

import browser as console
from browser import daemon

TUBES = "/v1/tubes?page_size=1000"
REQUESTS = {
    "": ["/v1/history", "/v1/stats"],
    "wheel": [TUBES, "/v1/wheel?tube=many"],
    "tubes": [TUBES],
    "jobs?tube=many": [TUBES, "/v1/tubes/many/jobs?page_size=50"],
    "job?id=5000": ["/v1/jobs/5000"],
    "dead?tube=failed": [TUBES, "/v1/tubes/failed/dead"],
    "schedules": ["/v1/schedules?page_size=50"],
    "limits?tube=many": [TUBES, "/v1/tubes/many/groups?page_size=100"],
    "audit": ["/v1/audit?page_size=200"],
}
RUNS = 7
LOADED = """const main = document.querySelector("main");
return main?.querySelector(".figure") && !main.hasAttribute("aria-busy")"""


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--jobs", type=int, default=10_000_000)
    options.add_argument("--data", help="the data directory; it is kept, and filled only if empty")
    asked = options.parse_args()
    with contextlib.ExitStack() as stack:
        data = asked.data or stack.enter_context(tempfile.TemporaryDirectory())
        server = daemon.carillon_serve(data, "--http", "127.0.0.1:0", "--sync", "os")
        stack.enter_context(server)
        stack.callback(server.terminate)
        client = Client(server.http_port())
        if not client.get("/v1/stats")["jobs"]["delayed"]:
            fill(client, asked.jobs)
        delayed = client.get("/v1/stats")["jobs"]["delayed"]
        print(f"{delayed:,} delayed jobs; load of the machine: {os.getloadavg()[0]:.1f}")
        in_browser = shown(client.port) if not console.why_not() else {}
        print(f"of {RUNS}:            server, ms: median   worst    browser: median   worst")
        for page, paths in REQUESTS.items():
            both = [answered(client, paths), *([in_browser[page]] if in_browser else [])]
            told = [f"{statistics.median(times):18.1f} {max(times):7.1f}" for times in both]
            print(f"{page or 'overview':20}" + "".join(told))


class Client:
    """Keeps one connection."""

    def __init__(self, port):
        self.port = port
        self.connection = http.client.HTTPConnection(daemon.HOST, port, timeout=60)

    def __call__(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        self.connection.request(method, path, body and json.dumps(body), headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status // 100 != 2:
            raise SystemExit(f"{method} {path}: {text.decode()}")
        return json.loads(text)

    def get(self, path):
        return self("GET", path)


def fill(client, jobs):
    soon = int(time.time() * 1000) + 3_600_000
    for first in range(0, jobs, 1000):
        # Due times in no order, over 30 days: 7919 is prime to their number.
        dues = [soon + (first + n) * 7919 % 2_592_000_000 for n in range(1000)]
        lot = {"jobs": [{"body": "x", "due": due} for due in dues]}
        client("POST", "/v1/tubes/many/jobs:batch", lot)
    for n in range(1000):
        client("POST", f"/v1/tubes/one-{n}/jobs", {"body": "x", "delay": "20d"})
    for n in range(10):
        lot = [{"body": "x", "retry": {"max_attempts": 1}}] * 1000
        client("POST", "/v1/tubes/failed/jobs:batch", {"jobs": lot})
        for _ in range(10):
            for job in client("POST", "/v1/tubes/failed:reserve", {"max": 100})["jobs"]:
                client("POST", f"/v1/leases/{job['lease']}:nack", {"error": f"reason {n}"})


def answered(client, paths):
    """Returns how long the server took for these requests, one after the other, in ms."""
    times = []
    for _ in range(RUNS):
        began = time.monotonic()
        for path in paths:
            client.get(path)
        times.append((time.monotonic() - began) * 1000)
    return times


def shown(port):
    """Returns how long a browser took to turn to each page, in ms."""
    page = console.open_browser()
    try:
        times = {name: [] for name in REQUESTS}
        for _ in range(RUNS):
            page.get("about:blank")  # what the pages have kept is gone
            page.get(f"http://{daemon.HOST}:{port}/")
            end = time.monotonic() + 20
            while not page.execute_script(LOADED):
                if time.monotonic() > end:
                    raise SystemExit("the overview is never shown")
                time.sleep(0.05)
            for name in [*list(REQUESTS)[1:], ""]:
                times[name].append(console.turn(page, name))
        return times
    finally:
        page.quit()
        shutil.rmtree(page.profile, ignore_errors=True)


if __name__ == "__main__":
    main()
