"""The check of the links can fail: links and paths that lead nowhere are reported, and their honest
neighbours are not."""

import pathlib
import tempfile
import unittest

from links import anchors, faults, slug

FILES = {
    "README.md": "# The House\n\n## Work on it\n\n## Work on it\n",
    "docs/a.md": "# Alpha: `x`, *beta* & 10⁶\n\nUnderlined\n----------\n\n    # no heading\n",
    "src/queue/engine.cpp": "int main() {}\n// end\n",
    "bench/peers/run": "#!/bin/sh\n",
}

# Text of docs/page.md, and what the check must report about it.
REFUSED = [
    ("[a](b.md)", "1: the link (b.md) leads to no file"),
    ("\n![a](images/b.svg)", "2: the link (images/b.svg) leads to no file"),
    ("[a\nb](<b c.md> 'title')", "2: the link (b c.md) leads to no file"),
    ("[a][1]\n\n[1]: ../src/none.h", "3: the link (../src/none.h) leads to no file"),
    ('<img src="b.png">', "1: the link (b.png) leads to no file"),
    ("[`a`](b.md)", "the link (b.md) leads to no file"),
    ("- x\n\n    [a](b.md)", "3: the link (b.md) leads to no file"),
    ("[a](../../elsewhere.md)", "leads out of the repository"),
    ("[a](A.md)", "the link (A.md) leads to no file"),
    ("[a](a.md#beta)", "the link (a.md#beta) leads to no heading"),
    ("[a](a.md#no-heading)", "leads to no heading"),
    ("[a](#none)", "the link (#none) leads to no heading"),
    ("[a](../README.md#work-on-it-2)", "leads to no heading"),
    ("[a](../src/queue/engine.cpp#main)", "leads to no Markdown page"),
    ("[a](../src/queue/engine.cpp#L3)", "leads behind the file's 2 lines"),
    ("see `src/queue/none.h`.", "1: src/queue/none.h does not exist"),
    ("`bench/none/run --quick`", "bench/none/run does not exist"),
    ("`python3\nscripts/none.py`", "2: scripts/none.py does not exist"),
    ("`examples/none/`", "examples/none/ does not exist"),
    ("`src/queue/none.h:12`", "src/queue/none.h does not exist"),
    ("`src/*/none.h`", "no file matches src/*/none.h"),
    ("    bench/none/run", "1: bench/none/run does not exist"),
    ("```sh\nbench/none/run > x\n```", "2: bench/none/run does not exist"),
]

ALLOWED = [
    "[a](a.md) ![b](../README.md) [c](../src/queue) [d](/docs/a.md)",
    "[a](a.md#alpha-x-beta--10) [a](a.md#underlined) [a](../src/queue/engine.cpp#L1-L2)",
    "[a](../README.md#work-on-it) [a](../README.md#work-on-it-1) [top](#here)\n\n# Here",
    '<a id="there"></a> [a](#there)',
    "[a](https://example.org/b.md#c) [b](mailto:a@example.org)",
    "`[a](b.md)` and\n\n    [a](b.md)\n\n```\n[a](b.md)\n```\n<!-- [a](b.md) -->",
    "`src/queue/engine.cpp:12`, (`src/queue/`), `bench/peers/run --quick`, `src/*/*.cpp`",
    "`src/LAYER/<name>.h` `src/…/x.h` `build/none` `include_rules.py` src/none.h",
]


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def test_each_link_that_leads_nowhere_is_reported_with_its_line(self):
        for text, fault in REFUSED:
            with self.subTest(text=text):
                self.write("docs/page.md", text)
                found = list(faults(self.root))
                self.assertEqual(len(found), 1, found)
                self.assertIn(fault, found[0].removeprefix("docs/page.md:"))

    def test_links_that_lead_somewhere_pass(self):
        for text in ALLOWED:
            with self.subTest(text=text):
                self.write("docs/page.md", text)
                self.assertEqual(list(faults(self.root)), [])

    def test_a_page_that_a_source_file_names_must_exist(self):
        self.write("src/queue/engine.cpp", "// docs/a.md has it\n// docs/gone.md has it.\n")
        self.assertEqual(
            list(faults(self.root)), ["src/queue/engine.cpp:2: docs/gone.md does not exist"]
        )

    def test_pages_at_the_top_and_below_a_room_are_read(self):
        for name in ("NEWS.md", "docs/deep/page.md", "bench/page.md"):
            with self.subTest(name=name):
                self.write(name, "[a](none.md)")
                self.assertEqual(
                    list(faults(self.root)), [f"{name}:1: the link (none.md) leads to no file"]
                )
                (self.root / name).unlink()

    def test_anchors_are_made_as_github_makes_them(self):
        self.assertEqual(
            slug("What `advance()` may do: *at most*, 2_3"), "what-advance-may-do-at-most-2_3"
        )
        self.assertEqual(slug("[Text](page.md) – Größe"), "text--größe")
        self.assertEqual(anchors("# A\n## A\n## A\n"), {"a", "a-1", "a-2"})


if __name__ == "__main__":
    unittest.main()
