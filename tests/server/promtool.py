"""Prometheus' promtool, which checks metrics, configurations and alerts.

Debian has it in the package `prometheus`, which would start a service and take 300 MB with what it
needs. So the program alone is taken from that package, into the folder of CARILLON_TOOLS_DIR, where
it stays for the next run.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Optional

MISSING = "promtool is not installed, and apt-get cannot download Debian's prometheus"


@functools.lru_cache(maxsize=None)
def find() -> Optional[str]:
    """Returns the path of promtool. None: it cannot be had."""
    installed = shutil.which("promtool")
    folder = os.environ.get("CARILLON_TOOLS_DIR")
    if installed or not folder:
        return installed
    program = Path(folder) / "promtool"
    if not program.exists():
        _fetch(program)
    return str(program) if program.exists() else None


def _fetch(program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    script = """apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 download prometheus
        dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool"""
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        try:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            return
        if done.returncode == 0:
            # Another test may do the same at this moment.
            os.replace(f"{folder}/usr/bin/promtool", program)
        else:
            print(f"no promtool: {done.stderr}", flush=True)
