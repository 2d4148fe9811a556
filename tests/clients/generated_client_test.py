"""A client that was generated from the server's /openapi.json drives it: puts, leases, lists,
schedules, and problems.

    generated_client_test.py DIRECTORY

The generator is openapi-python-client, installed by pip into a virtual environment in DIRECTORY,
where it stays for the next run. The exit code is 77 if it cannot be had.
"""

import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

import daemon  # noqa: E402

GENERATOR = "openapi-python-client==0.29.1"


def served(path):
    with tempfile.TemporaryDirectory() as data:
        with daemon.carillon_serve(data, "--http", f"{daemon.HOST}:0") as server:
            url = f"http://{daemon.HOST}:{server.http_port()}{path}"
            with urllib.request.urlopen(url, timeout=20) as reply:
                return reply.read()


def generate(directory):
    """Returns the Python that has the generator, and the folder of the generated client."""
    tools = Path(directory) / "generator"
    python = tools / "bin" / "python"
    generator = tools / "bin" / "openapi-python-client"
    if not generator.exists():
        for command in (
            [sys.executable, "-m", "venv", "--clear", tools],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", GENERATOR],
        ):
            installed = subprocess.run(command, capture_output=True, text=True, check=False)
            if installed.returncode:
                print(f"{GENERATOR} is not to be had:\n{installed.stdout}{installed.stderr}")
                sys.exit(77)
    client = Path(directory) / "client"
    description = Path(directory) / "openapi.json"
    description.write_bytes(served("/openapi.json"))
    subprocess.run(
        [generator, "generate", "--overwrite", "--path", description, "--output-path", client],
        check=True,
        # Its output is hidden: it complains that a program to format its files is missing.
        capture_output=True,
    )
    return python, client


class GeneratedClientTest(unittest.TestCase):
    def setUp(self):
        data = tempfile.TemporaryDirectory()
        self.addCleanup(data.cleanup)
        server = daemon.carillon_serve(data.name, "--http", f"{daemon.HOST}:0").start()
        self.addCleanup(server.__exit__)
        api = carillon_client.Client(
            base_url=f"http://{daemon.HOST}:{server.http_port()}", raise_on_unexpected_status=True
        )
        self.client = api
        self.addCleanup(api.get_httpx_client().close)

    def put(self, tube, **fields):
        job = put_job.sync(tube, client=self.client, body=models.NewJob(**fields))
        self.assertIsInstance(job, models.Job, job)
        return job

    def reserve(self, tube, **fields):
        reply = reserve.sync(tube, client=self.client, body=models.Reserve(**fields))
        return reply.jobs

    def test_a_job_is_put_leased_extended_and_acknowledged(self):
        put = self.put("mail", body="hello", ttr="30s", key="order-17")
        (job,) = self.reserve("mail", worker="generated", wait="5s")
        self.assertEqual((job.id, job.body, job.key), (put.id, "hello", "order-17"))
        again = extend.sync(job.lease, client=self.client, body=models.Extend(lease="60s"))
        self.assertFalse(again.cancel_requested)
        self.assertEqual(ack.sync_detailed(job.lease, client=self.client).status_code, 204)
        gone = get_job.sync(put.id, client=self.client)
        self.assertIsInstance(gone, models.Problem)
        self.assertEqual(gone.status, 404)

    def test_a_failed_attempt_is_told_with_its_error(self):
        put = self.put(
            "mail",
            body="x",
            retry=models.Retry(
                max_attempts=3,
                backoff=models.Backoff(type_=models.BackoffType.FIXED, initial="1h"),
            ),
        )
        (job,) = self.reserve("mail")
        ended = nack.sync(job.lease, client=self.client, body=models.Nack(error="no route"))
        self.assertEqual(ended.state, models.NackedState.DELAYED)
        told = get_job.sync(put.id, client=self.client)
        self.assertEqual([attempt.error for attempt in told.attempts], ["no route"])

    def test_a_list_goes_in_pages(self):
        for _ in range(5):
            self.put("later", body="x", delay="1h")
        ids, token = [], None
        while True:
            more = {"page_token": token} if token else {}
            page = list_jobs.sync("later", client=self.client, page_size=2, **more)
            ids += [job.id for job in page.jobs]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(ids, [1, 2, 3, 4, 5])

    def test_a_schedule_tells_its_next_times(self):
        schedule = put_schedule.sync(
            "report",
            client=self.client,
            body=models.NewSchedule(
                cron="30 2 * * *",
                time_zone="Europe/Berlin",
                job=models.ScheduledJob(tube="reports", body="sales"),
            ),
        )
        self.assertIsInstance(schedule, models.Schedule, schedule)
        self.assertEqual(get_schedule.sync("report", client=self.client).cron, "30 2 * * *")

    def test_a_wrong_field_is_a_problem_that_names_it(self):
        problem = put_job.sync("mail", client=self.client, body=models.NewJob(body="x", delay="30"))
        self.assertIsInstance(problem, models.Problem)
        self.assertEqual(problem.errors[0].pointer, "/delay")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        interpreter, generated = generate(sys.argv[1])
        os.environ["PYTHONPATH"] = str(generated)
        os.execv(interpreter, [str(interpreter), "-B", __file__])
    import carillon_client
    from carillon_client import models
    from carillon_client.api.jobs import get_job, list_jobs, put_job
    from carillon_client.api.leases import ack, extend, nack, reserve
    from carillon_client.api.schedules import get_schedule, put_schedule

    unittest.main()
