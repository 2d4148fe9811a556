"""Tests of scripts/check-phrases: phrases that stop a reader are found, and others pass."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "check-phrases"
loader = importlib.machinery.SourceFileLoader("check_phrases", str(SCRIPT))
check_phrases = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(loader.name, loader)
)
loader.exec_module(check_phrases)

# A file's name, its text, and each phrase to be found with its line.
REFUSED = [
    ("src/a.h", "int x;  // of the job\n", [(1, "of")]),
    ("src/a.h", "// Of the group alone.\n", [(1, "Of")]),
    ("src/a.h", "// It counts.\n// Of a policy in which all is 0: it waits.\n", [(2, "Of")]),
    ("src/a.h", "// Buries the job after so\n// many attempts.\n", [(1, "so many")]),
    ("src/a.h", "/* There is none. */\n", [(1, "is none")]),
    ("tests/a.cpp", '// A "quoted" line looks at it.\n', [(1, "looks at")]),
    ("src/a.cpp", 'print("Waits so "\n      "long");\n', [(1, "so long")]),
    ("src/a.cpp", 'print(R"(x\nOf --rate: so many)");\n', [(2, "so many")]),
    ("tests/a.py", '"""It tells\nof a change."""\n', [(1, "tells of")]),
    ("tests/a.py", "x = 1  # is to be\n", [(1, "is to be")]),
    ("a.md", "# Of jobs\n", []),
    ("a.md", "- It holds for all tubes.\n- Of these one.\n", [(1, "holds for"), (2, "Of")]),
    ("a.md", "| a | Who asks is told all the same. |\n", [(1, "Who"), (1, "all the same")]),
    ("tests/a.cpp", "TEST(Job, OfTwoOneIsReady) {", [(1, "Of")]),
    ("tests/a.py", "    def test_a_list_tells_of_it(self):", [(1, "tells of")]),
    ("CMakeLists.txt", "# nothing but headers\n", [(1, "nothing but")]),
]

PASSES = [
    ("src/a.h", "// The price of a job. Of course it is none of theirs, so long as it waits.\n"),
    ("src/a.h", '#include <of>\nauto s = "//";  // none\n'),
    ("src/a.h", "constexpr int k = 1'000'000;  // it's here, isn't it\n"),
    ("tests/a.cpp", 'put("so many");\n'),
    ("tests/a.py", 'check("so many")\n'),
    ("tests/a.cpp", "TEST_F(JobTest, ADelayedJobIsReadyAtItsMillisecondAndNotBefore) {"),
    ("src/a.cpp", "TEST(Job, OfTwoOneIsReady) {"),
    ("a.md", "```sh\n# looks at\n```\nSay `looks at` instead.\n\n# Who may ask?\n"),
    ("a.png", "so many"),
]


class Phrases(unittest.TestCase):
    def test_each_phrase_is_found_on_its_line(self):
        for name, text, expected in REFUSED:
            found = check_phrases.findings(pathlib.PurePath(name), text)
            with self.subTest(name=name, text=text):
                self.assertEqual([(at, phrase) for at, phrase, _ in sorted(found)], expected)

    def test_other_words_pass(self):
        for name, text in PASSES:
            with self.subTest(name=name, text=text):
                self.assertEqual(list(check_phrases.findings(pathlib.PurePath(name), text)), [])

    def test_subjects_of_commits(self):
        self.assertIn("Let", check_phrases.fault_of_subject("Let the wheel turn"))
        self.assertIn("73 characters", check_phrases.fault_of_subject("x" * 73))
        self.assertEqual(check_phrases.fault_of_subject("Letters go first"), "")

    def test_the_script_fails_and_prints_file_line_phrase_and_advice(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "scripts").mkdir()
            shutil.copy(SCRIPT, root / "scripts")
            (root / "a.h").write_text("// Fires.\n// It tells of it.\n", encoding="utf-8")
            subprocess.run(["git", "init", "--quiet", folder], check=True)
            run = subprocess.run(
                [sys.executable, root / "scripts" / "check-phrases", "a.h"],
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, 'a.h:2: "tells of": say "report", "announce" or "describe"\n')


if __name__ == "__main__":
    unittest.main()
