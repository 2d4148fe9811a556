"""Links lead somewhere: the check of every link and every path in the Markdown files.

    python3 links.py SOURCE_ROOT       # prints each link and path that leads nowhere; exit status 1
    if there is one

Three things are checked:

  - A relative link or image in a Markdown file leads to a file or folder of the repository. Its
    #anchor is a heading of that page, by GitHub's rules, or a line (#L12) of that file.
  - A path that begins with a folder of ROOMS, in backticks or in a code block, names a file or
    folder, or a pattern with * that some file matches. Paths with a placeholder (<name>, …, {a,b})
    are not checked.
  - A page of docs/ that a source file names, in a comment say, exists.

Links to other sites are not checked.
"""

import pathlib
import re
import sys
import unicodedata
from typing import Iterator, NamedTuple
from urllib.parse import unquote

ROOMS = ("src", "include", "tests", "bench", "examples", "docs", "scripts", "packaging", "cmake")

FENCE = re.compile(r"^ {0,3}(?P<ticks>`{3,}|~{3,})")
CODE_SPAN = re.compile(  # not over a blank line
    r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>(?:(?!\n[ \t]*\n).)+?)(?<!`)(?P=ticks)(?!`)", re.DOTALL
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
TARGET = r"(?:<(?P<angle>[^<>\n]*)>|(?P<bare>[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*))"
INLINE_LINK = re.compile(r"\]\(\s*" + TARGET + r"(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*" + TARGET, re.M)
HTML_LINK = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*[\"'](?P<bare>[^\"']*)[\"']")
HTML_ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)\s*=\s*[\"']([^\"']+)[\"']")
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*$")
UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
LINKED_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
OTHER_SITE = re.compile(r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//)")
SLUG_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Pc"}
LINE_ANCHOR = re.compile(r"^L(\d+)(?:-L(\d+))?$")

ROOM_PATH = re.compile(r"^(?:\./)?(?:" + "|".join(ROOMS) + r")/")
AROUND_PATH = "\"'(),;:.[]"
LINE_NUMBER = re.compile(r":\d+(?::\d+)?$")
PLACEHOLDER = re.compile(r"[<>{}$…]|\.\.\.")
NAMED_PAGE = re.compile(r"(?<![\w./-])docs/[\w./-]+\.md\b")


class Page(NamedTuple):
    """A Markdown file. In `prose`, code and comments are blanked out; offsets and lines stay."""

    prose: str
    codes: list[tuple[int, str]]  # each code span and line of a code block, after its line number


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def read_page(text: str) -> Page:
    lines, codes = text.split("\n"), []
    for number, is_code in enumerate(code_lines(lines)):
        if is_code:
            codes.append((number + 1, lines[number]))
            lines[number] = blank(lines[number])
    prose = COMMENT.sub(lambda comment: blank(comment[0]), "\n".join(lines))
    for span in CODE_SPAN.finditer(prose):
        codes.append((line_of(prose, span.start()), span["code"]))
    return Page(CODE_SPAN.sub(lambda span: blank(span[0]), prose), codes)


def code_lines(lines: list[str]) -> Iterator[bool]:
    """Yields for each line whether it belongs to a code block: one in fences, or one that is
    indented by four after a blank line, outside of a list."""
    fence = ""
    indented = in_list = False
    before = ""
    for line in lines:
        match = FENCE.match(line)
        if fence or match:
            yield True
            if not fence:
                fence = match["ticks"]
            elif match and match["ticks"].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            if line.strip() and not line.startswith(" "):
                in_list = re.match(r"(?:[-+*]|\d+[.)])[ \t]", line) is not None
            indented = line.startswith("    ") and not in_list and (indented or not before.strip())
            yield indented
        before = line


def slug(heading: str) -> str:
    """Returns the anchor that GitHub makes of a heading: letters, digits, marks, - and _ stay."""
    text = LINKED_TEXT.sub(r"\1", heading).strip().lower()
    kept = (each for each in text if each in "- " or unicodedata.category(each) in SLUG_CATEGORIES)
    return "".join(kept).replace(" ", "-")


def heading_of(line: str, below: str) -> str:
    """Returns the text of a heading (after #, or underlined by the line below), or "" if `line` is
    no heading."""
    if match := HEADING.match(line):
        return match["text"]
    return line if line.strip() and line[0] not in "|>-" and UNDERLINE.match(below) else ""


def anchors(text: str) -> set[str]:
    """Returns all anchors of a Markdown page. If headings are equal, the second gets -1, the third
    -2."""
    lines = text.split("\n")
    is_code = list(code_lines(lines))
    found, seen = set(HTML_ANCHOR.findall(read_page(text).prose)), {}
    for number, line in enumerate(lines):
        if is_code[number]:
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        name = slug(heading_of(line, below))
        if not name:
            continue
        count = seen.get(name, 0)
        seen[name] = count + 1
        found.add(f"{name}-{count}" if count else name)
    return found


def links(page: Page) -> Iterator[tuple[int, str]]:
    """Yields the line number and the target of each link."""
    for pattern in (INLINE_LINK, DEFINITION, HTML_LINK):
        for match in pattern.finditer(page.prose):
            groups = match.groupdict()
            yield line_of(page.prose, match.start()), groups.get("angle") or groups["bare"] or ""


def fault_of_link(root: pathlib.Path, file: pathlib.Path, target: str) -> str | None:
    if OTHER_SITE.match(target):
        return None
    path, _, anchor = target.partition("#")
    path, anchor = unquote(path), unquote(anchor)
    start = root if path.startswith("/") else file.parent
    there = (start / path.lstrip("/")).resolve() if path else file.resolve()
    if not there.is_relative_to(root.resolve()):
        return f"the link ({target}) leads out of the repository"
    if not there.exists():
        return f"the link ({target}) leads to no file"
    if not anchor:
        return None
    if there.is_file() and (lines := LINE_ANCHOR.match(anchor)):
        count = len(there.read_text(encoding="utf-8").splitlines())
        last = int(lines[2] or lines[1])
        return (
            None if last <= count else f"the link ({target}) leads behind the file's {count} lines"
        )
    if there.suffix != ".md":
        return f"the link ({target}) has an anchor, but leads to no Markdown page"
    if anchor not in anchors(there.read_text(encoding="utf-8")):
        return f"the link ({target}) leads to no heading of that page"
    return None


def fault_of_path(root: pathlib.Path, word: str) -> str | None:
    path = LINE_NUMBER.sub("", word.strip(AROUND_PATH)).partition("#")[0]
    if not ROOM_PATH.match(path) or PLACEHOLDER.search(path):
        return None
    if "*" in path:
        return None if any(root.glob(path.removeprefix("./"))) else f"no file matches {path}"
    return None if (root / path).exists() else f"{path} does not exist"


def faults_in_page(root: pathlib.Path, file: pathlib.Path) -> list[tuple[int, str]]:
    page = read_page(file.read_text(encoding="utf-8"))
    found = [
        (line, fault)
        for line, target in links(page)
        if (fault := fault_of_link(root, file, target))
    ]
    for line, code in page.codes:
        for word in re.finditer(r"[^\s=]+", code):
            if fault := fault_of_path(root, word[0]):
                found.append((line + code.count("\n", 0, word.start()), fault))
    return sorted(found)


def faults_in_source(root: pathlib.Path, file: pathlib.Path) -> list[tuple[int, str]]:
    text = file.read_text(encoding="utf-8", errors="replace")
    return [
        (line_of(text, match.start()), f"{match[0]} does not exist")
        for match in NAMED_PAGE.finditer(text)
        if not (root / match[0]).exists()
    ]


def files_of(root: pathlib.Path) -> list[pathlib.Path]:
    """Returns all files at the top and in the rooms, except what a build leaves there and this
    check's own test, which makes pages up."""
    found = [file for file in root.iterdir() if file.is_file()]
    for room in ROOMS:
        found += (file for file in (root / room).rglob("*") if file.is_file())
    out = {"__pycache__", "build", "node_modules", "target", "links_test.py"}
    return sorted(file for file in found if not out.intersection(file.relative_to(root).parts))


def faults(root: pathlib.Path) -> Iterator[str]:
    for file in files_of(root):
        check = faults_in_page if file.suffix == ".md" else faults_in_source
        for line, fault in check(root, file):
            yield f"{file.relative_to(root)}:{line}: {fault}"


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    pages = [file for file in files_of(root) if file.suffix == ".md"]
    if not pages:
        print(f"no Markdown file in {root}")
        return 1
    found = list(faults(root))
    print("\n".join(found) if found else f"all links of {len(pages)} pages lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
