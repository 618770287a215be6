"""Measures guarantee 8: the delay of a handler's due runs behind the backlog of another handler.

    python -m scripts.isolation_benchmark --waiting 100000 --others 100

Two handlers share a lane. One has a backlog of parked runs that are all due; the runs of the other
become due within ten minutes. The reconciler runs every minute over the in-memory doubles, in
virtual time, in which each call takes 8 ms and a client makes 16 calls at once. The lane starts 100
runs a second, in the order in which they were sent.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final, TypeVar

from webhook_inbox.adapters.memory import MemoryQueue, MemoryTable, memory_ports
from webhook_inbox.adapters.memory.system import ManualClock
from webhook_inbox.domain.manifest import DestinationSpec, HandlerSpec, Manifest
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing, Ports
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.schema import RUN_LIFE, WAKE, due_entry, run_key
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.reconciler import Reconciler

T = TypeVar("T")
R = TypeVar("R")

CALL: Final = timedelta(milliseconds=8)
THREADS: Final = 16
STARTS_PER_SECOND: Final = 100
SPREAD: Final = timedelta(minutes=10)
INVOCATION: Final = timedelta(seconds=300)
MINUTE: Final = timedelta(minutes=1)
READS: Final = ("Query", "BatchGetItem", "GetItem", "GetQueueAttributes")


@dataclass(frozen=True, slots=True)
class Measured:
    """The result; delays in seconds from the due time to the start."""

    waiting: int
    others: int
    median_delay: float
    worst_delay: float
    passes: int
    backlog_per_minute: float
    idle_reads_per_minute: int


class Latency:
    """Lets each call take its time, and counts the calls."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.calls: dict[str, int] = {}

    def __call__(self, service: str, operation: str) -> None:  # noqa: ARG002
        """Notes one call before it is made; see `Faults`."""
        self.calls[operation] = self.calls.get(operation, 0) + 1
        self._clock.advance(seconds=CALL.total_seconds())


class AtOnce:
    """The port `Parallel` in virtual time: the calls take as long as in so many threads."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        """See the port."""
        began = self._clock.now()
        found = [work(subject) for subject in subjects]
        spent = (self._clock.now() - began) / THREADS
        self._clock._now = began + max(spent, CALL if found else timedelta(0))  # noqa: SLF001
        return found


class NotedQueue(MemoryQueue):
    """A queue that notes when each message was sent and keeps none of them."""

    def __init__(self, clock: ManualClock, **settings: Any) -> None:
        super().__init__(clock, **settings)
        self._at = clock
        self.noted: list[tuple[datetime, str]] = []

    def send(self, messages: Sequence[Outgoing], *, hops: int = 0) -> Sequence[Outgoing]:  # noqa: ARG002
        """See the port."""
        for start in range(0, len(messages), 10):
            self._at.advance(seconds=CALL.total_seconds())
            batch = messages[start : start + 10]
            self.noted += [(self._at.now(), message.body) for message in batch]
        return ()


class Inbox:
    """A ledger with parked runs, and the reconciler over it."""

    def __init__(self, handlers: Sequence[HandlerSpec], *, rate: float | None = None) -> None:
        self.clock = ManualClock()
        self.latency = Latency(self.clock)
        self.table = MemoryTable()
        self.queue = NotedQueue(self.clock, name="default")
        crm = DestinationSpec("crm", "https://crm.example", rate=rate)
        self.manifest = Manifest(
            handlers={spec.name: spec for spec in handlers}, destinations={"crm": crm}
        )
        self.due: dict[str, datetime] = {}

    def reconciler(self) -> Reconciler:
        """Returns the reconciler; from now on each call takes its time."""
        self.table.faults = self.latency
        ports: Ports = memory_ports(clock=self.clock, table=self.table)
        queues = {"default": self.queue}
        return Reconciler(self.manifest, replace(ports, queues=queues, parallel=AtOnce(self.clock)))

    def park(self, handler: str, event_id: str, due: datetime) -> None:
        """Writes a parked run."""
        key, now = run_key("acme", event_id, handler), self.clock.now()
        message = RunMessage("acme", event_id, handler, generation=1).encode()
        self.due[message] = due
        self.table.put(
            {
                "pk": key.pk,
                "sk": key.sk,
                "source": "acme",
                "event_id": event_id,
                "handler": handler,
                "type": "paid",
                "expires_at": to_seconds(now + RUN_LIFE),
                "status": str(Status.DEFERRED),
                "generation": 1,
                "message_id": "m",
                "parked": True,
                "next_attempt_at": to_ms(due),
                "first_at": to_ms(now),
                "last_at": to_ms(now),
                "last_error": "down",
                **due_entry(key, due, kind=WAKE),
            }
        )


def declared(name: str, *destinations: str) -> HandlerSpec:
    """Returns a handler."""
    return HandlerSpec(name, "module", "function", "acme", ("*",), destinations=destinations)


def measure(waiting: int, others: int, *, rate: float | None = None) -> Measured:
    """Measures the delay of `others` runs behind `waiting` runs of another handler."""
    calls = ("crm",) if rate else ()
    inbox = Inbox([declared("acme.bulk", *calls), declared("acme.pay")], rate=rate)
    began = inbox.clock.now() + timedelta(hours=1)
    for number in range(waiting):
        inbox.park("acme.bulk", f"bulk-{number}", began - timedelta(milliseconds=number % 60_000))
    for number in range(others):
        inbox.park("acme.pay", f"pay-{number}", began + SPREAD * number / others)
    inbox.clock.advance(hours=1)
    reconciler, passes = inbox.reconciler(), 0
    while _missing(inbox, others):
        reconciler.run(deadline=inbox.clock.now() + INVOCATION)
        passes += 1
        # A pass begins each minute; this model lets none begin before the last one has ended.
        rest = MINUTE - (inbox.clock.now() - began) % MINUTE
        inbox.clock.advance(seconds=rest.total_seconds())
    bulk = sum('"acme.bulk"' in body for _, body in inbox.queue.noted)
    delays = _delays(inbox)
    return Measured(
        waiting=waiting,
        others=others,
        median_delay=round(median(delays), 1),
        worst_delay=round(max(delays), 1),
        passes=passes,
        backlog_per_minute=round(bulk / passes, 1),
        idle_reads_per_minute=idle_reads(10),
    )


def idle_reads(handlers: int) -> int:
    """Returns the reads of a pass over an inbox in which nothing waits."""
    inbox = Inbox([declared(f"acme.h{number}") for number in range(handlers)])
    inbox.clock.advance(minutes=1)
    reconciler = inbox.reconciler()
    reconciler.run(deadline=inbox.clock.now() + INVOCATION)  # registers the handlers
    inbox.clock.advance(minutes=1)
    inbox.latency.calls.clear()
    reconciler.run(deadline=inbox.clock.now() + INVOCATION)
    return sum(inbox.latency.calls.get(operation, 0) for operation in READS)


def _missing(inbox: Inbox, others: int) -> bool:
    return sum('"acme.pay"' in body for _, body in inbox.queue.noted) < others


def _delays(inbox: Inbox) -> list[float]:
    """Returns the delays of the other handler's runs, with their wait in the lane."""
    free, found = inbox.queue.noted[0][0], []
    for sent, body in sorted(inbox.queue.noted):
        start = max(sent, free)
        free = start + timedelta(seconds=1) / STARTS_PER_SECOND
        if '"acme.pay"' in body:
            found.append((start - inbox.due[body]).total_seconds())
    return found


def main() -> None:
    """Prints the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument("--rate", type=float, help="the rate of a destination that the first calls")
    asked = parser.parse_args()
    print(json.dumps(asdict(measure(asked.waiting, asked.others, rate=asked.rate))))  # noqa: T201


if __name__ == "__main__":
    main()
