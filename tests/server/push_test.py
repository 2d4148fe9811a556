"""Jobs pushed to HTTP endpoints that misbehave in every way: what becomes of each job.
Row Q15 of the product's table."""

import base64
import json
import threading
import time
import unittest

from push_case import SECRET, PushCase, parse_time, verify
from receiver import always, answer


class PushTest(PushCase):
    def test_a_job_is_signed_pushed_and_deleted(self):
        receiver = self.receive(always(answer(204)))
        other = "whsec_" + base64.b64encode(b"x" * 24).decode()
        told = self.endpoint(
            receiver, secrets=[SECRET, other], format="cloudevents", headers={"X-A": "b"}
        )
        self.assertNotIn("secret", told)
        job = self.put('{"a":1}', key="ä%1", content_type="application/json")
        self.gone(job)
        first, headers, body = receiver.requests[0]
        self.assertEqual([first, body], ["POST /hook HTTP/1.1", b'{"a":1}'])
        self.assertTrue(verify(headers, body, SECRET) and verify(headers, body, other))
        self.assertFalse(verify(headers, body + b" ", SECRET))
        self.assertLess(abs(int(headers["webhook-timestamp"]) - time.time()), 5)
        wanted = {
            "webhook-id": f"job_{job}",
            "content-type": "application/json",
            "ce-specversion": "1.0",
            "ce-id": f"job_{job}",
            "ce-source": "/tubes/t",
            "ce-subject": "%C3%A4%251",
            "x-a": "b",
        }
        self.assertEqual({name: headers[name] for name in wanted}, wanted)
        text = json.dumps(self.ask("GET", "/v1/endpoints/e")[1])
        self.assertNotIn(SECRET[6:], text)

    def test_a_delayed_job_is_never_early(self):
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver)
        begin = time.time()
        job = self.put(delay="300ms")
        self.gone(job)
        self.assertGreaterEqual(time.time() - begin, 0.3)

    def test_an_attempt_that_fails_is_told_in_the_story(self):
        never = threading.Event()
        self.addCleanup(never.set)

        def huge_header(client, number):
            client.sendall(b"HTTP/1.1 200 X\r\nA: " + b"x" * 100_000 + b"\r\n\r\n")

        cases = {
            "HTTP 500: oh": always(answer(500, b"oh")),
            "HTTP 301": always(answer(301, b"", "Location: http://127.0.0.1:1/")),
            "HTTP 404": always(answer(404)),
            "no whole answer within 200 ms": lambda client, number: never.wait(60),
            "end of": lambda client, number: False,
            "partial message": lambda client, number: client.sendall(answer(200, b"xy")[:-1])
            or False,
            "bad version": always(b"\x00garbage\r\n\r\n"),
            "header limit": huge_header,
            "(1xx) alone": always(b"HTTP/1.1 102 X\r\n\r\n" * 10),
        }
        for error, behave in cases.items():
            with self.subTest(error):
                time_out = "200ms" if "200 ms" in error else "15s"
                self.endpoint(self.receive(behave), timeout=time_out)
                self.assertIn(error, self.error_of(self.put()))

    def test_an_answer_that_is_no_http_is_told_in_words_alone(self):
        """And not with the place in the sources where it was found."""
        for reply in (b"HTTP/9.9 200 x\r\n\r\n", b"what?\r\n\r\n", b""):
            receiver = self.receive(lambda client, _, said=reply: client.sendall(said) or False)
            self.endpoint(receiver)
            error = self.error_of(self.put())
            self.assertRegex(error, "^[a-z][a-z ]+$")

    def test_no_sign_of_an_answer_is_cut_in_two(self):
        self.endpoint(self.receive(always(answer(500, ("x" + 150 * "\u00e9").encode()))))
        self.assertEqual(self.error_of(self.put()), "HTTP 500: x" + 99 * "\u00e9")

    def test_answers_that_are_a_success(self):
        def endless(client, number):
            client.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 99999999999999\r\n\r\n")
            while True:
                client.sendall(b"x" * 10_000)

        def slowly(client, number):
            for byte in answer(200, b"ok"):
                client.sendall(bytes([byte]))

        chunked = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        cases = [
            endless,
            slowly,
            always(chunked),
            always(b"HTTP/1.1 103 X\r\nA: b\r\n\r\n" + answer(200)),
            lambda client, number: client.sendall(b"HTTP/1.0 200 X\r\n\r\nhi") or False,
        ]
        for behave in cases:
            self.endpoint(self.receive(behave))
            self.gone(self.put())

    def test_a_failed_attempt_is_repeated_with_the_same_id(self):
        receiver = self.receive(
            lambda client, number: client.sendall(answer(500 if number == 1 else 200))
        )
        self.endpoint(receiver)
        self.gone(
            self.put(retry={"max_attempts": 3, "backoff": {"initial": "50ms", "max": "50ms"}})
        )
        ids = [headers["webhook-id"] for _, headers, _ in receiver.requests]
        self.assertEqual([len(ids), len(set(ids))], [2, 1])
        self.assertEqual(receiver.requests[1][1]["carillon-attempt"], "2")

    def test_a_connection_is_kept_and_one_that_was_closed_is_replaced(self):
        kept = self.receive(always(answer(200)))
        self.endpoint(kept)
        for _ in range(3):
            self.gone(self.put())
        self.assertEqual(kept.connections, 1)
        closing = self.receive(lambda client, number: client.sendall(answer(200)) or False)
        self.endpoint(closing)
        for _ in range(3):
            self.gone(self.put())
        self.assertEqual(closing.connections, 3)

    def test_connections_are_kept_until_the_endpoint_is_deleted(self):
        gate = threading.Barrier(20)
        receiver = self.receive(
            lambda client, number: gate.wait(60) < 0 or client.sendall(answer(200))
        )
        self.endpoint(receiver, concurrency=20)
        self.ask("POST", "/v1/tubes/t/jobs:batch", {"jobs": [{"body": "x"}] * 20})
        self.wait_for(lambda: self.ask("GET", "/v1/endpoints/e")[1]["delivered"] == 20)
        self.assertEqual(receiver.open, 20)
        self.ask("DELETE", "/v1/endpoints/e")
        self.wait_for(lambda: receiver.open == 0)

    def test_an_event_in_json_is_signed_as_a_whole(self):
        receiver = self.receive(always(answer(204)))
        self.endpoint(receiver, format="cloudevents-json")
        bodies = {
            ("application/json", b'{"a": [1, "\\u00e4"]}'): {"data": {"a": [1, "ä"]}},
            ("application/vnd.x+json; charset=utf-8", b"1"): {"data": 1},
            ("application/json", b"{no"): {"data_base64": "e25v"},
            ("text/plain", 'a"ä'.encode()): {"data": 'a"ä'},
            ("text/plain", b"\xff"): {"data_base64": "/w=="},
            ("image/png", b"abc"): {"data_base64": "YWJj"},
        }
        for number, ((content_type, body), wanted) in enumerate(bodies.items(), 1):
            fields = {"key": f"ä{number}", "content_type": content_type}
            job = self.put(None, body_base64=base64.b64encode(body).decode(), **fields)
            self.gone(job)
            _, headers, sent = receiver.requests[-1]
            self.assertTrue(verify(headers, sent, SECRET))
            self.assertEqual(headers["content-type"], "application/cloudevents+json; charset=utf-8")
            event = json.loads(sent)
            self.assertLess(abs(parse_time(event.pop("time")) - time.time()), 60)
            self.assertEqual(
                event,
                {
                    "specversion": "1.0",
                    "id": f"job_{job}",
                    "source": "/tubes/t",
                    "type": "carillon.job",
                    "subject": f"ä{number}",
                    "datacontenttype": content_type,
                    **wanted,
                },
            )
            self.assertNotIn("ce-id", headers)

    def test_429_lets_the_endpoint_rest_and_counts_no_attempt(self):
        receiver = self.receive(
            lambda client, number: client.sendall(
                answer(429, b"", "Retry-After: 1") if number == 1 else answer(200)
            )
        )
        self.endpoint(receiver)
        begin = time.time()
        job = self.put()
        self.wait_for(lambda: self.ask("GET", "/v1/endpoints/e")[1]["state"] == "resting")
        self.gone(job)
        self.assertGreaterEqual(time.time() - begin, 0.95)
        self.assertEqual(receiver.requests[1][1]["carillon-attempt"], "1")

    def test_requests_that_are_throttled_together_make_one_rest_of_a_second(self):
        gate = threading.Barrier(10)

        def throttle(client, number):
            if number <= 10:
                gate.wait(60)
            client.sendall(answer(503 if number <= 10 else 200))

        receiver = self.receive(throttle)
        self.endpoint(receiver)
        for _ in range(10):
            self.put()
        shown = lambda: self.ask("GET", "/v1/endpoints/e")[1]
        self.wait_for(lambda: shown()["throttled"] == 10)
        self.wait_for(lambda: shown()["delivered"] == 10)

    def test_pushes_that_hang_leave_memory_for_others(self):
        self.assertEqual(self.server.terminate(), 0)
        self.serve(*self.options, "--memory", "128M", "--max-job-size", "1M")
        held = threading.Event()
        self.addCleanup(held.set)
        receiver = self.receive(lambda client, number: held.wait(60))
        self.endpoint(receiver, concurrency=64, timeout="1m")
        client = self.server.connect()
        client.call(b"use t")
        for number in range(50):
            client.put_ms(b"x" * 1_000_000, delay=2_000 + 20 * number)
        self.wait_for(
            lambda: "memory" in self.ask("GET", "/v1/endpoints/e")[1].get("last_error", "")
        )
        self.wait_for(lambda: len(receiver.requests) > 15)
        status, told = self.ask("POST", "/v1/tubes/other/jobs", b"x" * 200_000)
        self.assertEqual(status, 201, told)

    def test_a_server_that_is_killed_in_an_attempt_pushes_the_job_again(self):
        held = threading.Event()
        receiver = self.receive(
            lambda client, number: held.wait(60) if number == 1 else client.sendall(answer(200))
        )
        self.endpoint(receiver)
        job = self.put()
        self.wait_for(lambda: len(receiver.requests) == 1)
        self.server.kill()
        held.set()
        self.serve(*self.options)
        self.gone(job)
        ids = [headers["webhook-id"] for _, headers, _ in receiver.requests]
        self.assertEqual(ids, [f"job_{job}"] * 2)

    def test_a_server_that_stops_counts_no_failed_attempt(self):
        held = threading.Event()
        self.addCleanup(held.set)
        receiver = self.receive(lambda client, number: held.wait(60))
        self.endpoint(receiver, timeout="1m")
        job = self.put()
        self.wait_for(lambda: len(receiver.requests) == 1)
        self.assertEqual(self.server.terminate(), 0)  # long before the attempt's time is over
        self.serve(*self.options)
        told = self.ask("GET", f"/v1/jobs/{job}")[1]
        self.assertEqual(told.get("attempts", []), [])

    def test_the_number_of_jobs_at_once_is_bounded(self):
        receiver = self.receive(
            lambda client, number: time.sleep(0.02) or client.sendall(answer(200))
        )
        self.endpoint(receiver, concurrency=3)
        jobs = [{"body": str(number)} for number in range(60)]
        self.ask("POST", "/v1/tubes/t/jobs:batch", {"jobs": jobs})
        self.wait_for(lambda: self.ask("GET", "/v1/endpoints/e")[1]["delivered"] == 60)
        self.assertEqual(receiver.most_at_once, 3)
        self.assertEqual(sorted(int(body) for _, _, body in receiver.requests), list(range(60)))
        client = self.client()
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
        for line in (
            'carillon_push_attempts_total{endpoint="e",outcome="delivered"} 60',
            'carillon_push_attempts_total{endpoint="e",outcome="dead"} 0',
            'carillon_push_endpoints{state="enabled"} 1',
            'carillon_push_endpoints{state="disabled"} 0',
            'carillon_push_in_flight{endpoint="e"} 0',
            "carillon_push_duration_seconds_count 60",
        ):
            self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main()
