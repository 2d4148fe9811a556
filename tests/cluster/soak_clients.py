"""The clients of the soak (soak.py), of both protocols. Each tries all nodes in turn, as a client
library does, and enters what it has sent and what was answered into the accounts."""

import datetime
import http.client
import itertools
import json
import random
import threading
import time

from accounts import Accounts, Violation
from nodes import LOST, Cluster, daemon
from wire import Connection

TUBE = "work"
# A node that is stopped answers nothing. The client gives up then, and does not know.
_PATIENCE = 3.0
# So that a list has one page mostly.
_MOST_OWED = 600
_tokens = itertools.count(1)


class _Client(threading.Thread):
    def __init__(self, cluster: Cluster, accounts: Accounts, seed: int, failed):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.accounts = accounts
        self.random = random.Random(seed)
        self.failed = failed  # called with an exception
        self.ending = threading.Event()
        self._at = self.random.randrange(len(cluster.nodes))
        self._connection = None

    def run(self):
        try:
            while not self.ending.is_set():
                self.work()
        except Exception as error:  # pylint: disable=broad-except
            self.failed(error)

    def work(self):
        raise NotImplementedError

    def new_job(self):
        """Returns a job and its delay in ms. Waits for workers, if they have much to do."""
        while self.accounts.owed() > _MOST_OWED and not self.ending.is_set():
            time.sleep(0.01)
        delay = self.random.choice((0, 0, self.random.randrange(2_000)))
        token = f"{next(_tokens)}"
        return self.accounts.put_sent(token, time.time() + delay / 1000), delay

    def hang_up(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def next_node(self):
        self._at = (self._at + 1) % len(self.cluster.nodes)
        time.sleep(0.02)


class Web(_Client):
    """Speaks HTTP, on a connection that it keeps."""

    def ask(self, method, path, fields=None, key=None):
        """Returns the status and the answer. 0: nobody knows what became of it."""
        if self._connection is None:
            port = self.cluster.nodes[self._at].port + daemon.HTTP_BESIDE
            self._connection = http.client.HTTPConnection(daemon.HOST, port, timeout=_PATIENCE)
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = f'"{key}"'
        try:
            body = None if fields is None else json.dumps(fields)
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except LOST as error:
            self.hang_up()
            self.next_node()
            return (503 if isinstance(error, ConnectionRefusedError) else 0), None
        if answer.status == 503:
            self.accounts.counts["refused"] += 1
            self.hang_up()
            self.next_node()
        return answer.status, json.loads(text or "null")

    def ask_until_known(self, method, path, fields=None, key=None):
        """Returns the status, the answer, and whether an earlier try was not answered."""
        unknown = False
        while True:
            status, answer = self.ask(method, path, fields, key)
            unknown = unknown or status == 0
            is_under_way = status == 409 and answer["type"].endswith("in-flight")
            if status not in (0, 503) and not is_under_way:
                return status, answer, unknown
            if self.ending.is_set():
                return 0, None, True
            time.sleep(0.01)


class WebProducer(Web):
    """Puts and cancels, some by keys. A put is repeated until it is answered."""

    def work(self):
        job, delay = self.new_job()
        fields = {"body": job.token, "delay": f"{delay}ms", "ttr": "60s"}
        has_key = self.random.random() < 0.4
        if has_key:
            fields["key"] = "k" + job.token
        path = f"/v1/tubes/{TUBE}/jobs"
        status, answer, _ = self.ask_until_known("POST", path, fields, "put-" + job.token)
        if status == 0:
            return
        if status != 201:
            raise Violation(f"a put was answered {status} {answer}: {job}")
        self.accounts.put_done(job, answer["id"])
        if self.random.random() < 0.3:
            self.cancel(job, f"/v1/tubes/{TUBE}/keys/k{job.token}" if has_key else None)

    def cancel(self, job, path):
        time.sleep(self.random.random() * 0.1)
        self.accounts.end_sent(job, "cancel")
        path = path or f"/v1/jobs/{job.id}"
        status, answer, unknown = self.ask_until_known("DELETE", path)
        if status == 204:
            self.accounts.end_done(job, "cancels")
        elif status == 404:
            self.accounts.missing(job, "not there", unknown)
        elif status == 409 and not unknown:
            self.accounts.end_refused(job, "is reserved")
        elif status not in (0, 409):
            raise Violation(f"a cancel was answered {status} {answer}: {job}")


class WebWorker(Web):
    """Reserves some jobs, and acks, nacks or extends each, or lets its lease run out."""

    def work(self):
        asked = time.time()
        fields = {"wait": "500ms", "max": 3, "lease": f"{self.random.randrange(2, 7)}s"}
        status, answer = self.ask("POST", f"/v1/tubes/{TUBE}:reserve", fields)
        if status in (0, 503):
            return
        if status != 200:
            raise Violation(f"a reserve was answered {status} {answer}")
        for one in answer["jobs"]:
            ends = moment(one["lease_ends"])
            job = self.accounts.handed_out(one["id"], one["body"], asked, one["lease"], ends)
            self.end(job, one["lease"])

    def end(self, job, lease):
        choice = self.random.random()
        if choice < 0.08:
            return  # it runs out
        if choice < 0.2:
            self.accounts.giving_back(job)
            self.ask("POST", f"/v1/leases/{lease}:nack", {})
            return
        if choice < 0.3:
            time.sleep(self.random.random() * 0.5)
            status, answer = self.ask("POST", f"/v1/leases/{lease}:extend", {"lease": "5s"})
            if status == 200:
                self.accounts.extended(job, lease, moment(answer["lease_ends"]))
            elif status == 409:
                self.accounts.refused(job, lease, False)
        self.accounts.end_sent(job, f"ack {lease}")
        status, answer, unknown = self.ask_until_known("POST", f"/v1/leases/{lease}:ack", {})
        if status == 204:
            self.accounts.end_done(job, "acks")
        elif status in (404, 409):
            self.accounts.refused(job, lease, unknown)
            if not unknown:
                self.accounts.end_refused(job, "its lease is over")
        elif status != 0:
            raise Violation(f"an ack was answered {status} {answer}: {job}")


class Lister(Web):
    """Lists all jobs."""

    def work(self):
        self.list()
        self.ending.wait(1.0)

    def list(self):
        """Returns whether all was answered."""
        asked = time.time()
        jobs = []
        token = ""
        pages = 0
        while token is not None:
            path = f"/v1/tubes/{TUBE}/jobs?bodies=true&page_size=1000"
            status, answer = self.ask("GET", path + (token and f"&page_token={token}"))
            if status in (0, 503):
                return False
            if status != 200:
                raise Violation(f"a list was answered {status} {answer}")
            jobs += [(job["id"], job["body"]) for job in answer["jobs"]]
            token = answer["next_page_token"]
            pages += 1
        self.accounts.listed(jobs, asked, pages == 1 or self.ending.is_set())
        return True


class Line(_Client):
    """Speaks the beanstalk protocol."""

    def call(self, line, body=None, timeout=_PATIENCE):
        """Returns the reply. None: nobody knows what became of it, and the connection is closed."""
        try:
            if self._connection is None:
                address = (daemon.HOST, self.cluster.nodes[self._at].port)
                connection = Connection(address, _PATIENCE)
                for command in (f"use {TUBE}", f"watch {TUBE}", "ignore default"):
                    connection.call(command.encode())
                self._connection = connection
            reply = self._connection.call(line, body, timeout)
        except LOST:
            self.leave()
            return None
        if reply.word == b"INTERNAL_ERROR":
            self.accounts.counts["refused"] += 1
            self.leave()
        return reply

    def leave(self):
        self.hang_up()
        self.next_node()


class LineProducer(Line):
    """Puts. One with a key is repeated until it is answered."""

    def work(self):
        job, delay = self.new_job()
        body = job.token.encode()
        command = b"put-ms 0 %d 60000 %d" % (delay, len(body))
        has_key = self.random.random() < 0.4
        if has_key:
            command = b"put-job %d delay=%dms key=k%s key-window=1h" % (len(body), delay, body)
        while not self.ending.is_set():
            reply = self.call(command, body)
            if reply is not None and reply.word in (b"INSERTED", b"EXISTS"):
                return self.accounts.put_done(job, reply.number())
            if reply is not None and reply.word != b"INTERNAL_ERROR":
                raise Violation(f"a put was answered {reply}: {job}")
            if not has_key:
                return None
        return None


class LineWorker(Line):
    """Reserves a job at a time, and deletes it, gives it back, or closes the connection."""

    def work(self):
        asked = time.time()
        reply = self.call(b"reserve-with-timeout-ms 500", timeout=_PATIENCE + 1.0)
        if reply is None or reply.word in (b"TIMED_OUT", b"INTERNAL_ERROR", b"DEADLINE_SOON"):
            return
        if reply.word != b"RESERVED":
            raise Violation(f"a reserve was answered {reply}")
        job = self.accounts.handed_out(reply.number(), reply.body.decode(), asked)
        choice = self.random.random()
        if choice < 0.02:
            return self.leave()
        if choice < 0.12:
            return self.release(job)
        self.accounts.end_sent(job, "delete")
        reply = self.call(b"delete %d" % job.id)
        if reply is None:
            return None
        if reply.word == b"DELETED":
            return self.accounts.end_done(job, "deletes")
        if reply.word == b"INTERNAL_ERROR":
            return None
        raise Violation(f"a delete of a reserved job was answered {reply}: {job}")

    def release(self, job):
        delay = self.random.randrange(1_000)
        due = time.time() + delay / 1000
        self.accounts.giving_back(job)
        reply = self.call(b"release-ms %d 0 %d" % (job.id, delay))
        if reply is None or reply.word == b"INTERNAL_ERROR":
            return
        if reply.word != b"RELEASED":
            raise Violation(f"a release of a reserved job was answered {reply}: {job}")
        self.accounts.given_back(job, due)


def moment(text: str) -> float:
    """A time as the server writes it, in seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def end_all(clients):
    for client in clients:
        client.ending.set()
    for client in clients:
        client.join(30.0)
        client.hang_up()
