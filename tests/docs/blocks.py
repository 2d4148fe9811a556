"""The code blocks of README.md, CONTRIBUTING.md, docs/ and docs/guide/: each is compiled, or run,
as printed.

    blocks.py check ROOT              # each block has a language; prints those that are not tested
    blocks.py sources ROOT FOLDER     # writes the C++ of each page, and a program that runs it
    blocks.py shell ROOT BUILD PREFIX [PAGE ...]     # runs the sh blocks
    blocks.py cmake ROOT PREFIX CXX   # configures and builds each cmake block
    blocks.py clients ROOT BUILD [LANGUAGE ...]    # runs the programs in other languages

  - cpp: a whole program. All of a page are compiled into one source file, and run.
  - cmake: a whole CMakeLists.txt; its main.cpp is the cpp block before it on the page.
  - sh: run with bash, in an empty folder with that main.cpp, ./build, the commands of BUILD on the
    PATH, and a server of its own, whose ports take the places of 11300 and 11380. The hosts
    old.example and new.example are that server and a second one; 11301 is an empty beanstalkd.
  - python, js, php, go, ruby: a whole program, with a client library that its page names. It is
    run, with a server of its own as above. If the library is not installed, pip, npm or go bring it
    into BUILD, where it stays for the next run.
  - text, ini: shown only.

A comment in the line above a sh block, which no reader sees, says what is different:
<!-- not run: REASON --> or <!-- run for N s: REASON -->, which then interrupts it. A block with
<!-- continues: REASON --> is run behind the sh block before it, in the same shell and folder. One
with <!-- after: COMMANDS --> is run behind these commands.

The exit code is 77 if what a block needs is not there and all others did well.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent import futures
from typing import Callable, Iterator, List, NamedTuple, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))

import daemon  # noqa: E402  (found through the line above)

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n+)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S
)
INDENTED = re.compile(r"(?:^|\n\n)(?P<code>(?: {4}[^\n]*\n)+)")
INCLUDE = re.compile(r"^#include [^\n]*\n", re.M)
SKIPPED = 77
LANGUAGES = ("cpp", "cmake", "sh", "python", "js", "php", "go", "ruby", "text", "ini")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    mark: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: pathlib.Path) -> list:
    return [
        root / "README.md",
        root / "CONTRIBUTING.md",
        *sorted((root / "docs").glob("*.md")),
    ] + sorted((root / "docs/guide").glob("*.md"))


def blocks(root: pathlib.Path) -> Iterator[Block]:
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(root))
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("code")) + 1
            yield Block(name, line, match["language"], match["mark"] or "", match["code"])


def faults(root: pathlib.Path) -> Iterator[str]:
    for page in pages(root):
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for match in INDENTED.finditer(text):
            first = match["code"].strip().splitlines()[0]
            yield f"{page.relative_to(root)}: a block without a fence and a language: {first}"
    for block in blocks(root):
        if block.language not in LANGUAGES:
            yield f"{block}: the language of a block is one of {', '.join(LANGUAGES)}"
        if block.mark and not re.match(r"(not run|run for \d+ s|continues|after): \S", block.mark):
            yield f"{block}: a mark says why: {block.mark}"
        if block.mark and block.language != "sh":
            yield f"{block}: only a sh block can be marked"
        if block.language == "cpp" and "int main(" not in block.code:
            yield f"{block}: a cpp block is a whole program"


def source_name(page: pathlib.PurePath) -> str:
    return "_".join(page.with_suffix("").parts).replace("-", "_").lower()


def write_sources(root: pathlib.Path, folder: pathlib.Path):
    """<page>.cpp for each page, with its programs in namespaces; main.cpp calls them."""
    folder.mkdir(parents=True, exist_ok=True)
    calls, declarations = [], []
    for page in pages(root):
        includes, bodies = "", ""
        name = source_name(page.relative_to(root))
        for block in blocks(root):
            if block.page != str(page.relative_to(root)) or block.language != "cpp":
                continue
            scope = f"{name}_{block.line}"
            includes += "".join(INCLUDE.findall(block.code))
            code = INCLUDE.sub("\n", block.code).replace("int main(", "int run(")
            # As in main(), a program that does not return anything has succeeded.
            end = code.rstrip().rfind("}")
            code = code[:end] + "  return 0;\n}\n"
            bodies += f"namespace {scope} {{ int run(); }}\nnamespace {scope} {{\n{code}}}\n"
            declarations.append(f"namespace {scope} {{ int run(); }}\n")
            calls.append(f'  failed += told("{block}", {scope}::run());\n')
        (folder / f"{name}.cpp").write_text(includes + bodies, encoding="utf-8")
    (folder / "main.cpp").write_text(
        "#include <cstdio>\n" + "".join(declarations) + "static int told(const char* block, "
        'int status) {\n  if (status != 0) std::printf("%s returns %d\\n", block, status);\n'
        "  return status != 0 ? 1 : 0;\n}\nint main() {\n  int failed = 0;\n"
        + "".join(calls)
        + "  return failed;\n}\n",
        encoding="utf-8",
    )


@contextlib.contextmanager
def server(build: pathlib.Path, folder: str) -> Iterator[tuple]:
    """A server for one block: its beanstalk port, and the one for HTTP."""
    os.environ["CARILLON_BIN"] = str(build / "carillon")
    with daemon.carillon_serve(folder, "--http", f"{daemon.HOST}:0") as started:
        yield started.port, started.http_port()
        started.terminate()


@contextlib.contextmanager
def servers(script: str, build: pathlib.Path, folder: str) -> Iterator[Tuple[str, dict]]:
    """Starts the servers that a script names. Yields the script with their addresses, and the
    variables that name the first of them to `carillon`."""
    with contextlib.ExitStack() as stack:
        port, http = stack.enter_context(server(build, f"{folder}/data"))
        if "new.example" in script:
            new_port, new_http = stack.enter_context(server(build, f"{folder}/new"))
            script = script.replace("new.example:11300", f"{daemon.HOST}:{new_port}")
            script = script.replace("new.example:11380", f"{daemon.HOST}:{new_http}")
        if "11301" in script:
            other = stack.enter_context(daemon.beanstalkd())
            script = script.replace("11301", str(other.port))
        script = script.replace("old.example", daemon.HOST)
        script = script.replace("11300", str(port)).replace("11380", str(http))
        yield script, {
            "CARILLON_SERVER": f"{daemon.HOST}:{port}",
            "CARILLON_HTTP": f"{daemon.HOST}:{http}",
        }


class Missing(Exception):
    """What a block needs is not there."""


# What a sh block may need, and how it calls that.
PROGRAMS = {"beanstalkd": "--beanstalkd ", "jq": "| jq ", "curl": "curl ", "nc": "nc "}


def look_for_programs(block: Block):
    for program, call in PROGRAMS.items():
        if call in block.code + block.mark and not shutil.which(program):
            raise Missing(f"{program} is not installed")


def run_shell(block: Block, build: pathlib.Path, prefix: pathlib.Path, main: str) -> str:
    """Returns what went wrong, or nothing."""
    look_for_programs(block)
    seconds = re.match(r"run for (\d+) s", block.mark)
    before = block.mark[len("after: ") :] + "\n" if block.mark.startswith("after: ") else ""
    with tempfile.TemporaryDirectory() as folder, servers(before + block.code, build, folder) as (
        script,
        addresses,
    ):
        sandbox = pathlib.Path(folder) / "sandbox"
        sandbox.mkdir()
        (sandbox / "build").symlink_to(build)
        (sandbox / "main.cpp").write_text(main, encoding="utf-8")
        one_file = prefix / "include" / "carillon_wheel.hpp"
        if one_file.exists():
            shutil.copy(one_file, sandbox)
        found = [*prefix.glob("lib/**/pkgconfig"), *prefix.glob("lib/pkgconfig")]
        environment = dict(
            os.environ,
            **addresses,
            PATH=f"{build}:{os.environ['PATH']}",
            PKG_CONFIG_PATH=":".join(map(str, found)),
        )
        with subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=sandbox,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=int(seconds[1]) if seconds else 120)
                interrupted = False
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
                output, _ = process.communicate()
                interrupted = True
        if interrupted != bool(seconds) or (not interrupted and process.returncode != 0):
            return f"{'does not end' if interrupted else 'has ended'}\n{script}\n{output}"
        return ""


def build_cmake(block: Block, root: pathlib.Path, prefix: str, compiler: str, main: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        sandbox = pathlib.Path(folder)
        (sandbox / "CMakeLists.txt").write_text(block.code, encoding="utf-8")
        (sandbox / "main.cpp").write_text(main, encoding="utf-8")
        (sandbox / "third_party").mkdir()
        (sandbox / "third_party" / "carillon").symlink_to(root)
        for command in (
            ["cmake", "-S", folder, "-B", f"{folder}/build", f"-DCMAKE_PREFIX_PATH={prefix}"]
            # In the place of a download.
            + [f"-DFETCHCONTENT_SOURCE_DIR_CARILLON={root}", f"-DCMAKE_CXX_COMPILER={compiler}"]
            + [f"-DCMAKE_CXX_COMPILER_LAUNCHER={shutil.which('ccache') or ''}"]
            # The sources of a library are compiled in a quarter of the time.
            + ["-DCMAKE_UNITY_BUILD=ON"],
            ["cmake", "--build", f"{folder}/build"],
            [f"{folder}/build/app"],
        ):
            done = subprocess.run(
                command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if done.returncode != 0:
                return f"{' '.join(command)}\n{done.stdout}"
        return ""


class Client(NamedTuple):
    file: str
    check: str  # succeeds if the language and the library are there
    fetch: str  # brings the library into the current directory, if it can be had
    run: str


# The libraries of Debian where it has them; else those of the languages' own registries.
CLIENTS = {
    "python": Client(
        "a.py",
        "python3 -c 'import greenstalk'",
        "python3 -m pip --version || { python3 -m venv --clear venv && . venv/bin/activate; }; "
        "python3 -m pip --disable-pip-version-check --retries 1 --timeout 15 "
        "install --upgrade --target . greenstalk==2.1.1",
        "python3 a.py",
    ),
    "js": Client(
        "a.js",
        "node -e 'require(\"jackd\")'",
        "npm install --prefix . --no-save --no-audit --no-fund --fetch-retries 0 jackd@2.2.2",
        "node a.js",
    ),
    "php": Client("a.php", "php -r 'require \"Pheanstalk/autoload.php\";'", "false", "php a.php"),
    "go": Client("a.go", "timeout 60 go mod download", "false", "go build -o a a.go && ./a"),
    "ruby": Client("a.rb", "ruby -e 'require \"beaneater\"'", "false", "ruby a.rb"),
}
GO_MODULE = "module a\ngo 1.20\nrequire github.com/beanstalkd/go-beanstalk v0.2.0\n"
GO_SUM = """\
github.com/beanstalkd/go-beanstalk v0.2.0 h1:6UOJugnu47uNB2jJO/lxyDgeD1Yds7owYi1USELqexA=
github.com/beanstalkd/go-beanstalk v0.2.0/go.mod h1:/G8YTyChOtpOArwLTQPY1CHB+i212+av35bkPXXj56Y=
"""
FETCHING = threading.Lock()


def bash(script: str, folder: pathlib.Path, environment: dict) -> Tuple[int, str]:
    """Returns the exit code, and what was printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def look_for_library(client: Client, sandbox: pathlib.Path, libraries: str, environment: dict):
    with FETCHING:
        if bash(client.check, sandbox, environment)[0] != 0:
            pathlib.Path(libraries).mkdir(parents=True, exist_ok=True)
            _, fetched = bash(client.fetch, pathlib.Path(libraries), environment)
            code, found = bash(client.check, sandbox, environment)
            if code != 0:
                raise Missing(f"its language or library is not to be had\n{fetched}{found}")


def run_client(block: Block, build: pathlib.Path) -> str:
    """Returns what went wrong, or nothing."""
    client = CLIENTS[block.language]
    libraries = f"{build}/tests/docs/libraries/{block.language}"
    with tempfile.TemporaryDirectory() as folder, server(build, folder + "/data") as (port, _):
        sandbox = pathlib.Path(folder) / "sandbox"
        (sandbox / "vendor").mkdir(parents=True)
        (sandbox / "vendor/autoload.php").write_text("<?php require 'Pheanstalk/autoload.php';")
        (sandbox / "go.mod").write_text(GO_MODULE)
        (sandbox / "go.sum").write_text(GO_SUM)
        (sandbox / client.file).write_text(block.code.replace("11300", str(port)))
        environment = dict(
            os.environ,
            PYTHONPATH=libraries,
            NODE_PATH=f"{libraries}/node_modules",
            GOSUMDB="off",  # go.sum has the sums
            GOFLAGS="-mod=mod -modcacherw",
            GOMODCACHE=libraries,
            GOTOOLCHAIN="local",
        )
        look_for_library(client, sandbox, libraries, environment)
        code, printed = bash(client.run, sandbox, environment)
        return "" if (code, printed) == (0, "hello\n") else f"exit code {code}\n{printed}"


def side_by_side(run: Callable[..., str], work: List[Tuple]) -> int:
    """Runs the blocks, most of which wait: for the time of a job, or for the disk. Each item of
    `work` begins with its block. Returns the exit code of all."""

    def run_one(item: Tuple) -> int:
        try:
            wrong = run(*item)
        except Missing as missing:
            print(f"{item[0]}: not run: {missing}", flush=True)
            return SKIPPED
        print(f"{item[0]}: {wrong or 'as it says'}", flush=True)
        return 1 if wrong else 0

    with futures.ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(run_one, work))
    return 1 if 1 in codes or not codes else max(codes)


def run_clients(root: pathlib.Path, build: pathlib.Path, languages: list) -> int:
    # README.md and docs/clients.md have the same programs, which are run once.
    programs = {
        (block.language, block.code): (block, build)
        for block in blocks(root)
        if block.language in languages or (block.language in CLIENTS and not languages)
    }
    return side_by_side(run_client, list(programs.values()))


def main() -> int:
    action, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if action == "sources":
        write_sources(root, pathlib.Path(sys.argv[3]))
        return 0
    if action == "check":
        wrong = list(faults(root))
        for block in blocks(root):
            if block.mark:
                print(f"{block}: {block.mark}")
        print("\n".join(wrong))
        return 1 if wrong else 0
    if action == "clients":
        return run_clients(root, pathlib.Path(sys.argv[3]).resolve(), sys.argv[4:])
    folders = [pathlib.Path(folder).resolve() for folder in sys.argv[3:5]]
    program, before, work = "", "", []
    for block in blocks(root):
        if block.language == "cpp":
            program = block.code
        if block.mark.startswith("not run") or block.language != action.replace("shell", "sh"):
            continue
        if block.language == "sh":
            if sys.argv[5:] and block.page not in sys.argv[5:]:
                continue
            before = before + block.code if block.mark.startswith("continues") else block.code
            block = block._replace(code=before)
        work.append((block, program))

    def run(block: Block, program: str) -> str:
        if action == "shell":
            return run_shell(block, folders[0], folders[1], program)
        return build_cmake(block, root, sys.argv[3], sys.argv[4], program)

    return side_by_side(run, work)


if __name__ == "__main__":
    sys.exit(main())
