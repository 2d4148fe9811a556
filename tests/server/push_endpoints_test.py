"""Endpoints as an operator sees them: secrets, pauses, tests, and what is refused."""

import concurrent.futures
import json
import os
import socket
import stat
import threading
import time
import unittest

import daemon
from push_case import SECRET, PushCase, parse_time, verify
from receiver import always, answer

ONE = "/v1/endpoints/e"


class EndpointsTest(PushCase):
    def test_a_secret_is_made_and_told_once(self):
        receiver = self.receive(always(answer(200)))
        wanted = {"url": f"http://{daemon.HOST}:{receiver.port}/", "tube": "t"}
        secret = self.ask("PUT", ONE, wanted)[1]["secret"]
        self.assertNotIn("secret", self.ask("PUT", ONE, wanted)[1])
        self.gone(self.put())
        self.assertTrue(verify(*receiver.requests[0][1:], secret))

    def test_secrets_lie_in_a_directory_that_no_other_user_may_enter(self):
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver)
        self.assertEqual(stat.S_IMODE(os.stat(self.data).st_mode), 0o700)
        self.assertNotIn(SECRET[6:], self.server.log())

    def test_after_a_rotation_both_secrets_sign_until_the_old_one_is_over(self):
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver)
        status, told = self.ask("POST", f"{ONE}:rotate", {"overlap": "1h"})
        self.assertEqual((status, len(told["secrets"])), (200, 2))
        self.assertNotIn("until", told["secrets"][0])
        until = parse_time(told["secrets"][1]["until"])
        self.assertAlmostEqual(until, time.time() + 3600, delta=60)
        new = told["secret"]
        self.gone(self.put())
        headers = receiver.requests[0][1]
        self.assertEqual(len(headers["webhook-signature"].split(" ")), 2)
        for secret in (SECRET, new):
            self.assertTrue(verify(*receiver.requests[0][1:], secret), secret)

        newest = self.ask("POST", f"{ONE}:rotate", {"overlap": "0s"})[1]["secret"]
        self.assertEqual(len({SECRET, new, newest}), 3)
        self.server.kill()
        self.serve(*self.options)
        self.assertEqual(len(self.ask("GET", ONE)[1]["secrets"]), 1)
        self.gone(self.put())
        self.assertTrue(verify(*receiver.requests[1][1:], newest))
        self.assertFalse(verify(*receiver.requests[1][1:], new))

    def test_a_pause_holds_over_restarts_and_a_put(self):
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver)
        self.assertEqual(self.ask("POST", f"{ONE}:pause")[1]["state"], "paused")
        job = self.put()
        self.server.kill()
        self.serve(*self.options)
        self.assertEqual(self.endpoint(receiver)["state"], "paused")
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}")[1]["state"], "ready")
        self.assertEqual(receiver.requests, [])
        self.assertEqual(self.ask("POST", f"{ONE}:resume")[1]["state"], "enabled")
        self.gone(job)
        log = self.server.log()
        for line in (
            "endpoint:put e: changed: the jobs of t go to 127.0.0.1",
            "endpoint:resume e:",
        ):
            self.assertIn(line, log)

    def test_a_test_tells_what_the_endpoint_answers(self):
        answers = {
            1: answer(204),
            2: answer(500, b"oh\n"),
            3: answer(410),
            4: answer(302, b"", "Location: /elsewhere"),
        }
        receiver = self.receive(lambda client, number: client.sendall(answers[number]))
        self.endpoint(receiver, format="cloudevents")
        self.ask("POST", f"{ONE}:pause")
        told = [self.ask("POST", f"{ONE}:test") for _ in answers]
        self.assertEqual([one[1].get("status") for one in told], [204, 500, 410, 302])
        self.assertEqual(told[1][1]["answer"], "oh\n")
        self.assertEqual(self.ask("GET", ONE)[1]["state"], "paused")
        for _, headers, body in receiver.requests:
            self.assertTrue(verify(headers, body, SECRET))
            self.assertEqual(
                (json.loads(body), headers["ce-type"]), ({"test": "e"}, "carillon.test")
            )
        receiver.close()

    def test_tests_are_bounded_and_end_with_their_time(self):
        held = threading.Event()
        self.addCleanup(held.set)
        receiver = self.receive(lambda client, number: held.wait(60))
        self.endpoint(receiver, timeout="2s")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            tests = [pool.submit(self.ask, "POST", f"{ONE}:test") for _ in range(4)]
            self.wait_for(lambda: len(receiver.requests) == 4)
            self.assertEqual(self.ask("POST", f"{ONE}:test")[0], 409)
            for test in tests:
                self.assertIn("no whole answer within 2000 ms", test.result()[1]["error"])
        self.assertEqual(self.ask("GET", ONE)[0], 200)

    def test_a_server_stops_while_an_endpoint_is_tested(self):
        held = threading.Event()
        self.addCleanup(held.set)
        receiver = self.receive(lambda client, number: held.wait(60))
        self.endpoint(receiver, timeout="1m")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            test = pool.submit(self.ask, "POST", f"{ONE}:test")
            self.wait_for(lambda: len(receiver.requests) == 1)
            self.assertEqual(self.server.terminate(), 0)
            self.assertEqual(test.result()[0], 503)

    def test_410_disables_the_endpoint_over_restarts_until_it_is_resumed(self):
        receiver = self.receive(
            lambda client, number: client.sendall(answer(410 if number == 1 else 200))
        )
        # The largest that may be: 8 KiB in its secret of 32 bytes and its texts.
        texts = f"http://{daemon.HOST}:{receiver.port}/hook" + "t" + "a"
        self.endpoint(receiver, headers={"a": "x" * (8192 - 32 - len(texts))})
        job = self.put()
        state = lambda: self.ask("GET", ONE)[1]["state"]
        self.wait_for(lambda: state() == "disabled")
        self.server.kill()
        self.serve(*self.options)
        self.assertEqual(state(), "disabled")
        self.assertEqual(self.ask("GET", f"/v1/jobs/{job}")[1]["state"], "ready")
        self.assertEqual(self.ask("POST", f"{ONE}:resume")[0], 200)
        self.gone(job)

    def test_a_rest_ends_when_the_endpoint_is_resumed(self):
        receiver = self.receive(
            lambda client, number: client.sendall(
                answer(503, b"", "Retry-After: 3600") if number == 1 else answer(200)
            )
        )
        self.endpoint(receiver)
        job = self.put()
        self.wait_for(lambda: self.ask("GET", ONE)[1]["state"] == "resting")
        self.assertEqual(self.ask("POST", f"{ONE}:resume")[1]["state"], "enabled")
        self.gone(job)

    def test_an_answer_to_what_the_endpoint_was_before_changes_nothing_for_it(self):
        for late in (answer(410), answer(429, b"", "Retry-After: 3600")):
            held = threading.Event()
            self.addCleanup(held.set)
            before = self.receive(lambda client, number: held.wait(60) and client.sendall(late))
            self.endpoint(before)
            job = self.put()
            self.wait_for(lambda: len(before.requests) == 1)
            self.endpoint(self.receive(always(answer(200))))
            held.set()
            self.gone(job)
            self.assertEqual(self.ask("GET", ONE)[1]["state"], "enabled")

    def test_a_job_never_goes_to_what_the_endpoint_is_changed_to_for_another_tube(self):
        receiver = self.receive(always(answer(200)))
        self.endpoint(receiver)
        self.gone(self.put())
        other = self.receive(always(answer(200)))
        wanted = {"url": f"http://{daemon.HOST}:{other.port}/", "tube": "u"}
        text = b""
        for method, path, fields in (
            ("POST", "/v1/tubes/t/jobs", {"body": "of t"}),  # goes out, and is not durable yet
            ("PUT", ONE, wanted),
            ("POST", "/v1/tubes/u/jobs", {"body": "of u"}),
        ):
            body = json.dumps(fields).encode()
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
            text += head.encode() + b"\r\nContent-Type: application/json\r\n\r\n" + body
        with socket.create_connection((daemon.HOST, self.port)) as client:
            client.sendall(text)
            self.wait_for(lambda: len(other.requests) > 0)
            self.wait_for(lambda: self.ask("GET", "/v1/tubes/t")[1]["jobs"]["ready"] == 1)
        self.assertEqual([body for _, _, body in other.requests], [b"of u"])


if __name__ == "__main__":
    unittest.main()
