"""Carillon as a broker of Celery, and of Kombu: importing this file makes carillon:// URLs known.

    import carillon_kombu
    from celery import Celery

    app = Celery("shop", broker="carillon://127.0.0.1:11300")

A task with an `eta` or a `countdown` is a delayed job: it waits in the server, on disk, and a
worker gets it when it is due. No visibility time-out gives it to a second worker meanwhile, because
no worker has it. docs/celery.md of Carillon has a tutorial, and tells what is supported.

Each queue is a tube, and each message a job whose body is JSON. carillon_reservations.py holds the
messages that were not acknowledged yet, and carillon_bindings.py knows which queue is bound where.

Options, for broker_transport_options:

    ttr             seconds after which another worker gets the tasks of a worker that hangs, or has
                    vanished without closing its connections (60; at least 1)
    repeat_window   seconds in which a repeated publish of the same message is recognised (120)
    restart_pause   seconds for which a worker takes no task after it has lost the server, so that
                    all workers can take back those that they run (2)
    max_unacked     most unacknowledged messages when the prefetch count is 0, unlimited (100)
    timeout         seconds that an answer of the server may take (30)
    path            of a unix socket, instead of the URL's host and port
    http            where the server answers HTTP, (HOST, PORT) or the path of a unix socket (port +
                    80, or path + ".http"): purge, revoke and broadcasts ask there
    token           what the server asks for, if it has tokens; or as the password of the URL:
                    carillon://:TOKEN@jobs.example.org
    tls             True if the server speaks TLS and this system trusts its certificate, or the
                    file of those that may sign it; or a URL that begins with carillons://, or
                    broker_use_ssl, True or {"ca_certs": FILE}

The path of the URL, as in carillon://127.0.0.1/shop, is a prefix of all tubes.
"""

import datetime
import os
import queue as inboxes
import re
import socket
import threading
import uuid
import weakref
from typing import Any, Dict, List, Optional, Tuple

from kombu.log import get_logger
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.utils.json import dumps, loads

import carillon
from carillon_bindings import Binding, Bindings, escaped
from carillon_reservations import Client, Queue, Reservations, Taken

__all__ = ["Transport", "Channel", "revoke"]

TRANSPORT_ALIASES["carillon"] = f"{__name__}:Transport"
TRANSPORT_ALIASES["carillons"] = f"{__name__}:Transport"

_log = get_logger(__name__)

_OPTIONS = {
    "ttr": 60,
    "repeat_window": 120,
    "restart_pause": 2,
    "max_unacked": 100,
    "timeout": 30,
    "path": None,
    "http": None,
    "token": None,
    "tls": None,
}
_PRI = 65536  # the pri of priority 0; a more urgent message has less
_MESSAGE_LIFE = 300  # seconds until a message goes that nobody takes from a temporary queue


def revoke(app: Any, task_id: str, queue: Optional[str] = None) -> int:
    """Deletes a task of a Celery app that waits in the server, for its time or for a worker.
    Returns how many messages that were: 0 if a worker has it (app.control.revoke() reaches that),
    or it is done. It reads all tasks that wait in the queue."""
    with app.connection_for_write() as connection:
        queue = queue or app.conf.task_default_queue
        return connection.default_channel.cancel_task(task_id, queue)


def _tls_of(info: Any, option: Any) -> Any:
    """What the options, broker_use_ssl or the URL of a kombu.Connection say."""
    if option is not None:
        return option
    if isinstance(info.ssl, dict) and info.ssl.get("ca_certs"):
        return info.ssl["ca_certs"]
    return bool(info.ssl) or info.transport_cls == "carillons"


def _moment(text: Any) -> Optional[datetime.datetime]:
    """Reads an `eta` as Celery does: without a zone it is UTC. None if it is no time."""
    try:
        moment = datetime.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


class QoS(virtual.QoS):
    """Tells what becomes of a message. How many there may be is the business of Reservations."""

    def ack(self, delivery_tag: str) -> None:
        self.channel.reservations.end(delivery_tag, "delete")
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self.channel.reservations.end(delivery_tag, "release" if requeue else "bury")
        super().ack(delivery_tag)

    def restore_unacked(self) -> list:
        self.channel.reservations.release_all()
        self._delivered.clear()
        return []


class Channel(virtual.Channel):
    """See the module. Publishing and consuming are thread-safe, as far as those of Kombu are."""

    QoS = QoS
    supports_fanout = True
    do_restore = False  # the server does it
    max_priority = 255
    body_encoding = None

    def __init__(self, connection: "Transport", **kwargs: Any):
        super().__init__(connection, **kwargs)
        self.options = {**_OPTIONS, **connection.client.transport_options}
        self._prefix = (connection.client.virtual_host or "").strip("/")
        self._publisher = self._new_client()
        self._lock = threading.RLock()  # for the publisher
        self._life: Dict[str, Optional[float]] = {}  # how long messages of a queue live, in seconds
        self._declared: Dict[str, bool] = {}  # queue -> is temporary
        # No queue has such a tube: behind a $ is hex.
        self._bindings = Bindings(self._publisher, self._lock, f"{self._tube('')}$bindings.")
        self.reservations = Reservations(
            self._new_client,
            self._read,
            lambda taken: connection.deliver_later(self, taken),
            self._bindings.refresh,
            _log,
            most=self.options["max_unacked"],
            pause=self.options["restart_pause"],
            wait=Bindings.LIFE / 4,
        )
        _channels.add(self)

    def _new_client(self) -> Client:
        info = self.connection.client if self.connection else None
        if info:
            self._address = (info.hostname or "127.0.0.1", info.port or Transport.default_port)
            self._token = self.options["token"] or info.password or None
            self._tls = _tls_of(info, self.options["tls"])
        return Client(
            *self._address,
            path=self.options["path"],
            http=self.options["http"],
            timeout=self.options["timeout"],
            token=self._token,
            tls=self._tls,
            name=f"{re.sub('[^!-~]', '-', socket.gethostname())[:80]}:{os.getpid()}",
        )

    def _tube(self, queue: str) -> str:
        return escaped(f"{self._prefix}.{queue}" if self._prefix else queue)

    def check(self) -> None:
        """Raises ConnectionLost if there is no server."""
        with self._lock:
            self._publisher.use_now(self._tube("celery"))

    # --- Publishing.

    def encode_body(self, body: Any, encoding: Optional[str] = None) -> Tuple[Any, Optional[str]]:
        """Texts stay as they are, so that they can be read in the server's lists."""
        if isinstance(body, bytes):
            return super().encode_body(body, "base64")
        return body, None

    def prepare_queue_arguments(self, arguments: dict, **kwargs: Any) -> dict:
        return to_rabbitmq_queue_arguments(arguments, **kwargs)

    def _put(self, queue: str, message: dict, **kwargs: Any) -> None:
        headers, properties = message.get("headers") or {}, message["properties"]
        # The properties are the same when Kombu publishes again after an error.
        once = properties.setdefault("carillon_once", uuid.uuid4().hex[:16])
        task_id = str(headers.get("id") or "")
        key = f"{task_id}/{once}" if re.fullmatch("[!-~]{1,150}", task_id) else once
        due = _moment(headers.get("eta"))
        life = self._life.get(queue)
        if properties.get("expiration"):
            life = int(properties["expiration"]) / 1000
        # A message with an eta lives from then on: it waits in the server, and not in a worker.
        ends = due and life and max(due, _now()) + datetime.timedelta(seconds=life)
        with self._lock:
            self._publisher.use_now(self._tube(queue))
            self._publisher.put(
                dumps(message),
                pri=_PRI - self._get_message_priority(message),
                due=due and max(due, _EPOCH),
                ttr=self.options["ttr"],
                expires_in=None if ends else life,
                expires_at=ends or None,
                key=key,
                key_window=self.options["repeat_window"],
                on_conflict="ignore",
            )

    def _put_fanout(self, exchange: str, message: dict, routing_key: str, **kwargs: Any) -> None:
        self._bindings.read_again(exchange)
        for queue in sorted({queue for _, _, queue in self.get_table(exchange)}):
            self._put(queue, message)

    # --- Exchanges and queues.

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        arguments = kwargs.get("arguments") or {}
        self._declared[queue] = not kwargs.get("durable") or bool(
            kwargs.get("auto_delete") or kwargs.get("exclusive") or "x-expires" in arguments
        )
        ttl = arguments.get("x-message-ttl")
        self._life[queue] = ttl / 1000 if ttl else None
        if self._declared[queue] and not ttl:
            self._life[queue] = _MESSAGE_LIFE

    def _queue_bind(self, exchange: str, routing_key: str, pattern: Any, queue: str) -> None:
        binding = Binding(routing_key, pattern, queue, self._life.get(queue))
        self._bindings.add(exchange, binding, is_temporary=self._declared.get(queue, False))

    def _unbind(self, exchange: str, routing_key: str, pattern: Any, queue: str) -> None:
        table = self.state.exchanges.get(exchange, {}).get("table", [])
        table[:] = [row for row in table if tuple(row) != (routing_key, pattern, queue)]
        self._bindings.remove(exchange, routing_key, queue)

    def queue_unbind(
        self, queue: str, exchange: str = "", routing_key: str = "", arguments: Any = None, **_: Any
    ) -> None:
        self.state.binding_delete(queue, exchange, routing_key)
        meta = self.typeof(exchange).prepare_bind(queue, exchange, routing_key, arguments)
        self._unbind(exchange, *meta)

    def _delete(self, queue: str, *meta: Any, **kwargs: Any) -> None:
        self._unbind(*meta[:4])
        self._purge(queue)

    def get_table(self, exchange: str) -> List[Tuple]:
        """All bindings of an exchange, those of other processes included."""
        rows = []
        for binding in self._bindings.of(exchange):
            rows.append(tuple(binding[:3]))
            self._life.setdefault(binding.queue, binding.life)
        own = self.state.exchanges.get(exchange, {}).get("table", [])
        return rows + [row for row in map(tuple, own) if row not in rows]

    def _lookup(self, exchange: str, routing_key: str, default: Any = None) -> Any:
        found = super()._lookup(exchange, routing_key, default)
        if not found and exchange and self.typeof(exchange).type == "direct":
            self._bindings.read_again(exchange)  # the queue may have come just now
            found = super()._lookup(exchange, routing_key, default)
        return found

    def _size(self, queue: str) -> int:
        """How many messages are due, and no worker has them."""
        try:
            with self._lock:
                return int(self._publisher.stats_tube(self._tube(queue))["current-jobs-ready"])
        except carillon.NotFound:
            return 0

    def _purge(self, queue: str) -> int:
        return self._cancel_jobs(queue)

    def cancel_task(self, task_id: str, queue: str) -> int:
        return self._cancel_jobs(queue, key_prefix=f"{task_id}/")

    def _cancel_jobs(self, queue: str, **options: Any) -> int:
        try:
            with self._lock:
                tube = self._tube(queue)
                return self._publisher.cancel_jobs(tube, state="ready,delayed", **options).jobs
        except carillon.NotFound:
            return 0

    # --- Consuming.

    def _read(self, job: carillon.Job, facts: Dict[str, Any]) -> dict:
        try:
            message = loads(job.body)
            info = message["properties"]["delivery_info"]
            headers = message["headers"] = message["headers"] or {}
            due = _moment(headers.get("eta"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is no message of Kombu ({error!r})") from error
        info["redelivered"] = facts["reserves"] > 1
        # With an eta, a worker would hold the task on top of its prefetch count, if only for a
        # moment. So the eta of a task that is due goes by another name.
        if due and due <= datetime.datetime.now(datetime.timezone.utc):
            headers.update(eta=None, carillon_eta=headers["eta"])
        return message

    def message_of(self, taken: Taken) -> dict:
        taken.message["properties"]["delivery_tag"] = taken.tag
        return taken.message

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any
    ) -> None:
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        self.reservations.consume(self._tube(queue), Queue(queue, bool(no_ack)))

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue and queue not in self._active_queues:
            self.reservations.cancel(self._tube(queue))

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self.reservations.set_most(prefetch_count or self.options["max_unacked"])

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        taken = self.reservations.get(self._tube(queue), Queue(queue, no_ack))
        if not taken:
            return None
        message = self.Message(self.message_of(taken), channel=self)
        if taken.tag:
            self.qos.append(message, taken.tag)
        return message

    def close(self) -> None:
        if not self.closed:
            self.reservations.close()
            super().close()
            self._publisher.close()

    def forget(self) -> None:
        """In the child of a fork: leaves all to the parent."""
        self._publisher.forget()
        self._lock = self._bindings.lock = threading.RLock()
        self.reservations.forget()


class Transport(virtual.Transport):
    Channel = Channel
    driver_type = driver_name = "carillon"
    default_port = 11300
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )
    connection_errors = virtual.Transport.connection_errors + (carillon.ConnectionLost,)
    channel_errors = virtual.Transport.channel_errors + (carillon.Refused,)
    recoverable_connection_errors = connection_errors
    recoverable_channel_errors = ()

    def __init__(self, client: Any, **kwargs: Any):
        super().__init__(client, **kwargs)
        self._inbox: inboxes.Queue = inboxes.Queue()
        self._bell: Any = None  # wakes an event loop, with a byte for each message
        self._ringer: Any = None

    def establish_connection(self) -> "Transport":
        connection = super().establish_connection()
        self._avail_channels[-1].check()
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        return connection

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        if self._bell:
            self._bell.close()
            self._ringer.close()
        self._inbox = inboxes.Queue()

    def deliver_later(self, channel: Channel, taken: Taken) -> None:
        """Any thread may call it."""
        self._inbox.put((channel, taken))
        try:
            self._ringer.send(b"!")
        except OSError:
            pass  # thousands of bytes are there to wake it, or the connection was closed

    def drain_events(self, connection: Any, timeout: Optional[float] = None) -> None:
        try:
            item = self._inbox.get(block=timeout != 0, timeout=timeout or None)
        except inboxes.Empty:
            raise socket.timeout() from None
        self._deliver_now(*item)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        loop.add_reader(self._bell.fileno(), self._on_bell)

    def _on_bell(self) -> None:
        try:
            self._bell.recv(1)
            item = self._inbox.get_nowait()
        except (BlockingIOError, inboxes.Empty):
            return
        self._deliver_now(*item)

    def _deliver_now(self, channel: Channel, taken: Taken) -> None:
        callback = self._callbacks.get(taken.queue)
        if callback and not channel.closed:
            callback(channel.message_of(taken))
        elif taken.tag:
            channel.reservations.end(taken.tag, "release")


_EPOCH = datetime.datetime(1971, 1, 1, tzinfo=datetime.timezone.utc)  # long past
_channels: "weakref.WeakSet[Channel]" = weakref.WeakSet()


def _forget_all() -> None:
    for channel in list(_channels):
        channel.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
