"""Turns the plain // comments of a header into ones that Doxygen reads. Doxygen calls it.

    filter.py HEADER     # prints the header

  - The first comment is of the file; any other that stands alone is of what follows it, and one
    behind a declaration of that.
  - Lines that are indented behind an empty line are code; a line above dashes is a heading.
  - What it misreads is left out: initialisers of short constructors, members that are defined
    behind their class, and base classes that are not for users. A default argument with a shift is
    written as its value.
  - Doxygen's own commands and HTML mean nothing in these comments, so they are escaped.
"""

import re
import sys
from typing import Iterator, List

ALONE = re.compile(r"( *)// ?(.*)")
BEHIND = re.compile(r"( *[^/ ].*[;,]|  *\w+)  // (?!NOLINT)(.*)")
INITIALISERS = re.compile(r"\n +: \w+\([^()\n]*\)(?:, \w+\([^()\n]*\))* \{\}")
DEFINED_BEHIND = re.compile(r"^template <[^\n]*>\n[^\n]*>::[^\n]* \{\n.*?^\}\n", re.M | re.S)
DETAIL_BASE = re.compile(r"\n +: public detail::[^{;]*(?= \{\n)")


def escaped(text: str) -> str:
    return re.sub(r"([\\@<>&#%*_`~|\[\]])", r"\\\1", text)


def written(lines: List[str]) -> Iterator[str]:
    """The lines of a comment, as Doxygen wants them."""
    in_code, empty = False, True
    for number, line in enumerate(lines):
        under = lines[number + 1] if number + 1 < len(lines) else ""
        starts = empty and line.startswith("   ")
        if in_code and line and not line.startswith("   "):
            in_code = False
            yield "@endcode"
        elif not in_code and starts:
            in_code = True
            yield "@code{.cpp}"
        empty = not line
        if re.fullmatch("-{3,}", line):
            continue
        if re.fullmatch("-{3,}", under):
            yield f"@par {escaped(line)}"
        else:
            yield line if in_code else re.sub(r"^(\s*)\\-", r"\1-", escaped(line))
    if in_code:
        yield "@endcode"


def filtered(source: List[str]) -> Iterator[str]:
    comment: List[str] = []
    indent, of_file = "", True
    for line in [*source, ""]:
        alone = ALONE.fullmatch(line)
        if alone and "NOLINT" not in line:
            indent = alone[1]
            comment.append(alone[2])
            continue
        if comment:
            # A comment that an empty line follows is of nothing that has a name.
            mark = "///" if of_file or line.strip() else "//"
            yield from [f"{indent}/// @file"] if of_file else []
            yield from (f"{indent}{mark} {text}" for text in written(comment))
            comment, of_file = [], False
        behind = BEHIND.fullmatch(line)
        yield f"{behind[1]}  ///< {escaped(behind[2])}" if behind else line


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as header:
        source = DEFINED_BEHIND.sub("", INITIALISERS.sub(";", header.read()))
    source = DETAIL_BASE.sub("", source).replace("std::size_t{1} << 20>", "1'048'576>")
    print("\n".join(filtered(source.split("\n"))))


if __name__ == "__main__":
    main()
