"""System tests of carillon as beanstalkd: as a command, and by its name."""

import subprocess
import unittest

from cli_case import CliCase, daemon


class NameTest(CliCase):
    """`carillon beanstalkd …`, and carillon started by the name beanstalkd."""

    def test_both_take_beanstalkds_flags(self):
        as_command = self.run_carillon("beanstalkd", "-h")
        self.assertEqual(as_command.returncode, 0)
        self.assertIn(b" -b DIR", as_command.stdout)
        link = self.directory / "beanstalkd"
        link.symlink_to(daemon.carillon_path())
        by_name = subprocess.run([link, "-h"], stdout=subprocess.PIPE, timeout=60, check=True)
        self.assertIn(b" -b DIR", by_name.stdout)


if __name__ == "__main__":
    unittest.main()
