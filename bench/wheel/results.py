"""Reads the files of carillon_bench_wheel --out and bench/peers/run, for ./plot and ./table."""

import json

# The systems in the order of the tables; others come last.
SYSTEMS = [
    "HierarchicalWheel", "HierarchicalWheel, kHuge", "HierarchicalWheel, huge", "TimerPool",
    "SimpleWheel<65536>", "HashedWheel<512>", "LinuxWheel", "KafkaWheel", "ClockWheel",
    "ScanList", "SortedList", "BinaryHeap",
    "list wheel 256/64x4", "list wheel, huge", "(bare stores)", "(bare stores, huge)",
    "std::multimap",
    "Asio timers", "Asio with wheel_timer", "libuv timers", "libevent timers",
    "tokio sleep", "tokio DelayQueue",
    "Netty wheel, 100 ms", "Netty wheel, 1 ms", "Kafka SystemTimer",
    "java ScheduledThreadPool", "java.util.Timer", "java DelayQueue",
]  # fmt: skip

WORKLOADS = {
    "W1": "schedule",
    "W2": "cancel in random order",
    "W3": "fire, tick by tick",
    "W3e": "an empty tick",
    "W4": "keepalive, per re-arm",
    "W5": "wide range, schedule and fire",
    "W6": "bytes per pending timer beyond its payload",
    "W7": "churn: cancel and schedule anew",
    "W3r": "fire within 3 s of real time, the process's CPU",
}


class Results:
    def __init__(self, *files: str):
        self.machine, self.commands, self._median = {}, [], {}
        for file in files:
            with open(file, encoding="utf-8") as opened:
                content = json.load(opened)
            self.machine = self.machine or content.get("machine", {})
            self.commands.append(content.get("command", ""))
            for each in content["results"]:
                self._median[each["n"], each["workload"], each["system"]] = each["median"]

    def median(self, n: int, workload: str, system: str) -> "float | None":
        return self._median.get((n, workload, system))

    def sizes(self) -> list:
        return sorted({n for n, _, _ in self._median})

    def systems(self) -> list:
        names = {system for _, _, system in self._median}
        return [each for each in SYSTEMS if each in names] + sorted(names - set(SYSTEMS))


def reference(workload: str) -> str:
    """The system that the ratios of a workload refer to; the same as in results.cpp."""
    return "std::multimap" if workload == "W5" else "list wheel 256/64x4"


def brief(value: float) -> str:
    """Three significant digits."""
    if value >= 1e5:
        return f"{value / 1000:.0f}k"
    return (
        f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )
