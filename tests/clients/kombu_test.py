"""Tests of clients/python/carillon_kombu.py without Celery: Kombu on a real server.

kombu_test.py FOLDER-OF-THE-CLIENTS [TEST ...]
"""

import datetime
import os
import subprocess
import time
import unittest

from celery_case import PATIENCE, Case, carillon, daemon, kombu, until
from certificates import Authority


class KombuTest(Case):
    """The transport without Celery."""

    def setUp(self):
        super().setUp()
        self.connection = self.a_connection()
        self.channel = self.connection.channel()
        self.queue = self.a_queue("mail", durable=True)

    def a_connection(self):
        connection = kombu.Connection(self.url, transport_options={"max_unacked": 3})
        self.addCleanup(connection.close)
        return connection

    def a_queue(self, name, exchange="", channel=None, **options):
        exchange = exchange or kombu.Exchange("mail", durable=True)
        queue = kombu.Queue(name, exchange, routing_key=options.pop("key", name), **options)
        queue = queue(channel or self.channel)
        queue.declare()
        return queue

    def publish(self, body, key="mail", exchange="mail", **options):
        kombu.Producer(self.channel).publish(body, exchange=exchange, routing_key=key, **options)

    def get(self, queue=None, **options):
        message = (queue or self.queue).get(**options)
        return message and message.payload

    def test_priorities_as_those_of_rabbitmq(self):
        for body, priority in [("none", None), ("low", 1), ("high", 9), ("higher", 200)]:
            self.publish(body, priority=priority)
        found = [self.get(no_ack=True) for _ in range(5)]
        self.assertEqual(found, ["higher", "high", "low", "none", None])

    def test_acks_rejects_and_counts(self):
        for body in ["a", "b", "c"]:
            self.publish(body)
        self.assertEqual(self.queue.queue_declare(passive=True).message_count, 3)
        first, second, third = [self.queue.get() for _ in range(3)]
        self.assertIsNone(self.queue.get())
        first.ack()
        second.reject()
        third.requeue()
        again = self.queue.get()
        self.assertEqual((again.payload, again.delivery_info["redelivered"]), ("c", True))
        self.channel.basic_recover(requeue=True)
        self.assertEqual(self.get(no_ack=True), "c")
        self.assertEqual(
            [job["state"] for job in self.client.list_jobs("mail")], ["buried"], "what was rejected"
        )

    def test_a_publish_that_is_repeated_puts_one_message(self):
        properties = {"correlation_id": "7"}
        for _ in range(2):  # as Kombu does when it got no answer: the same properties
            message = self.channel.prepare_message("{}", properties=properties)
            self.channel.basic_publish(message, "mail", "mail")
        self.publish({}, correlation_id="7")
        self.assertEqual(self.queue.queue_declare(passive=True).message_count, 2)

    def test_no_more_than_the_prefetch_count_is_taken(self):
        for number in range(6):
            self.publish(number)
        got = []
        with kombu.Consumer(self.channel, [self.queue], prefetch_count=2) as consumer:
            consumer.register_callback(lambda body, message: got.append(message))
            while len(got) < 2:
                self.connection.drain_events(timeout=PATIENCE)
            with self.assertRaises(TimeoutError):
                self.connection.drain_events(timeout=0.3)
            got[0].ack()
            self.connection.drain_events(timeout=PATIENCE)
            consumer.qos(prefetch_count=0)  # max_unacked holds then
            self.connection.drain_events(timeout=PATIENCE)
            self.assertEqual([message.payload for message in got], [0, 1, 2, 3])
        self.connection.close()  # gives back what was not acknowledged
        (states,) = {tuple(job["state"] for job in self.client.list_jobs("mail"))}
        self.assertEqual(states, ("ready",) * 5)

    def test_several_queues_and_a_cancel_while_waiting(self):
        other = self.a_queue("other")
        got = []
        consumer = kombu.Consumer(self.channel, [self.queue, other], no_ack=True)
        consumer.register_callback(lambda body, message: got.append(body))
        consumer.consume()
        with self.assertRaises(TimeoutError):
            self.connection.drain_events(timeout=0.2)
        self.publish("to mail")
        self.publish("to other", key="other")
        while len(got) < 2:
            self.connection.drain_events(timeout=PATIENCE)
        self.assertEqual(sorted(got), ["to mail", "to other"])
        consumer.cancel_by_queue("mail")
        self.publish("stays")
        self.publish("comes", key="other")
        self.connection.drain_events(timeout=PATIENCE)
        self.assertEqual(got[2:], ["comes"])
        self.assertEqual(self.get(no_ack=True), "stays")

    def test_a_fanout_and_a_topic_reach_queues_of_other_processes(self):
        far = self.a_connection().channel()
        news, logs = kombu.Exchange("news", type="fanout"), kombu.Exchange("logs", type="topic")
        one = self.a_queue("one", news, far, auto_delete=True)
        two = self.a_queue("två@host", news, far, exclusive=True)
        errors = self.a_queue("errors", logs, far, key="*.error")
        for exchange in (news, logs):
            exchange(self.channel).declare()
        self.publish("hello", exchange="news")
        self.assertEqual([self.get(queue, no_ack=True) for queue in (one, two)], ["hello"] * 2)
        self.publish("bad", exchange="logs", key="db.error")
        self.publish("good", exchange="logs", key="db.info")
        self.assertEqual([self.get(errors, no_ack=True) for _ in range(2)], ["bad", None])
        one.delete()
        self.publish("again", exchange="news")
        self.assertEqual([self.get(queue, no_ack=True) for queue in (one, two)], [None, "again"])

    def test_bytes_large_and_expiring_messages(self):
        self.publish(b"\x00\xff" * 100, content_type="application/data", content_encoding="binary")
        self.assertEqual(self.get(no_ack=True), b"\x00\xff" * 100)
        with self.assertRaises(carillon.Refused) as refused:
            self.publish("x" * 70_000)
        self.assertEqual(refused.exception.word, "JOB_TOO_BIG")
        self.publish("short-lived", expiration=0.2)
        self.publish("lives")
        time.sleep(0.3)
        self.assertEqual([self.get(no_ack=True) for _ in range(2)], ["lives", None])

    def test_a_message_with_an_eta_lives_from_then_on(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        for later in (datetime.timedelta(hours=1), datetime.timedelta(hours=-1)):
            eta = now + later
            self.publish("x", headers={"eta": eta.isoformat()}, expiration=60)
            job = max(self.client.list_jobs("mail"), key=lambda one: one["id"])
            ends = datetime.datetime.fromisoformat(job["expires_at"].replace("Z", "+00:00"))
            from_eta = (ends - max(eta, now)).total_seconds()
            self.assertGreaterEqual(from_eta, 59.9)
            self.assertLess(from_eta, 60 + PATIENCE)

    def test_a_job_that_is_no_message_is_buried(self):
        self.client.use("mail")
        for body in ["hello", "{}", "[1]", b"\xff"]:
            self.client.put(body)
        self.publish("a message")
        self.assertEqual([self.get(no_ack=True) for _ in range(5)], [None] * 4 + ["a message"])
        self.assertEqual(self.client.stats_tube("mail")["current-jobs-buried"], 4)

    def test_the_path_of_the_url_is_a_prefix(self):
        with kombu.Connection(f"{self.url}/shop") as connection:
            connection.SimpleQueue("mail").put("hello")
            self.assertEqual(connection.SimpleQueue("mail").get(timeout=PATIENCE).payload, "hello")
        self.assertIn("shop.mail", self.client.tubes())

    def test_a_server_that_is_not_there(self):
        with kombu.Connection(f"carillon://{daemon.HOST}:{daemon.free_port()}") as connection:
            with self.assertRaises(connection.connection_errors):
                connection.connect()

    def test_a_child_of_a_fork_leaves_the_connections_alone(self):
        self.publish("hello")
        message = self.queue.get()
        child = os.fork()
        if child == 0:
            self.channel.close()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.client.stats_tube("mail")["current-jobs-reserved"], 1)
        message.ack()
        until(lambda: not list(self.client.list_jobs("mail")), "it was acknowledged")


class SecuredTest(Case):
    """A server with tokens and TLS."""

    def setUp(self):
        super().setUp()
        authority = Authority(self.folder)
        certificate, key = authority.sign("server")
        tokens = os.path.join(self.folder, "tokens")
        made = subprocess.run(
            [daemon.carillon_path(), "token", "new", "--name", "celery", "--file", tokens]
            + ["--scope", "read,put,work"],
            check=True,
            capture_output=True,
            text=True,
        )
        self.token, self.ca = made.stdout.strip(), authority.file
        secured = daemon.carillon_serve(
            f"{self.folder}/secured",
            *["--tokens", tokens, "--tls-cert", certificate, "--tls-key", key],
        )
        self.port = secured.start().port
        self.addCleanup(secured.__exit__)

    def exchange(self, url, **options):
        with kombu.Connection(url, **options) as connection:
            queue = connection.SimpleQueue("mail")
            queue.put("hello")
            message = queue.get(timeout=PATIENCE)
            message.ack()
            queue.close()
            return message.payload

    def test_the_url_the_options_and_broker_use_ssl_name_token_and_certificates(self):
        at = f"127.0.0.1:{self.port}"
        url = f"carillons://:{self.token}@{at}"
        self.assertEqual(self.exchange(url, transport_options={"tls": self.ca}), "hello")
        url = f"carillon://:{self.token}@{at}"
        self.assertEqual(self.exchange(url, ssl={"ca_certs": self.ca}), "hello")
        options = {"token": self.token, "tls": self.ca}
        self.assertEqual(self.exchange(f"carillon://{at}", transport_options=options), "hello")

    def test_what_is_missing_is_told(self):
        url = f"carillons://:{self.token}@127.0.0.1:{self.port}"
        with self.assertRaisesRegex(Exception, "CERTIFICATE_VERIFY_FAILED"):
            self.exchange(url)
        with self.assertRaisesRegex(Exception, "a token is needed"):
            url = f"carillon://127.0.0.1:{self.port}"
            self.exchange(url, transport_options={"tls": self.ca})


if __name__ == "__main__":
    unittest.main(verbosity=2)
