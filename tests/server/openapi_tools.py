"""Programs that check openapi.json, and a server against it. They are installed into the folder of
CARILLON_TOOLS_DIR, where they stay for the next run."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

PYTHON = ("schemathesis==4.32.5", "openapi-spec-validator==0.9.0")
REDOCLY = "@redocly/cli@2.77.0"


def _folder(name: str) -> Path:
    folder = Path(os.environ.get("CARILLON_TOOLS_DIR", "/tmp/carillon-tools")) / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def _run(*commands: List[str]) -> str:
    """Returns the last line of what has failed; nothing if all is well."""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            return (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()[-1]
    return ""


@functools.lru_cache(maxsize=None)
def python_tools() -> Tuple[Path, str]:
    """Returns the folder of schemathesis and openapi-spec-validator, or why they cannot be had."""
    folder = _folder("openapi-python")
    programs = folder / "bin"
    done = folder / " ".join(PYTHON)  # names the versions that are there
    if not done.exists():
        why = _run(
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(programs / "python"), "-m", "pip", "install", "-q", *PYTHON],
        )
        if why:
            return programs, f"{' and '.join(PYTHON)} cannot be installed by pip: {why}"
        done.touch()
    return programs, ""


@functools.lru_cache(maxsize=None)
def redocly() -> Tuple[Path, str]:
    """Returns the path of Redocly's linter, or why it cannot be had."""
    folder = _folder("openapi-redocly")
    program = folder / "node_modules" / ".bin" / "redocly"
    if program.exists():
        return program, ""
    npm = shutil.which("npm")
    if not npm:
        return program, f"{REDOCLY} needs npm, which is not installed"
    why = _run([npm, "install", "--silent", "--no-audit", "--prefix", str(folder), REDOCLY])
    return program, f"{REDOCLY} cannot be installed by npm: {why}" if why else ""
