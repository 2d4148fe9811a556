"""The effects of the commands: order, ownership, kicking, connections and tubes, on the in-memory
and on the durable server."""

import unittest

import daemon
from protocol_case import NOT_FOUND, TIMED_OUT, Durable, InMemory, said
from wire import Closed, Reply, yaml_list


class _Queueing:
    # Order.

    def test_ready_jobs_go_out_by_priority_and_id(self):
        jobs = {
            pri: [self.c.put(b"x", pri), self.c.put(b"x", pri)]
            for pri in (2**32 - 1, 1024, 0, 1023)
        }
        expected = jobs[0] + jobs[1023] + jobs[1024] + jobs[2**32 - 1]
        self.assertEqual(self.tube_stats()["current-jobs-urgent"], "4")
        self.assertEqual([self.c.call(b"reserve").number() for _ in range(8)], expected)

    def test_the_lowest_priority_wins_across_tubes(self):
        jobs = {}
        for tube, pri in ((b"-one", 30), (b"-two", 10), (b"-one", 20), (b"-three", 10)):
            self.c.call(b"use " + self.tube + tube)
            self.c.call(b"watch " + self.tube + tube)
            jobs[tube, pri] = self.c.put(b"x", pri)
        expected = [jobs[b"-two", 10], jobs[b"-three", 10], jobs[b"-one", 20], jobs[b"-one", 30]]
        self.assertEqual([self.c.call(b"reserve").number() for _ in range(4)], expected)

    def test_a_released_job_has_its_new_priority(self):
        first, second = self.c.put(b"x", 5), self.c.put(b"x", 6)
        self.assertEqual(self.c.call(b"reserve").number(), first)
        self.check(b"release %d 7 0\r\n" % first, said(b"RELEASED"))
        self.assertEqual([self.c.call(b"reserve").number() for _ in range(2)], [second, first])

    def test_delayed_jobs_are_ordered_by_deadline(self):
        late, soon, middle = (self.c.put(b"x", 0, delay) for delay in (3000, 1000, 2000))
        for expected in (soon, middle, late):
            self.assertEqual(self.c.call(b"peek-delayed").number(), expected)
            self.check(b"kick 1\r\n", said(b"KICKED 1"))

    def test_delayed_jobs_of_one_deadline_are_ordered_by_id(self):
        jobs = [self.c.put(b"x", 9 - n, 1000) for n in range(3)]
        for expected in jobs:
            self.assertEqual(self.c.call(b"peek-delayed").number(), expected)
            self.check(b"kick 1\r\n", said(b"KICKED 1"))

    def test_waiting_workers_are_served_in_turn(self):
        # beanstalkd itself serves at most three in turn.
        workers = [self.worker() for _ in range(3 if daemon.stand_in() else 10)]
        for n, worker in enumerate(workers):
            worker.send(b"reserve\r\n")
            self.wait_until_waiting(n + 1)
        for worker in workers:
            job = self.c.put(b"x")
            self.assertEqual(self.reserved(worker), job)

    @unittest.skipIf(
        daemon.stand_in(),
        "beanstalkd's array of waiting workers loses the order when one leaves it",
    )
    def test_waiting_workers_keep_their_turn_when_another_leaves(self):
        workers = [self.worker() for _ in range(4)]
        for n, worker in enumerate(workers):
            worker.send(b"reserve-with-timeout 0\r\n" if n == 0 else b"reserve\r\n")
            if n == 0:
                self.assertEqual(worker.reply(), TIMED_OUT)
                worker.send(b"reserve\r\n")
            self.wait_until_waiting(n + 1)
        workers.pop(1).close()
        self.wait_until_waiting(3)
        workers.append(self.worker())
        workers[-1].send(b"reserve\r\n")
        self.wait_until_waiting(4)
        for worker in workers:
            job = self.c.put(b"x")
            self.assertEqual(self.reserved(worker), job)

    # Delete, and commands on jobs that another client has reserved.

    def test_delete_in_every_state(self):
        ready, delayed, buried, held = (
            self.c.put(b"x", 9),
            self.c.put(b"x", 0, 1000),
            self.c.put(b"x", 0),
            self.c.put(b"x", 1),
        )
        self.assertEqual([self.c.call(b"reserve").number() for _ in range(2)], [buried, held])
        self.check(b"bury %d 0\r\n" % buried, said(b"BURIED"))
        for job, state in (
            (ready, "ready"),
            (delayed, "delayed"),
            (buried, "buried"),
            (held, "reserved"),
        ):
            self.assertEqual(self.c.stats(b"stats-job %d" % job)["state"], state)
            self.check(b"delete %d\r\n" % job, said(b"DELETED"))
            self.check(b"delete %d\r\n" % job, NOT_FOUND)
            self.check(b"peek %d\r\n" % job, NOT_FOUND)
        self.assertEqual(self.tube_stats()["cmd-delete"], "4")

    def test_a_job_reserved_by_another_client_is_not_found(self):
        job = self.c.put(b"x")
        other = self.worker()
        self.assertEqual(other.call(b"reserve").number(), job)
        for command in (
            b"delete %d",
            b"release %d 0 0",
            b"bury %d 0",
            b"touch %d",
            b"reserve-job %d",
            b"kick-job %d",
        ):
            self.check(command % job + b"\r\n", NOT_FOUND)
        self.assertEqual(self.c.call(b"peek %d" % job).line, b"FOUND %d 1" % job)
        self.assertEqual(other.call(b"touch %d" % job), said(b"TOUCHED"))

    def test_only_a_reserved_job_can_be_released_buried_touched(self):
        job = self.c.put(b"x")
        for command in (b"release %d 0 0", b"bury %d 0", b"touch %d"):
            self.check(command % job + b"\r\n", NOT_FOUND)

    def test_reserve_job_takes_ready_delayed_and_buried(self):
        ready, delayed, buried = self.c.put(b"x", 9), self.c.put(b"x", 0, 1000), self.c.put(b"x", 0)
        self.assertEqual(self.c.call(b"reserve").number(), buried)
        self.check(b"bury %d 0\r\n" % buried, said(b"BURIED"))
        for job in (ready, delayed, buried):
            self.check(b"reserve-job %d\r\n" % job, Reply(b"RESERVED %d 1" % job, b"x"))
            self.check(b"reserve-job %d\r\n" % job, NOT_FOUND)
            self.assertEqual(self.c.stats(b"stats-job %d" % job)["state"], "reserved")

    # Kick.

    def test_kick_takes_buried_in_order_and_then_the_nearest_delayed(self):
        late, soon = self.c.put(b"x", 0, 2000), self.c.put(b"x", 0, 1000)
        buried = [self.c.put(b"x", pri) for pri in (3, 2, 1)]
        for job in buried:
            self.check(b"reserve-job %d\r\n" % job, Reply(b"RESERVED %d 1" % job, b"x"))
            self.check(b"bury %d %d\r\n" % (job, job), said(b"BURIED"))
        self.assertEqual(self.c.call(b"peek-buried").number(), buried[0])
        self.check(b"kick 0\r\n", said(b"KICKED 0"))
        self.check(b"kick 1\r\n", said(b"KICKED 1"))
        self.assertEqual(self.c.call(b"peek-ready").number(), buried[0])
        self.check(b"kick 100\r\n", said(b"KICKED 2"))  # only the buried jobs
        self.check(b"kick 1\r\n", said(b"KICKED 1"))
        self.assertEqual(self.c.call(b"peek-delayed").number(), late)
        self.assertEqual(self.c.stats(b"stats-job %d" % soon)["kicks"], "1")
        self.check(b"kick 4294967295\r\n", said(b"KICKED 1"))
        self.check(b"kick 1\r\n", said(b"KICKED 0"))

    def test_a_waiting_worker_gets_the_first_kicked_job(self):
        buried = [self.c.put(b"x", pri) for pri in (1, 2, 3)]
        for job in buried:
            self.assertEqual(self.c.call(b"reserve").number(), job)
        for job, pri in zip(buried, (30, 20, 10)):
            self.check(b"bury %d %d\r\n" % (job, pri), said(b"BURIED"))
        worker = self.worker()
        worker.send(b"reserve\r\n")
        self.wait_until_waiting(1)
        self.check(b"kick 3\r\n", said(b"KICKED 3"))
        self.assertEqual(self.reserved(worker), buried[0])
        self.assertEqual(
            [self.c.call(b"reserve").number() for _ in range(2)], [buried[2], buried[1]]
        )

    def test_kick_is_for_the_used_tube_only(self):
        self.c.put(b"x", 0, 1000)
        self.c.call(b"use " + self.tube + b"-other")
        self.check(b"kick 10\r\n", said(b"KICKED 0"))

    def test_kick_job(self):
        delayed, buried, ready = self.c.put(b"x", 5, 1000), self.c.put(b"x", 0), self.c.put(b"x", 9)
        self.assertEqual(self.c.call(b"reserve").number(), buried)
        self.check(b"bury %d 7\r\n" % buried, said(b"BURIED"))
        self.check(b"kick-job %d\r\n" % ready, NOT_FOUND)
        for job in (delayed, buried):
            self.check(b"kick-job %d\r\n" % job, said(b"KICKED"))
            self.check(b"kick-job %d\r\n" % job, NOT_FOUND)
        self.assertEqual(
            [self.c.call(b"reserve").number() for _ in range(3)], [delayed, buried, ready]
        )

    # Connections.

    def test_a_closed_connection_gives_its_jobs_back(self):
        jobs = [self.c.put(b"x") for _ in range(3)]
        other = self.worker()
        self.assertEqual([other.call(b"reserve").number() for _ in jobs], jobs)
        self.c.send(b"reserve\r\n")
        other.close()
        self.assertEqual(self.reserved(self.c), jobs[0])
        self.assertEqual(
            [self.c.call(b"reserve-with-timeout 5").number() for _ in jobs[1:]], jobs[1:]
        )
        self.assertEqual(self.c.stats(b"stats-job %d" % jobs[0])["reserves"], "2")

    def test_a_gone_worker_gets_no_job(self):
        other = self.worker()
        other.send(b"reserve\r\n")
        self.wait_until_waiting(1)
        other.close()
        self.wait_until_waiting(0)
        job = self.c.put(b"x")
        self.assertEqual(self.c.call(b"reserve-with-timeout 0").line, b"RESERVED %d 1" % job)

    def test_ten_thousand_pipelined_puts_are_answered_in_order(self):
        self.c.send(b"".join(b"put 0 0 60 5\r\n%05d\r\n" % n for n in range(10_000)))
        jobs = [self.c.reply().number() for _ in range(10_000)]
        self.assertEqual(jobs, sorted(set(jobs)))
        self.c.send(b"reserve\r\n" * 10_000)
        replies = [self.c.reply() for _ in range(10_000)]
        self.assertEqual([r.number() for r in replies], jobs)
        self.assertEqual([r.body for r in replies], [b"%05d" % n for n in range(10_000)])
        self.c.send(b"".join(b"delete %d\r\n" % job for job in jobs))
        self.assertEqual({self.c.reply() for _ in jobs}, {said(b"DELETED")})

    def test_nothing_is_read_while_a_reserve_waits(self):
        other = self.worker()
        other.send(b"reserve\r\nput 0 0 60 1\r\ny\r\nlist-tube-used\r\n")
        self.wait_until_waiting(1)
        self.assertTrue(other.silent_for(0.05))
        self.assertEqual(self.tube_stats()["total-jobs"], "0")
        job = self.c.put(b"x")
        self.assertEqual(self.reserved(other), job)
        self.assertEqual(other.reply().word, b"INSERTED")
        self.assertEqual(other.reply(), said(b"USING " + self.tube))

    def test_a_half_closed_connection_times_out(self):
        for command in (b"reserve\r\n", b"reserve-with-timeout 1000\r\n"):
            other = self.worker()
            other.send(command)
            self.wait_until_waiting(1)
            other.half_close()
            self.assertEqual(other.reply(), TIMED_OUT)
            with self.assertRaises(Closed):
                other.reply()

    def test_a_half_closed_connection_is_answered_to_its_last_command(self):
        self.c.send(b"put 0 0 60 1\r\nx\r\nreserve\r\nreserve\r\nlist-tube-used\r\n")
        self.c.half_close()
        self.assertEqual(
            [self.c.reply().word for _ in range(4)],
            [b"INSERTED", b"RESERVED", b"TIMED_OUT", b"USING"],
        )
        self.assertEqual(self.c.wait_for_end(), b"")

    def test_a_half_close_is_noticed_behind_unread_bytes(self):
        count = 1400  # 40 kB: the server's kernel surely takes them while the server reads nothing
        self.c.send(b"reserve\r\n" + b"put 0 0 60 10\r\n0123456789\r\n" * count)
        self.c.half_close()
        self.assertEqual(self.c.reply(), TIMED_OUT)
        self.assertEqual({self.c.reply().word for _ in range(count)}, {b"INSERTED"})
        self.assertEqual(self.c.wait_for_end(), b"")

    def test_a_gone_worker_is_noticed_behind_unread_bytes(self):
        other = self.worker()
        other.send(b"reserve\r\n")
        self.wait_until_waiting(1)
        other.send(b"put 0 0 60 10\r\n0123456789\r\n" * 1400)
        other.close()
        self.wait_until_waiting(0)

    def test_replies_before_quit_arrive_even_if_more_was_sent_behind_it(self):
        # Closing a socket with unread bytes resets the connection, and the replies that the
        # client's kernel has not taken yet are lost. (beanstalkd does that.)
        body = b"x" * 65535
        for _ in range(8):
            self.c.put(body)
        worker = self.server.connect(receive_buffer=4096)
        worker.send(b"watch " + self.tube + b"\r\nignore default\r\n" + 8 * b"reserve\r\n")
        worker.send(b"quit\r\n" + 1000 * b"delete 1\r\n")
        self.assertEqual(worker.reply().word, b"WATCHING")
        self.assertEqual(worker.reply().word, b"WATCHING")
        worker.send(b"stats\r\n")
        for _ in range(8):
            self.assertEqual(worker.reply().body, body)
        self.assertEqual(worker.wait_for_end(), b"")

    def test_a_put_cut_off_by_the_end_of_its_connection_makes_no_job(self):
        other = self.worker()
        other.send(b"put 0 0 60 10\r\nhalf a b")
        other.half_close()
        other.wait_for_end()
        self.assertEqual(self.tube_stats()["total-jobs"], "0")

    def test_commands_sent_byte_by_byte(self):
        for byte in b"put 3 0 60 4\r\n\r\n\r\n\r\nlist-tube-used\r\n":
            self.c.send(bytes([byte]))
        self.assertEqual(self.c.reply().word, b"INSERTED")
        self.assertEqual(self.c.reply(), said(b"USING " + self.tube))
        self.assertEqual(self.c.call(b"reserve").body, b"\r\n\r\n")

    # Tubes.

    def test_tubes_vanish(self):
        tube = self.tube + b"-brief"
        self.check(b"use " + tube + b"\r\n", said(b"USING " + tube))
        self.assertIn(tube.decode(), self._tubes())
        self.check(b"use default\r\n", said(b"USING default"))
        self.check(b"stats-tube " + tube + b"\r\n", NOT_FOUND)
        self.check(b"watch " + tube + b"\r\n", said(b"WATCHING 2"))
        self.assertEqual(self.c.stats(b"stats-tube " + tube)["current-watching"], "1")
        self.check(b"ignore " + tube + b"\r\n", said(b"WATCHING 1"))
        self.assertNotIn(tube.decode(), self._tubes())

    def test_a_tube_lives_as_long_as_its_last_job(self):
        tube = self.tube + b"-with-a-job"
        self.check(b"use " + tube + b"\r\n", said(b"USING " + tube))
        job = self.c.put(b"x", 0, 1000)
        self.check(b"use default\r\n", said(b"USING default"))
        self.assertIn(tube.decode(), self._tubes())
        self.check(b"delete %d\r\n" % job, said(b"DELETED"))
        self.assertNotIn(tube.decode(), self._tubes())

    def test_default_stays(self):
        self.assertIn("default", self._tubes())
        self.assertEqual(self.c.stats(b"stats-tube default")["name"].strip('"'), "default")

    def test_watch_and_ignore(self):
        self.assertEqual(yaml_list(self.c.call(b"list-tubes-watched").body), [self.tube.decode()])
        self.check(b"watch " + self.tube + b"\r\n", said(b"WATCHING 1"))
        self.check(b"ignore " + self.tube + b"\r\n", said(b"NOT_IGNORED"))
        self.check(b"ignore no-such-tube\r\n", said(b"WATCHING 1"))
        self.check(b"watch default\r\n", said(b"WATCHING 2"))
        self.check(b"ignore " + self.tube + b"\r\n", said(b"WATCHING 1"))
        self.assertEqual(yaml_list(self.c.call(b"list-tubes-watched").body), ["default"])

    def _tubes(self) -> list:
        return yaml_list(self.c.call(b"list-tubes").body)


class InMemoryTest(_Queueing, InMemory, unittest.TestCase):
    pass


class DurableTest(_Queueing, Durable, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
