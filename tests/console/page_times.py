#!/usr/bin/env python3
"""Prints how long the server takes for what each page of the console asks, with many jobs.

    CARILLON_BIN=build/carillon tests/console/page_times.py --jobs 10000000
"""

import argparse
import http.client
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))

import daemon

LIST = "/v1/tubes/many/jobs?page_size="
REQUESTS = {
    "Overview": ["/v1/history", "/v1/stats"],
    "Wheel": ["/v1/tubes?page_size=200", "/v1/wheel?tube=many"],
    "Tubes": ["/v1/tubes?page_size=200"],
    "Jobs": ["/v1/tubes?page_size=200", LIST + "50"],
    "Find a job": ["/v1/jobs/5000"],
    "Dead": ["/v1/tubes?page_size=200", "/v1/tubes/many/dead"],
    "Schedules": ["/v1/schedules?page_size=50"],
    "Limits": ["/v1/tubes?page_size=200", LIST + "1000"],
    "Audit": ["/v1/audit?limit=200"],
}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=10_000_000)
    options.add_argument("--dir", help="where the data goes")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.dir) as data, daemon.carillon_serve(
        data, "--http", "127.0.0.1:0", "--sync", "os"
    ) as server:
        client = http.client.HTTPConnection(daemon.HOST, server.http_port(), timeout=60)
        soon = int(time.time() * 1000) + 3_600_000
        for first in range(0, asked.jobs, 1000):
            # Due times in no order, over 30 days: 7919 is prime to their number.
            dues = [soon + (first + n) * 7919 % 2_592_000_000 for n in range(1000)]
            body = json.dumps({"jobs": [{"body": "x", "due": due} for due in dues]})
            headers = {"Content-Type": "application/json"}
            client.request("POST", "/v1/tubes/many/jobs:batch", body, headers)
            reply = client.getresponse()
            if reply.status != 200:
                raise SystemExit(reply.read().decode())
            reply.read()
        for page, paths in REQUESTS.items():
            worst = 0.0
            for _ in range(5):
                began = time.monotonic()
                for path in paths:
                    client.request("GET", path)
                    client.getresponse().read()
                worst = max(worst, time.monotonic() - began)
            print(f"{page:12} {worst * 1000:8.1f} ms, the worst of 5")


if __name__ == "__main__":
    main()
