"""Tests of clients/python/carillon_kombu.py: real Celery workers on a real server.

celery_test.py FOLDER-OF-THE-CLIENTS [TEST ...]
"""

import datetime
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from celery_case import FOLDER, HERE, PATIENCE, Case, Worker, until
from celery_case import carillon_kombu, celery_app, daemon, kombu

import side_by_side  # noqa: E402  (celery_case has made it known)


class TasksTest(Case):
    """What one worker does with tasks."""

    def test_a_task_with_a_countdown_runs_once_and_not_early(self):
        Worker(self)
        put = time.time()
        celery_app.tell.apply_async(("soon",), countdown=1.5)
        celery_app.tell.delay("now")
        ((_, now, _),) = self.wait_for("now")
        ((_, ran, _),) = self.wait_for("soon")
        self.assertGreaterEqual(float(ran), put + 1.5)
        self.assertLess(float(now), float(ran))
        self.wait_until_empty()
        time.sleep(0.5)
        self.assertEqual(len(self.notes("soon")), 1)

    def test_a_far_eta_waits_in_the_server_and_not_in_the_worker(self):
        worker = Worker(self)
        eta = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)
        task = celery_app.tell.apply_async(("far",), eta=eta)
        celery_app.tell.delay("near")
        self.wait_for("near")
        until(lambda: len(self.jobs()) == 1, "the near task is done")
        (job,) = self.jobs()
        self.assertEqual(job["state"], "delayed")
        due = datetime.datetime.fromisoformat(job["due"].replace("Z", "+00:00"))
        self.assertGreaterEqual(due, eta)
        self.assertLess(due, eta + datetime.timedelta(milliseconds=2))
        self.assertNotIn("reserves", job)
        self.assertNotIn(task.id, worker.log.read_text())
        self.assertEqual(carillon_kombu.revoke(self.app, task.id), 1)
        self.assertEqual(self.jobs(), [])
        self.assertEqual(carillon_kombu.revoke(self.app, task.id), 0)

    def test_a_naive_eta_is_utc_and_a_past_one_runs_at_once_without_it(self):
        Worker(self)
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
        celery_app.show_eta.apply_async(("past",), eta=now - datetime.timedelta(hours=1))
        ((text, _, _),) = self.wait_for("past")
        self.assertTrue(text.startswith("past-None-"), text)
        self.assertNotEqual(text, "past-None-None")

    def test_retries_and_rejects(self):
        Worker(self)
        celery_app.fail_twice.delay("fails")
        celery_app.once_more.delay("rejected")
        celery_app.refuse.delay("refused")
        notes = self.wait_for("fails", 3)
        self.assertEqual([text for text, _, _ in notes], ["fails-0", "fails-1", "fails-2"])
        self.assertGreaterEqual(float(notes[2][1]) - float(notes[0][1]), 1.0)
        notes = self.wait_for("rejected", 2)
        self.assertEqual([text for text, _, _ in notes], ["rejected-first", "rejected-again"])
        until(lambda: [job["state"] for job in self.jobs()] == ["buried"], "one job is buried")
        self.assertEqual(len(self.notes("refused")), 1)

    def test_remote_control_reaches_the_worker(self):
        Worker(self)
        inspect = self.app.control.inspect(timeout=PATIENCE, limit=1)
        self.assertEqual([list(pong.values()) for pong in inspect.ping().values()], [["pong"]])
        task = celery_app.work.delay("long", 600)
        self.wait_for("begin-long")
        (active,) = self.app.control.inspect(timeout=PATIENCE, limit=1).active().values()
        self.assertEqual([fields["id"] for fields in active], [task.id])
        self.app.control.revoke(task.id, terminate=True, signal="SIGKILL")
        self.wait_until_empty()
        self.assertEqual(self.notes("end-long"), [])

    def test_purge_and_stop(self):
        worker = Worker(self)
        for number in range(2):
            celery_app.work.delay(f"slow{number}", 1)
        self.wait_for("begin-slow", 2)
        for number in range(20):
            celery_app.tell.apply_async((f"never{number}",), countdown=3600)
        self.assertEqual(self.app.control.purge(), 20)
        worker.stop()  # lets both tasks end
        self.assertEqual(len(self.notes("end-slow")), 2)
        self.assertEqual(self.jobs(), [])


class FaultsTest(Case):
    def test_a_ttr_shorter_than_the_task_does_not_double_it(self):
        self.app.conf.broker_transport_options["ttr"] = 2
        self.addCleanup(self.app.conf.broker_transport_options.update, ttr=60)
        Worker(self)
        Worker(self)
        celery_app.work.delay("long", 6)
        self.wait_for("end-long")
        self.wait_until_empty()
        self.assertEqual(len(self.notes("begin-long")), 1)

    def test_the_task_of_a_killed_worker_runs_again_once(self):
        first = Worker(self)
        celery_app.work.delay("task", 2)
        self.wait_for("begin-task")
        first.kill()
        killed = time.time()
        second = Worker(self)
        notes = self.wait_for("end-task")
        self.wait_until_empty()
        self.assertGreater(float(notes[0][1]), killed)
        self.assertEqual(len(self.notes("begin-task")), 2)
        self.assertEqual(len(self.notes("end-task")), 1)
        self.assertIsNone(second.process.poll())

    def test_a_cold_stop_gives_tasks_back_at_once(self):
        worker = Worker(self)
        celery_app.work.delay("running", 600)
        celery_app.work.delay("running", 600)
        self.wait_for("begin-running", 2)
        worker.process.send_signal(signal.SIGQUIT)
        worker.process.wait(PATIENCE)
        until(lambda: [job["state"] for job in self.jobs()] == ["ready"] * 2, "both are ready")

    def test_a_restart_of_the_server_is_not_noticed(self):
        workers = [Worker(self), Worker(self)]
        for number in range(6):  # four of them run at once; two are prefetched, or wait
            celery_app.work.delay(f"task{number}", 3)
        for number in range(5):
            celery_app.tell.apply_async((f"later{number}",), countdown=4)
        self.wait_for("begin-task", 4)
        self.server.terminate()
        time.sleep(1)
        self.server.start_again()
        self.wait_for("later", 5)
        self.wait_for("end-task", 6)
        self.wait_until_empty()
        for name in ["begin-task", "end-task", "later"]:
            texts = [text for text, _, _ in self.notes(name)]
            self.assertEqual(len(texts), len(set(texts)), texts)
        for worker in workers:
            self.assertNotIn("lost, it may be run twice", worker.log.read_text())
        celery_app.tell.delay("after")  # the app's own connection was cut
        self.wait_for("after")

    def test_a_server_that_is_killed_loses_no_task(self):
        Worker(self)
        for number in range(4):
            celery_app.work.delay(f"task{number}", 1)
        self.wait_for("begin-task", 1)
        self.server.kill()
        self.server.start_again()
        self.wait_for("end-task", 4)
        self.wait_until_empty()
        self.assertEqual(len(self.notes("end-task")), 4)

    def test_a_blocking_pool_works_and_keeps_its_job(self):
        """The solo pool runs tasks in the thread that would drain events."""
        self.app.conf.broker_transport_options["ttr"] = 1
        self.addCleanup(self.app.conf.broker_transport_options.update, ttr=60)
        Worker(self, "--pool=solo")
        celery_app.work.delay("long", 3)
        celery_app.tell.delay("next")
        self.wait_for("next")
        self.wait_until_empty()
        self.assertEqual(len(self.notes("begin-long")), 1)

    def test_a_task_that_kills_its_workers_is_buried_in_the_end(self):
        self.client.set_tube("celery", retry={"max_attempts": 2, "lost_fails": True})
        for attempt in range(2):
            worker = Worker(self)
            if attempt == 0:
                celery_app.work.delay("poison", 600)
            self.wait_for("begin-poison", attempt + 1)
            worker.kill()
        until(lambda: [job["state"] for job in self.jobs()] == ["dead"], "it is dead")

    def test_a_publish_while_the_server_is_away(self):
        celery_app.tell.delay("before")
        self.server.terminate()
        with self.assertRaises(kombu.exceptions.OperationalError):
            celery_app.tell.delay("lost")
        self.server.start_again()
        celery_app.tell.delay("after")
        self.assertEqual(len(self.jobs()), 2)


class GuideTest(Case):
    """The commands of docs/celery.md, one after the other."""

    def test_five_minutes(self):
        page = (HERE.parent.parent / "docs" / "celery.md").read_text(encoding="utf-8")
        mark = re.escape("<!-- not run: the test clients.celery runs it -->")
        blocks = re.findall(mark + r"\n```sh\n(.*?)^```$", page, re.M | re.S)
        tasks, worker, put, look, purge = blocks
        binaries = Path(self.folder) / "bin"
        binaries.mkdir()
        (binaries / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (binaries / "python3").chmod(0o755)
        (binaries / "carillon").symlink_to(os.environ["CARILLON_BIN"])
        environment = {
            **os.environ,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PYTHONPATH": FOLDER,
            "CARILLON_SERVER": f"{daemon.HOST}:{self.server.port}",
        }

        def command(text):
            text = text.replace("11300", str(self.server.port))
            return dict(args=["bash", "-euc", text], cwd=self.folder, env=environment)

        def output_of(text):
            done = subprocess.run(**command(text), check=True, capture_output=True, text=True)
            return done.stdout

        output_of(tasks)
        log = Path(self.folder) / "log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                **command("exec " + worker), stdout=file, stderr=subprocess.STDOUT
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        output_of(put)
        until(lambda: "remind Ada" in log.read_text(), "the worker reminds Ada")
        until(lambda: len(self.jobs()) == 1, "one task is left")
        self.assertIn("delayed", output_of(look))
        self.assertIn("1 message", output_of(purge))
        self.assertEqual(self.jobs(), [])
        self.assertNotIn("Grace", log.read_text())


if __name__ == "__main__":
    side_by_side.main(4)
