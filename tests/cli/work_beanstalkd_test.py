"""System tests of `carillon work` on beanstalkd, which knows nothing of failed attempts."""

import unittest

from cli_case import daemon
from work_case import WorkCase


class BeanstalkdTest(WorkCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(daemon.beanstalkd())

    def put(self, body=b"x"):
        connection = self.server.connect()
        connection.call(b"use " + self.tube.encode())
        return str(connection.call(b"put 0 0 60 %d" % len(body), body).number())

    def test_success_deletes_the_job(self):
        job_id = self.put()
        code, _, lines = self.work("--until-empty", "--", "true")
        self.assertEqual(code, 0, lines)
        self.assertFalse(self.has_job(job_id))

    def test_a_failure_releases_the_job_and_the_last_one_buries_it(self):
        job_id = self.put()
        worker = self.start_worker("--max-attempts", "2", "--backoff", "100ms", "--", "false")
        self.wait_until(lambda: self.job(job_id)["state"] == "buried", "it is buried")
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        name = rf"job {job_id} from tube {self.tube}, attempt"
        self.assert_lines(
            worker.stderr.read().decode().splitlines(),
            rf"{name} 1: exit status 1 after \d\.\d\ds, released for 0\.\d\ds",
            rf"{name} 2: exit status 1 after \d\.\d\ds, buried",
            "carillon work: stopping",
        )
        job = self.job(job_id)
        self.assertEqual((job["releases"], job["buries"]), (1, 1))

    def test_a_command_that_runs_longer_than_the_ttr_keeps_its_job(self):
        connection = self.server.connect()
        connection.call(b"use " + self.tube.encode())
        job_id = connection.call(b"put 0 0 1 1", b"x").number()
        code, _, lines = self.work("--once", "--", "sleep", "2.5")
        self.assertEqual(code, 0)
        self.assert_lines(lines, rf"job {job_id} .*, deleted")


if __name__ == "__main__":
    unittest.main()
