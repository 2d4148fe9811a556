"""Which queues are bound to which exchange, kept in Carillon: part of carillon_kombu.py.

The server knows tubes, and no exchanges. So each exchange has a tube with a job for each of its
bindings, which nobody reserves. The binding of a temporary queue expires, unless its owner goes on
refreshing it: that of a process that has died goes by itself.
"""

import hashlib
import json
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import carillon
from carillon_reservations import Client


def escaped(name: str) -> str:
    """A name as that of a tube: other characters than a tube may have become $ and hex."""
    return re.sub(
        r"^-|[^A-Za-z0-9\-+/;._()]",
        lambda match: "".join(f"${byte:02x}" for byte in match[0].encode()),
        name,
    )


class Binding(NamedTuple):
    routing_key: str
    pattern: Optional[str]  # only for a topic exchange: a regular expression
    queue: str
    life: Optional[float]  # seconds until a message in the queue is worth nothing; None: for ever


class Bindings:
    """The bindings of all exchanges. Any thread may call any method; `lock`, an RLock, guards the
    client."""

    LIFE = 60  # seconds until the binding of a temporary queue goes whose owner has died
    _TABLE_LIFE = 1  # seconds until the bindings of an exchange are read again

    def __init__(self, client: Client, lock: Any, prefix: str):
        self.lock = lock
        self._client = client
        self._prefix = prefix  # begins the names of the tubes
        self._temporary: Dict[str, Tuple[str, str]] = {}  # key of a job -> tube, body
        self._next_refresh = time.monotonic() + self.LIFE / 3
        self._tables: Dict[str, Tuple[float, List[Binding]]] = {}  # exchange -> when it was read

    def add(self, exchange: str, binding: Binding, *, is_temporary: bool) -> None:
        key = self._key(exchange, binding.routing_key, binding.queue)
        tube, body = self._tube(exchange), json.dumps(binding)
        if is_temporary:
            self._temporary[key] = (tube, body)
        self._put(tube, key, body, self.LIFE if is_temporary else None)
        self.read_again(exchange)

    def remove(self, exchange: str, routing_key: str, queue: str) -> None:
        key = self._key(exchange, routing_key, queue)
        self._temporary.pop(key, None)
        self.read_again(exchange)
        with self.lock:
            self._client.use_now(self._tube(exchange))
            try:
                self._client.cancel(key)
            except carillon.NotFound:
                pass

    def refresh(self) -> None:
        """To be called every LIFE / 3 seconds or more often."""
        if time.monotonic() < self._next_refresh:
            return
        for key, (tube, body) in list(self._temporary.items()):
            self._put(tube, key, body, self.LIFE)
        self._next_refresh = time.monotonic() + self.LIFE / 3

    def of(self, exchange: str) -> List[Binding]:
        """As they are, or were a second ago."""
        read, table = self._tables.get(exchange, (0.0, []))
        if not read or time.monotonic() - read > self._TABLE_LIFE:
            with self.lock:
                jobs = list(self._client.list_jobs(self._tube(exchange), bodies=True))
            table = [Binding(*json.loads(job["body"])) for job in jobs]
            self._tables[exchange] = (time.monotonic(), table)
        return table

    def read_again(self, exchange: str) -> None:
        """The next of() reads them anew."""
        self._tables.pop(exchange, None)

    def _tube(self, exchange: str) -> str:
        return self._prefix + escaped(exchange)

    @staticmethod
    def _key(exchange: str, routing_key: str, queue: str) -> str:
        return hashlib.sha256(json.dumps([exchange, routing_key, queue]).encode()).hexdigest()

    def _put(self, tube: str, key: str, body: str, life: Optional[float]) -> None:
        conflict = "ignore" if life is None else "replace"
        with self.lock:
            self._client.use_now(tube)
            self._client.put(body, key=key, on_conflict=conflict, expires_in=life)
