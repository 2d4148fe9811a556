"""The figures of ./compare: what is counted of a run, and the medians of several."""

import json
import statistics

CONTESTANTS = {
    "carillon": "Carillon",
    "poll-100ms": "PostgreSQL, polled every 100 ms",
    "poll-1s": "PostgreSQL, polled every second",
    "notify": "PostgreSQL, sleeps until the next due time, NOTIFY",
}
# name in a run: (label, unit, digits)
FIGURES = {
    "jobs_per_s": ("downloads ended per second", "", 0),
    "late_p50_ms": ("late, p50", "ms", 1),
    "late_p99_ms": ("late, p99", "ms", 1),
    "put_p50_ms": ("put answered, p50", "ms", 2),
    "put_p99_ms": ("put answered, p99", "ms", 1),
    "given_back_share": ("came in vain", "% of those begun", 0),
    "server_cpu_us": ("CPU of the server", "us per download", 0),
    "client_cpu_us": ("CPU of producers and consumers", "us per download", 0),
    "cpu_us": ("CPU of everything", "us per download", 0),
    "written_kb": ("written to the disk", "kB per download", 1),
}
DRAIN = ("jobs_per_s", "cpu_us", "written_kb")


def figures(result: dict, server: dict) -> dict:
    """`result` is the last line of the load program, `server` what the server took meanwhile."""
    finished = max(result["finished"], 1)
    return {
        **result,
        "jobs_per_s": result["finished"] / result["seconds"],
        "given_back_share": 100 * result["given_back"] / max(result["begun"], 1),
        "server_cpu_us": 1e6 * server["cpu_s"] / finished,
        "client_cpu_us": 1e6 * result["cpu_s"] / finished,
        "cpu_us": 1e6 * (server["cpu_s"] + result["cpu_s"]) / finished,
        "written_kb": server["written"] / 1e3 / finished,
    }


def read(paths: list) -> dict:
    """The runs of several files that ./compare --json has printed, as one."""
    runs = {"steady": {}, "drain": {}}
    for path in paths:
        with open(path, encoding="utf-8") as text:
            content = json.load(text)
        for shape, of_contestant in content["runs"].items():
            for name, those in of_contestant.items():
                runs[shape].setdefault(name, []).extend(those)
    return {**content, "runs": runs}


def median(runs: list, figure: str) -> float:
    return statistics.median(run[figure] for run in runs)


def table(runs: dict) -> str:
    lines = []
    for shape, names in (("steady", FIGURES), ("drain", DRAIN)):
        shown = [name for name in CONTESTANTS if runs[shape].get(name)]
        if not shown:
            continue
        if lines:
            lines.append("")
        heads = [CONTESTANTS[name] for name in shown]
        lines += ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(shown)]
        for figure in names:
            label, unit, digits = FIGURES[figure]
            cells = [f"{median(runs[shape][name], figure):,.{digits}f}" for name in shown]
            label += f", {unit}" if unit else ""
            lines.append(f"| {label} | " + " | ".join(cells).replace(",", " ") + " |")
    return "\n".join(lines)
