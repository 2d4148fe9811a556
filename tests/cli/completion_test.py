"""What shells complete, and the manual pages: nothing that --help has is missing."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = os.environ["CARILLON_BIN"]
MANUALS = Path(__file__).resolve().parent.parent.parent / "scripts" / "manuals"


def output(*command, **options):
    done = subprocess.run(command, check=True, capture_output=True, text=True, **options)
    return done.stdout


def commands():
    return re.findall(r"^  (\w+) +[A-Z]", output(BIN, "--help").split("Try it")[0], re.M)


def options_of(command):
    """The names in the first column of the list of options."""
    text = output(BIN, command, "--help").split("Options:\n")[1].split("\n\n")[0]
    entries = re.findall(r"^ {1,2}(-[^\n]*)", text, re.M)
    return [name for entry in entries for name in re.findall(r"(?:^|, ?)(--?[\w-]+)", entry)]


class CompletionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def script(self, shell):
        path = self.folder / shell
        path.write_text(output(BIN, "completion", shell))
        return path

    def test_there_are_commands_and_options(self):
        self.assertGreaterEqual(len(commands()), 25)
        self.assertIn("--sync", options_of("serve"))
        self.assertIn("-h", options_of("serve"))
        self.assertIn("-z", options_of("beanstalkd"))
        self.assertIn("-n", options_of("beanstalkd"))

    def test_bash_completes_every_command_and_option(self):
        script = self.script("bash")

        def complete(*words):
            ask = f"source {script}; COMP_WORDS=({' '.join(words)}); "
            ask += f"COMP_CWORD={len(words) - 1}; _carillon; echo ${{COMPREPLY[@]}}"
            return output("bash", "-uc", ask).split()

        self.assertEqual(complete("carillon", "''"), commands())
        self.assertEqual(complete("carillon", "sche"), ["schedule"])
        for command in commands():
            self.assertEqual(
                sorted(complete("carillon", command, "-")), sorted(options_of(command))
            )
        self.assertEqual(complete("carillon", "put", "file"), [])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_every_command_and_option(self):
        script = self.script("fish")

        def complete(line):
            text = output("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
            return [found.split("\t")[0] for found in text.splitlines()]

        self.assertEqual(sorted(complete("carillon ")), sorted(commands()))
        for command in commands():
            found = complete(f"carillon {command} -") + complete(f"carillon {command} --")
            self.assertLessEqual(set(options_of(command)), set(found), command)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_the_script(self):
        script = self.script("zsh")
        setup = "autoload -Uz compinit; compinit -u -D; "
        text = output(
            "zsh", "-fc", f"{setup} source {script}; functions _carillon", cwd=self.folder
        )
        for command in commands():
            part = re.search(rf"\({command}\) *_arguments(.*?);;", text, re.S)[1]
            for option in options_of(command):
                self.assertIn(f"'*{option}[", part, command)

    def test_another_shell_is_refused(self):
        done = subprocess.run(
            [BIN, "completion", "tcsh"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn('there is no shell "tcsh"; there are bash, zsh, fish', done.stderr)

    def test_the_manual_pages_have_every_command_and_option(self):
        output(sys.executable, str(MANUALS), BIN, str(self.folder))
        overview = (self.folder / "carillon.1").read_text()
        for command in commands():
            self.assertIn(f"\n{command} ", overview)
            page = (self.folder / f"carillon-{command}.1").read_text().replace("\\-", "-")
            for option in options_of(command):
                self.assertRegex(page, rf"\.TP\n\\fB(?:.*, ?)?{option}\b", command)
            if shutil.which("man"):
                shown = subprocess.run(
                    ["man", "--warnings", "-l", str(self.folder / f"carillon-{command}.1")],
                    env={**os.environ, "MANWIDTH": "90", "LC_ALL": "C.UTF-8"},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual(shown.stderr, "", command)


if __name__ == "__main__":
    unittest.main(verbosity=2)
