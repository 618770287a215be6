"""The built-in run that splits a batch into one event per item.

    batch ──► item ──► identity ──► stored type? ──► recorded as at ingest ──► runs, ten per call
                          │ no identity, or a conflict: reported after all other items
                          └ every 100 items their runs are sent: the attempt may end there

An attempt may end anywhere without losing an item or running it twice. An item's row is written
under the same condition as at ingest, and runs of a known item are sent only if they have no row.
The next attempt, a simultaneous one, or a replay may therefore record any item again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from webhook_inbox.domain.error_text import shorten
from webhook_inbox.domain.errors import Deferred, Permanent, Rejected, Transient
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.deduplication import IdempotentReceiver
from webhook_inbox.ingest.events import handlers_for, identify, is_stored, item_event, tenant_of
from webhook_inbox.ingest.ignored import IgnoredTypes
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.queue.message import RunMessage

# The reconciler reads events by the time they were received, soon after it. An item of an older
# batch counts as received when it is recorded.
LATE: Final = timedelta(minutes=2)
# Items whose runs are sent together; after a crash the next attempt repeats at most so many.
STRIDE: Final = 100
# Sending their runs takes this long when SQS is slow; with less time no further item is begun.
RESERVE: Final = timedelta(seconds=5)
# The error message names so many failed items, each in so many characters.
TOLD: Final = 5
TOLD_LENGTH: Final = 160


@dataclass(slots=True)
class BatchProgress:
    """The result of an attempt, however it ends; `items` counts outcomes of a complete pass."""

    progress: Mapping[str, Any]
    items: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """The position of a pass: `next` of so many items, outcomes so far, and the first faults."""

    of: int
    next: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def resumed(cls, progress: Mapping[str, Any], *, of: int) -> Self:
        """Continues an unfinished pass of this size; otherwise begins a new one."""
        if "next" not in progress or progress["of"] != of:
            return cls(of)
        return cls(of, progress["next"], dict(progress["counts"]), list(progress["faults"]))

    @property
    def finished(self) -> bool:
        """True once every item has an outcome."""
        return self.next == self.of

    def add(self, outcome: IngestOutcome, fault: str) -> None:
        """Counts the next item."""
        self.next += 1
        self.counts[str(outcome)] = self.counts.get(outcome, 0) + 1
        if fault and len(self.faults) < TOLD:
            self.faults.append(shorten(f"item {self.next}: {fault}", TOLD_LENGTH))

    def progress(self) -> dict[str, Any]:
        """Returns the progress to store with the run."""
        done: dict[str, Any] = {"of": self.of, "counts": dict(self.counts)}
        return done if self.finished else {**done, "next": self.next, "faults": list(self.faults)}

    def complaint(self) -> str:
        """Returns which items failed and why; "" if none did."""
        failed = (IngestOutcome.CONFLICT, IngestOutcome.REJECTED)
        missing = sum(self.counts.get(outcome, 0) for outcome in failed)
        more = [f"and {missing - TOLD} more"] if missing > TOLD else []
        told = "; ".join([*self.faults, *more])
        return told and f"{missing} of {self.of} items were not taken: {told}"


class Splitter:
    """Splits batches."""

    def __init__(
        self, manifest: Manifest, ports: Ports, *, providers: Callable[[SourceSpec], Provider]
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._clock = ports.clock
        self._ignored = IgnoredTypes(ports.table)
        self._receiver = IdempotentReceiver(manifest, ports)

    def split(
        self, batch: StoredEvent, journal: BatchProgress, *, lease: str, end: datetime
    ) -> None:
        """Records the items of a batch, from where its last attempt stopped; updates the journal.

        Raises:
            Deferred: the deadline is near, and there are more items.
            Permanent: an item failed, and all others are recorded; or the event is not a batch.
            Transient: this deployment does not have the source.
            Unavailable: storage or queue failed.
        """
        source = self._manifest.sources.get(batch.source)
        if source is None:
            raise Transient(f"source {batch.source!r} is not in this deployment")
        provider = self._providers(source)
        items = _items(batch, provider, lease)
        tally = Tally.resumed(journal.progress, of=len(items))
        runs: dict[tuple[str, RunMessage], None] = {}
        for item in items[tally.next :]:
            tally.add(*self._record(item, source, provider, batch, runs))
            late = self._is_late(end)
            if late or tally.finished or tally.next % STRIDE == 0:
                self._receiver.send(runs)
                runs.clear()
                journal.progress = tally.progress()
                late = self._count_ignored(end)
            if late and not tally.finished:
                raise Deferred(self._clock.now(), f"{tally.next} of {tally.of} items are taken")
        journal.items = tally.counts
        if complaint := tally.complaint():
            raise Permanent(complaint)

    def _is_late(self, end: datetime) -> bool:
        return self._clock.now() >= end - RESERVE

    def _count_ignored(self, end: datetime) -> bool:
        """Writes the counts of ignored types while there is time; tells whether it is late.

        The counts of a late attempt wait in memory: what it has recorded comes first.
        """
        while not (late := self._is_late(end)) and self._ignored.due(self._clock.now()):
            self._ignored.flush(self._clock.now())
        return late

    def _record(
        self,
        item: Delivery,
        source: SourceSpec,
        provider: Provider,
        batch: StoredEvent,
        runs: dict[tuple[str, RunMessage], None],
    ) -> tuple[IngestOutcome, str]:
        """Records an item and adds its runs; returns its outcome and, if it failed, the reason."""
        try:
            identity = identify(item, provider, self._manifest, source)
        except Rejected as error:
            return IngestOutcome.REJECTED, str(error)
        if not is_stored(identity, self._manifest, source):
            self._ignored.add(source.name, identity.type, self._clock.now())
            return IngestOutcome.IGNORED, ""
        handlers = handlers_for(identity, self._manifest, source)
        event = item_event(item, provider, identity, handlers, batch=batch)
        # The headers of the batch are not an item's; its tenant is then the batch's.
        event = replace(event, tenant=tenant_of(item, source) or batch.tenant)
        now = self._clock.now()
        if now - event.received_at > LATE:
            event = replace(event, received_at=now)
        recorded = self._receiver.record(event)
        runs.update(dict.fromkeys(recorded.runs))
        conflicts = recorded.outcome is IngestOutcome.CONFLICT
        fault = f"{event.event_id} is known with other content" if conflicts else ""
        return recorded.outcome, fault


def _items(batch: StoredEvent, provider: Provider, lease: str) -> Sequence[Delivery]:
    """Returns a batch's items, each as a delivery."""
    whole = Delivery(
        source=batch.source,
        method="POST",
        path=f"/webhooks/{batch.source}",
        query="",
        headers=batch.headers,
        body=batch.body,
        received_at=batch.received_at,
        verified=True,
    )
    try:
        items = provider.batch(whole) if provider.batch else None
    except Rejected as error:
        raise Permanent(f"it cannot be split: {error}") from error
    if items is None:
        raise Permanent(f"to the provider {provider.name!r} as it is now it is no batch")
    # As the gateway's request id does at ingest, the id distinguishes a row that this call wrote,
    # whose runs have to be sent, from a row of another attempt or item, whose runs may have begun.
    return [
        replace(item, request_id=f"{batch.request_id}/{lease}/{number}")
        for number, item in enumerate(items, start=1)
    ]
