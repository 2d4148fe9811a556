"""A nearly full file system: puts are refused while there is still room to delete jobs and to start
again (`carillon serve --min-free-disk`)."""

import contextlib
import ctypes
import os
import time
import unittest

import daemon
from wire import Connection, Reply, said

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_REC_PRIVATE = 0x4000 | 0x40000
_MIB = 1 << 20
_BODY = os.urandom(60_000)  # the server stores bodies compressed
_REFUSED = said(b"OUT_OF_MEMORY")
_FAILED = said(b"INTERNAL_ERROR")


def _mount_small(directory: str, size: str) -> bool:
    """Mounts a file system in memory that only this process and its children see. Returns true if
    that worked."""
    libc = ctypes.CDLL(None)
    space = _NEWNS | (0 if os.geteuid() == 0 else _NEWUSER)
    return (
        libc.unshare(space) == 0
        and libc.mount(b"none", b"/", None, _REC_PRIVATE, None) == 0
        and libc.mount(b"none", directory.encode(), b"tmpfs", 0, f"size={size}".encode()) == 0
    )


class DiskSpaceTest(daemon.DataCase):
    def mount_small(self, size: str) -> None:
        if not _mount_small(self.folder, size):
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(ctypes.CDLL(None).umount2, self.folder.encode(), 2)

    def put_until(self, client: Connection, done, body=b"job") -> Reply:
        """Puts jobs until `done` is true for a reply, and returns that. The server checks the disk
        ten times a second, and goes on after a shortage in a thread of its own."""
        end = time.monotonic() + 20
        while not done(reply := client.call(b"put 0 0 3600 %d" % len(body), body)):
            self.assertLess(time.monotonic(), end, reply)
            time.sleep(0.02)
        return reply

    def test_with_little_space_only_puts_are_refused(self):
        server = self.start("--min-free-disk", "0")
        with server.connect() as client:
            ids = [client.put(b"job") for _ in range(3)]
        server.terminate()

        server = self.start("--min-free-disk", str(1 << 50))
        client = server.connect()
        self.assertEqual(client.call(b"put 0 0 60 3", b"new"), _REFUSED)
        self.assertEqual(client.call(b"put-ms 0 0 60000 3", b"new"), _REFUSED)
        self.assertEqual(client.call(b"reserve").number(), ids[0])
        self.assertEqual(client.call(b"release %d 0 0" % ids[0]), said(b"RELEASED"))
        self.assertEqual(
            client.call(b"bury %d 0" % client.call(b"reserve").number()), said(b"BURIED")
        )
        self.assertEqual(client.call(b"kick 1"), said(b"KICKED 1"))
        for job in ids:
            self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"))
        self.assertEqual(server.log().count("every put is refused"), 1, server.log())

    def test_a_full_disk_is_drained_after_a_restart(self):
        self.mount_small("448m")
        # With the default: on a slow disk up to 192 MiB wait in memory for a flush, and a start
        # writes what a kill has left of it, while the log still has it.
        server = self.start()
        client = server.connect()
        ids = []
        while (reply := client.call(b"put 0 0 3600 %d" % len(_BODY), _BODY)) != _REFUSED:
            ids.append(reply.number())
        self.assertGreater(len(ids), 100)
        # Meanwhile a flush may have given back enough space for puts.
        self.assertEqual(client.call(b"delete %d" % ids.pop(0)), said(b"DELETED"))

        server.kill()
        server = self.start()
        client = server.connect()
        self.assertEqual(int(client.stats()["current-jobs-ready"]), len(ids))
        for job in ids:
            reply = client.call(b"reserve-with-timeout 0")
            self.assertEqual((reply.number(), reply.body), (job, _BODY))
            self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"), server.log())
        self.assertEqual(client.call(b"reserve-with-timeout 0"), said(b"TIMED_OUT"))

    def fill_and_delete_all(self, size: str) -> daemon.Server:
        self.mount_small(size)
        server = self.start()
        client = server.connect()
        ids = []
        while (reply := client.call(b"put 0 0 3600 %d" % len(_BODY), _BODY)) != _REFUSED:
            ids.append(reply.number())
        self.assertGreater(len(ids), 100)
        for job in ids:
            self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"), server.log())
        return server

    def test_all_space_in_the_log_comes_back_when_all_jobs_are_deleted(self):
        server = self.fill_and_delete_all("300m")
        self.put_until(server.connect(), lambda reply: reply != _REFUSED)
        self.assertIn("puts are taken again", server.log())

    def test_all_space_in_files_comes_back_when_all_jobs_are_deleted(self):
        server = self.fill_and_delete_all("600m")
        self.put_until(server.connect(), lambda reply: reply != _REFUSED)

    def test_space_comes_back_after_a_restart(self):
        server = self.fill_and_delete_all("300m")
        server.terminate()
        server = self.start()
        self.put_until(server.connect(), lambda reply: reply != _REFUSED)

    def test_space_comes_back_when_a_few_jobs_live_in_each_file_of_bodies(self):
        self.mount_small("600m")
        client = self.start().connect()
        living = []
        for _ in range(3):  # at the latest the second time, most bodies are in files
            ids = []
            while (reply := client.call(b"put 0 0 3600 %d" % len(_BODY), _BODY)) != _REFUSED:
                ids.append(reply.number())
            for job in ids:
                if job % 4 != 0:
                    self.assertEqual(client.call(b"delete %d" % job), said(b"DELETED"))
            living += [job for job in ids if job % 4 == 0]
            self.put_until(client, lambda reply: reply != _REFUSED)
        for job in living:
            self.assertEqual(client.call(b"peek %d" % job).body, _BODY)

    def test_a_shortage_while_puts_are_refused_passes(self):
        """Another program takes all space, so that a flush fails, and later gives it back."""
        server = self.fill_and_delete_all("600m")
        client = server.connect()
        # Longer than it takes to find out that RocksDB has left a flush.
        end = time.monotonic() + 18
        with open(self.folder + "/filler", "wb", buffering=0) as filler:
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    while filler.write(bytes(_MIB)):
                        pass
                client.call(b"put 0 0 3600 3", b"job")
                time.sleep(0.1)
            filler.truncate(0)
        self.put_until(client, lambda reply: reply not in (_REFUSED, _FAILED))

    def test_a_disk_that_is_full_to_the_last_byte(self):
        self.mount_small("96m")
        server = self.start("--min-free-disk", "0")
        client = server.connect()
        ids = [client.put(_BODY) for _ in range(10)]
        filler = self.folder + "/filler"
        with self.assertRaises(OSError), open(filler, "wb", 0) as file:
            while True:
                file.write(bytes(_MIB))
        while (reply := client.call(b"put 0 0 3600 %d" % len(_BODY), _BODY)) != _FAILED:
            ids.append(reply.number())
        self.assertLess(len(ids), 200)
        self.assertEqual(client.call(b"peek %d" % ids[0]).body, _BODY)
        os.unlink(filler)
        ids.append(self.put_until(client, lambda reply: reply != _FAILED, _BODY).number())
        self.assertEqual(client.call(b"delete %d" % ids.pop(0)), said(b"DELETED"))
        server.kill()
        client = self.start().connect()
        for job in ids:
            reply = client.call(b"reserve-with-timeout 0")
            self.assertEqual((reply.number(), reply.body), (job, _BODY))

    def test_puts_come_again_when_there_is_space(self):
        self.mount_small("192m")
        server = self.start("--min-free-disk", "64M")
        client = server.connect()
        client.put(b"before")
        filler = self.folder + "/filler"
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 150 * _MIB)
        self.put_until(client, lambda reply: reply == _REFUSED)
        os.unlink(filler)
        self.put_until(client, lambda reply: reply != _REFUSED)
        self.assertIn("puts are taken again", server.log())


if __name__ == "__main__":
    unittest.main()
