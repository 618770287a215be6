"""In-memory doubles of the AWS services that the inbox uses."""

import marshal
from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from typing import Any

from simulation.engine.stepping import Answer, Call
from webhook_inbox.adapters.memory import MemoryQueue, MemoryTable, memory_ports
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.adapters.memory.table import Lag
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Item, Key, Outgoing
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import due_handlers
from webhook_inbox.ledger.pauses import CONTROL_PK

# A key, the row before and the row after.
Write = tuple[Key, Item | None, Item | None]


class VirtualClock:
    """Virtual time in whole milliseconds; only the scheduler advances it."""

    def __init__(self) -> None:
        self.ms = to_ms(START)

    def now(self) -> datetime:
        """See the port."""
        return from_ms(self.ms)

    def sleep(self, seconds: float) -> None:
        """Fails: the scheduler delays the answer of a program that sleeps."""
        raise AssertionError(f"a double slept {seconds} s")


class ObservedTable(MemoryTable):
    """A table that appends each write to `written`."""

    def __init__(self, *, lag: Lag | None = None) -> None:
        super().__init__(lag=lag)
        self.written: list[Write] = []

    def _store(self, key: Key, row: Item | None) -> None:
        self.written.append((key, self._row(key), row))
        super()._store(key, row)

    def rows(self) -> Iterator[Item]:
        """Yields the rows themselves; callers must not change them."""
        for partition in self._rows.values():
            yield from partition.values()

    def row(self, key: Key) -> Item | None:
        """Returns the row itself; callers must not change it."""
        return self._row(key)

    def is_empty(self, index: str, value: str) -> bool:
        """Returns whether an index has no entry for this value and no replication is pending."""
        return not self._unseen and not self._views[index].holds_any(value)


class Doubles:
    """The table, the bucket, and the queue and DLQ of each lane; serial lanes are FIFO.

    Attributes:
        stale: whether eventually consistent reads miss writes that were not replicated yet.
        lags: whether they may.
    """

    def __init__(
        self, *manifests: Manifest, receives: Mapping[bool, int], lags: bool, clock: Clock
    ) -> None:
        self.stale = False
        self.lags = lags
        self.table = ObservedTable(lag=self._lag if lags else None)
        self.ports = ports = memory_ports(
            *manifests, clock=clock, table=self.table, receives=receives
        )
        self.blobs, self.queues, self.dlqs = ports.blobs, ports.queues, ports.dlqs
        self._doubles: dict[str, Any] = {
            "table": self.table,
            "blobs": self.blobs,
            **{f"queue {lane}": queue for lane, queue in self.queues.items()},
            **{f"dlq {lane}": dlq for lane, dlq in self.dlqs.items()},
        }

    def execute(self, call: Call, *, refuses: bool = False) -> Answer:
        """Makes a call; with `refuses` a queue rejects the first message of a batch."""
        port = self._doubles[call.port]
        if refuses:
            first = call.args[0][0]
            port.refuses = lambda message: message is first
        try:
            value = getattr(port, call.method)(*call.args, **dict(call.options))
            return Answer(list(value) if call.method == "query" else value)
        except ConditionFailed as error:
            return Answer((error.old,), ConditionFailed)
        except Unavailable as error:
            return Answer((error.service, error.operation, str(error)), Unavailable)
        finally:
            if refuses:
                port.refuses = _refuses_nothing

    def finds_nothing(self, call: Call) -> bool:
        """Returns whether a call is a read with an empty result in this state."""
        if call.method == "query_index":
            return self.table.is_empty(call.args[0], call.args[1])
        if call.method == "get_many":
            return not call.args[0]
        if call.port == "table" and call.method in {"get", "query"} and _is_registry(call):
            # The registered handlers; a deployment changes them.
            return call.method == "query" or self.table.row(call.args[0]) is not None
        if call.port == "table" and call.method == "get" and call.args[0].pk == CONTROL_PK:
            return self.table.row(call.args[0]) is None
        return call.port.startswith("dlq") and not len(self._doubles[call.port])

    def snapshot(self) -> tuple[Any, ...]:
        """Returns the whole state, for `restore`."""
        queues = [queue.snapshot() for queue in self._all_queues()]
        return self.table.snapshot(), self.blobs.objects.copy(), queues

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Restores the state of a snapshot."""
        self.table.restore(snapshot[0])
        self.blobs.objects = snapshot[1].copy()
        for queue, state in zip(self._all_queues(), snapshot[2], strict=True):
            queue.restore(state)

    def key(self) -> Hashable:
        """Returns a value that identifies this state."""
        rows = frozenset(marshal.dumps(row, 2) for row in self.table.rows())
        queues = tuple(queue.snapshot()[1] for queue in self._all_queues())
        return rows, frozenset(self.blobs.objects.items()), queues, self._replica()

    def _replica(self) -> Hashable:
        """Returns the rows that eventually consistent reads may still return."""
        if not self.lags:
            return ()
        _, replica, _, unseen = self.table.snapshot()
        seen = (row for partition in replica.values() for row in partition.values())
        return frozenset(marshal.dumps(row, 2) for row in seen), tuple(map(repr, unseen))

    def _all_queues(self) -> Iterator[MemoryQueue]:
        yield from self.queues.values()
        yield from self.dlqs.values()

    def _lag(self, unseen: int) -> int:
        return unseen if self.stale else 0


def _is_registry(call: Call) -> bool:
    named = call.args[0]
    return (named.pk if isinstance(named, Key) else named) == due_handlers.PK


def _refuses_nothing(_: Outgoing) -> bool:
    return False
