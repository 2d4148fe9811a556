"""Reads that fail and shortages of space and descriptors, mixed at random: whatever they meet, the
others are answered in time, and the server ends when it is told to."""

import contextlib
import errno
import os
import random
import threading
import time
import unittest

from fault_case import BATCH, LARGE, FaultCase
from failing_io import FOR_EVER
from wire import Closed

# The most that may pass until a command is answered that does not need the disk; and how long a
# server that was told to end may take: RocksDB may leave a flush, which is noticed after 15 s.
_ANSWER_S = 5.0
_END_S = 40.0
_SECONDS = 12.0

_FAULTS = (
    ("read", "*.sst", errno.EIO),
    ("open", "*.sst", errno.EIO),
    ("create", "*.sst", errno.EMFILE),
    ("write", "*.sst", errno.ENOSPC),
    ("sync", "*.sst", errno.ENOSPC),
    ("write", "*.blob", errno.ENOSPC),
    ("write", "*/MANIFEST-*", errno.ENOSPC),
    ("create", "*/MANIFEST-*", errno.EMFILE),
)


class MixedFaultsTest(FaultCase):
    def test_others_are_answered_meanwhile(self):
        seed = int(os.environ.get("CARILLON_SEED", "1"))
        print(f"CARILLON_SEED={seed}", flush=True)
        chance = random.Random(seed)
        server = self.start()
        rules = [self.faults.fail(*fault, times=FOR_EVER) for fault in _FAULTS]
        acknowledged, unanswered = {}, []
        over = threading.Event()
        putting = threading.Thread(
            target=_put, args=(server.connect(), over, acknowledged, unanswered)
        )
        putting.start()
        self.addCleanup(over.set)
        client = server.connect()
        until = time.monotonic() + _SECONDS
        with contextlib.suppress(Closed, OSError):  # it may say that RocksDB has left a flush
            while time.monotonic() < until:
                for rule in rules:
                    rule.turn(chance.random() < 0.4)
                change = time.monotonic() + chance.choice((0.05, 0.3, 1.5))
                while time.monotonic() < change:
                    client.call(b"stats", timeout=_ANSWER_S)
                    time.sleep(0.01)
        over.set()
        putting.join()
        server.process.terminate()  # with the faults of that moment
        if server.process.wait(_END_S) != 0:
            self.assertIn("RocksDB does not carry out a flush", server.log())
        for rule in rules:
            rule.stop()
        self.assert_kept(acknowledged, unanswered=len(unanswered))


def _put(client, over, acknowledged: dict, unanswered: list):
    batch = (b"put 0 0 600 %d\r\n%s\r\n" % (len(LARGE), LARGE)) * BATCH
    try:
        while not over.is_set():
            client.send(batch)
            for _ in range(BATCH):
                reply = client.reply(timeout=60.0)  # a put may wait for the disk
                if reply.word == b"INSERTED":
                    acknowledged[reply.number()] = LARGE
                else:
                    unanswered.append(reply)
                    time.sleep(0.01)
    except (Closed, OSError) as why:
        unanswered.extend([why] * BATCH)


if __name__ == "__main__":
    unittest.main()
