"""The Celery app of celery_test.py. Its tasks write what they do into the file TEST_NOTES."""

import os
import sys
import time

sys.path.insert(0, os.environ["TEST_CLIENTS"])
import carillon_kombu  # noqa: E402, F401
from celery import Celery  # noqa: E402
from celery.exceptions import Reject  # noqa: E402

app = Celery("test", broker=os.environ["TEST_BROKER"])
app.conf.broker_transport_options = {
    "ttr": float(os.environ.get("TEST_TTR", "60")),
    "restart_pause": 1,
}
app.conf.worker_prefetch_multiplier = 1
app.conf.task_ignore_result = True


def note(text):
    # One write, appended: lines of several processes stay whole.
    line = f"{text} {time.time()} {os.getpid()}\n".encode()
    file = os.open(os.environ["TEST_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)


@app.task
def tell(text):
    note(text)


@app.task(acks_late=True)
def work(text, seconds):
    note(f"begin-{text}")
    time.sleep(seconds)
    note(f"end-{text}")


@app.task(bind=True, max_retries=2)
def fail_twice(self, text):
    note(f"{text}-{self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0.5)


@app.task(bind=True, acks_late=True)
def once_more(self, text):
    redelivered = self.request.delivery_info["redelivered"]
    note(f"{text}-{'again' if redelivered else 'first'}")
    if not redelivered:
        raise Reject("once more", requeue=True)


@app.task(acks_late=True)
def refuse(text):
    note(text)
    raise Reject("never", requeue=False)


@app.task(bind=True)
def show_eta(self, text):
    note(f"{text}-{self.request.eta}-{self.request.get('carillon_eta')}")
