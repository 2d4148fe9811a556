"""A TCP proxy between nodes and their database, whose lines a test can cut, stall and slow down.

    with proxy.Proxy(["a", "b"], slots=2) as lines:        # a process of its own
        lines.lead(0, server.port)                         # where slot 0 leads to, for all
        url = f"postgresql://127.0.0.1:{lines.port('a', 0)}/x"
        lines.set("a", "cut")          # closes what is open, and refuses what comes
        lines.set("a", "stall")        # forwards nothing; what is under way arrives later
        lines.set("a", "delay", 0.05)  # forwards each piece 0.05 s later
        lines.set("a", "pass")
"""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress

HOST = "127.0.0.1"


class Proxy:
    def __init__(self, names, slots: int):
        self._names = list(names)
        self._slots = slots
        self._process = None
        self._ports = {}

    def __enter__(self) -> "Proxy":
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._slots), *self._names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._ports = json.loads(self._process.stdout.readline())
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def port(self, name: str, slot: int) -> int:
        return self._ports[name][slot]

    def lead(self, slot: int, port: int):
        self._tell("lead", slot, port)

    def set(self, name: str, mode: str, seconds: float = 0.0):
        self._tell("set", name, mode, seconds)

    def _tell(self, *words):
        self._process.stdin.write(json.dumps(words) + "\n")


class _Line:
    """What one node's connections go through."""

    def __init__(self):
        self.mode = "pass"
        self.delay = 0.0
        self.open = set()  # writers
        self.moves = asyncio.Event()
        self.moves.set()

    def set(self, mode: str, delay: float):
        self.mode = mode
        self.delay = delay if mode == "delay" else 0.0
        if mode == "stall":
            self.moves.clear()
        else:
            self.moves.set()
        if mode == "cut":
            for writer in list(self.open):
                writer.transport.abort()

    async def pump(self, reader, writer):
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.moves.wait()
                writer.write(data)
                await writer.drain()
        await self.moves.wait()
        writer.close()


async def _serve(names, slots):
    leads_to = [0] * slots
    lines = {name: _Line() for name in names}
    ports = {name: [] for name in names}
    tasks = set()

    async def accepted(line, slot, reader, writer):
        line.open.add(writer)
        try:
            await line.moves.wait()
            if line.mode == "cut":
                return writer.transport.abort()
            far_reader, far_writer = await asyncio.open_connection(HOST, leads_to[slot])
            line.open.add(far_writer)
            await asyncio.gather(line.pump(reader, far_writer), line.pump(far_reader, writer))
            line.open.discard(far_writer)
        except OSError:
            writer.transport.abort()
        finally:
            line.open.discard(writer)

    for name, line in lines.items():
        for slot in range(slots):
            server = await asyncio.start_server(
                lambda r, w, line=line, slot=slot: accepted(line, slot, r, w), HOST, 0
            )
            tasks.add(server)
            ports[name].append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    commands = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(commands)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await commands.readline():
        word, first, *rest = json.loads(line)
        if word == "lead":
            leads_to[first] = rest[0]
        else:
            lines[first].set(*rest)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[2:], int(sys.argv[1])))
