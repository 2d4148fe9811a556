"""The ledger objects to a server that breaks a promise: one promise in each test. It accepts a
server that keeps them all."""

import unittest

from ledger import BURIED, GONE, READY, Ids, Ledger, Violation, waiting_until

_S = 1_000_000_000


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ids = Ids()
        self.ledger = Ledger(self.ids)

    def put(self, token: bytes = b"a", due: int = 0, job_id: int = 1):
        job = self.ledger.put_sent(token, token + b" body", due)
        self.ledger.put_acknowledged(job, job_id)
        return job

    def hold(self, now: int = 0, **how):
        job = self.put(**how)
        return self.ledger.delivered(job.id, job.body, now)

    def do(self, job, command: str, leads_to) -> None:
        self.ledger.sent(job, command, leads_to)
        self.ledger.acknowledged(job)

    def objects(self, message: str):
        return self.assertRaisesRegex(Violation, message)

    def test_an_honest_history(self):
        ledger = self.ledger
        job = self.hold(now=5 * _S, due=5 * _S)
        self.do(job, "release", waiting_until(9 * _S))
        ledger.crashed()
        ledger.seen(job, "delayed", job.body, 6 * _S)
        ledger.delivered(1, b"a body", 9 * _S)
        self.do(job, "bury", BURIED)
        ledger.crashed()
        ledger.seen(job, "buried", job.body, 10 * _S)
        self.do(job, "kick-job", READY)
        ledger.delivered(1, b"a body", 10 * _S)
        self.do(job, "delete", GONE)
        ledger.crashed()
        ledger.seen(job, "gone", None, 11 * _S)
        self.assertEqual(ledger.missing(20 * _S), [])

    def test_a_lost_job(self):
        job = self.put()
        self.ledger.crashed()
        with self.objects("gone where it must be waiting"):
            self.ledger.seen(job, "gone", None, 1)

    def test_a_job_that_is_never_handed_out(self):
        job = self.put(due=5)
        self.assertEqual(self.ledger.missing(4), [])
        self.assertEqual(self.ledger.missing(5), [job])

    def test_an_early_job(self):
        self.put(due=2 * _S)
        with self.objects("handed out 0.001 ms early"):
            self.ledger.delivered(1, b"a body", 2 * _S - 1000)

    def test_a_job_early_after_a_crash(self):
        job = self.put(due=2 * _S)
        self.ledger.crashed()
        with self.objects("ready where it must be waiting until 2000000000"):
            self.ledger.seen(job, "ready", None, 2 * _S - 1)

    def test_a_release_whose_delay_is_cut_short(self):
        job = self.hold()
        self.do(job, "release", waiting_until(3 * _S))
        self.ledger.crashed()
        with self.objects("early"):
            self.ledger.delivered(1, b"a body", 2 * _S)

    def test_a_deleted_job_that_is_handed_out(self):
        job = self.hold()
        self.do(job, "delete", GONE)
        self.ledger.crashed()
        with self.objects("handed out although gone"):
            self.ledger.delivered(1, b"a body", 1)

    def test_a_deleted_job_that_is_seen(self):
        job = self.put()
        self.do(job, "delete", GONE)
        self.ledger.crashed()
        with self.objects("ready where it must be gone"):
            self.ledger.seen(job, "ready", None, 1)

    def test_a_job_found_gone_that_comes_back(self):
        job = self.ledger.put_sent(b"a", b"a body", 0)
        self.ledger.crashed()
        job.id = 1
        self.ledger.seen(job, "gone", None, 1)
        with self.objects("handed out although gone"):
            self.ledger.delivered(1, b"a body", 2)

    def test_a_buried_job_that_is_handed_out(self):
        job = self.hold()
        self.do(job, "bury", BURIED)
        self.ledger.crashed()
        with self.objects("handed out although buried"):
            self.ledger.delivered(1, b"a body", 1)

    def test_a_job_handed_out_twice(self):
        self.hold()
        with self.objects("handed out although reserved"):
            self.ledger.delivered(1, b"a body", 1)

    def test_a_job_that_is_reserved_after_a_crash(self):
        job = self.hold()
        self.ledger.crashed()
        with self.objects("reserved where it must be waiting"):
            self.ledger.seen(job, "reserved", None, 1)

    def test_a_changed_body(self):
        job = self.put()
        with self.objects("the body is"):
            self.ledger.delivered(1, b"a bodY", 1)
        with self.objects("the body is"):
            self.ledger.seen(job, "ready", b"a bod", 1)

    def test_an_id_used_again(self):
        self.put(b"a", job_id=7)
        other = Ledger(self.ids)  # another client, the same server
        job = other.put_sent(b"b", b"b body", 0)
        with self.objects("id 7 was given to a and to b"):
            other.put_acknowledged(job, 7)

    def test_a_job_under_another_id(self):
        self.put(b"a", job_id=7)
        with self.objects("shown as id 8"):
            self.ledger.delivered(8, b"a body", 1)

    def test_a_job_that_nobody_put(self):
        with self.objects("never put"):
            self.ledger.delivered(8, b"x body", 1)

    def test_a_delete_that_finds_nothing(self):
        job = self.hold()
        self.ledger.sent(job, "delete", GONE)
        with self.objects("delete found nothing"):
            self.ledger.refused(job, "delete", 1)

    def test_a_touch_that_finds_nothing(self):
        job = self.hold()
        with self.objects("touch found nothing"):
            self.ledger.refused(job, "touch", 1)

    def test_a_kick_that_finds_nothing(self):
        job = self.hold()
        self.do(job, "bury", BURIED)
        self.ledger.sent(job, "kick-job", READY)
        with self.objects("kick-job found nothing"):
            self.ledger.refused(job, "kick-job", 1)

    def test_what_was_in_flight_may_have_happened_or_not(self):
        for seen in ("gone", "ready"):
            job = self.put(seen.encode(), job_id=len(self.ids) + 1)
            self.ledger.sent(job, "delete", GONE)
            self.ledger.crashed()
            self.ledger.seen(job, seen, None, 1)

    def test_what_may_have_been_deleted_before_a_crash_may_be_gone(self):
        for command in ("delete", "kick-job"):
            job = self.hold(token=command.encode(), job_id=len(self.ids) + 1)
            self.ledger.sent(job, "delete", GONE)
            self.ledger.crashed()
            self.ledger.sent(job, command, GONE if command == "delete" else READY)
            self.ledger.refused(job, command, 1)

    def test_what_was_in_flight_cannot_have_done_anything_else(self):
        job = self.hold()
        self.ledger.sent(job, "bury", BURIED)
        self.ledger.crashed()
        with self.objects("gone where it must be buried or waiting"):
            self.ledger.seen(job, "gone", None, 1)


if __name__ == "__main__":
    unittest.main()
