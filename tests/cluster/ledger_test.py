"""The soak of a cluster (soak.py) for some seconds, and that its accounts find what is wrong.

CARILLON_SEED and CARILLON_SECONDS say how it runs."""

import time
import unittest

import postgres
import soak
from accounts import Accounts, Violation
from wire import setting

_SECONDS = setting("CARILLON_SECONDS", 20)
_SEED = setting("CARILLON_SEED", 1)


class Soaked(unittest.TestCase):
    @unittest.skipIf(postgres.MISSING, postgres.MISSING)
    def test_nothing_is_lost_or_doubled(self):
        print(f"CARILLON_SEED={_SEED} CARILLON_SECONDS={_SECONDS}", flush=True)
        run = soak.Soak(_SECONDS, _SEED, say=lambda line: print(line, flush=True)).run()
        print(run.figures())
        self.assertGreater(run.accounts.counts["puts"], 10 * _SECONDS, "too little load")
        self.assertGreater(run.accounts.counts["hand-outs"], 10 * _SECONDS, "too little load")
        self.assertGreater(sum(run.events.counts.values()), _SECONDS / 5, "too few events")


class TheAccounts(unittest.TestCase):
    def setUp(self):
        self.accounts = Accounts()
        self.job = self.accounts.put_sent("t", time.time() - 1.0)

    def put(self, job_id=7):
        self.accounts.put_done(self.job, job_id)

    def hand_out(self, job_id=7, token="t", asked=None, lease="", lease_ends=0.0):
        asked = time.time() if asked is None else asked
        return self.accounts.handed_out(job_id, token, asked, lease, lease_ends)

    def finds(self, what):
        return self.assertRaisesRegex(Violation, what)

    def test_all_is_well(self):
        self.put()
        self.hand_out(lease="l", lease_ends=time.time() + 0.05)
        time.sleep(0.06)
        self.hand_out()
        self.hand_out(lease="m", lease_ends=time.time() - 0.1)
        self.accounts.giving_back(self.job)
        self.accounts.given_back(self.job, time.time() + 0.1)
        self.hand_out(asked=time.time() - 1.0)
        time.sleep(0.1)
        self.accounts.listed([(7, "t")], time.time(), True)
        asked = time.time()
        self.hand_out()
        self.accounts.end_sent(self.job, "delete")
        self.accounts.listed([], time.time(), True)
        self.accounts.end_done(self.job, "deletes")
        self.accounts.listed([(7, "t")], asked, True)

    def test_a_job_without_an_answer_may_be_there_or_not(self):
        self.accounts.listed([], time.time(), True)
        self.accounts.listed([(7, "t")], time.time(), True)

    def test_a_lost_job(self):
        self.put()
        time.sleep(0.01)
        with self.finds("lost: it is in no list"):
            self.accounts.listed([], time.time(), True)
        self.accounts.end_sent(self.job, "cancel")
        self.accounts.end_refused(self.job, "is reserved")
        with self.finds("lost: it is in no list"):
            self.accounts.listed([], time.time(), True)
        self.accounts.end_sent(self.job, "cancel")
        with self.finds("lost"):
            self.accounts.missing(self.job, "not there")

    def test_a_job_that_is_back_from_the_dead(self):
        self.put()
        self.accounts.end_sent(self.job, "delete")
        self.accounts.end_done(self.job, "deletes")
        time.sleep(0.01)
        with self.finds("back from the dead"):
            self.hand_out()
        with self.finds("back from the dead"):
            self.accounts.listed([(7, "t")], time.time(), False)

    def test_an_early_job(self):
        self.job.due = time.time() + 0.5
        self.put()
        with self.finds("s early"):
            self.hand_out()

    def test_two_workers(self):
        self.put()
        self.hand_out(lease="l", lease_ends=time.time() + 5.0)
        self.accounts.end_sent(self.job, "ack")
        with self.finds("two workers have it"):
            self.hand_out(lease="m", lease_ends=time.time() + 5.0)

    def test_a_lease_that_ends_early(self):
        self.put()
        self.hand_out(lease="l", lease_ends=time.time() + 5.0)
        with self.finds("a lease ended"):
            self.accounts.refused(self.job, "l", False)

    def test_a_doubled_job(self):
        self.put()
        with self.finds("there twice"):
            self.hand_out(job_id=8)

    def test_a_doubled_id(self):
        self.put()
        other = self.accounts.put_sent("u", time.time())
        with self.finds("job 7 is also t"):
            self.accounts.put_done(other, 7)

    def test_a_job_that_nobody_has_put(self):
        with self.finds("nobody has put"):
            self.hand_out(token="v")


if __name__ == "__main__":
    unittest.main()
