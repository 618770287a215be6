"""The built-in run that splits a batch: one event for each item, with runs of its own.

    batch ──► item ──► named ──► wanted? ──► recorded as at ingest ──► its runs, ten in a call
                          │ not named, or a conflict: told when all others are taken
                          └ every 100 items all their runs are sent: the attempt may end there

Wherever an attempt ends, nothing is lost and nothing runs twice. An item's row is written under
the same condition as at ingest, and of an item that is known those runs are sent that have no row;
so the next attempt, a second one at the same time, or a replay, may take any item again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from webhook_inbox.domain.errors import Deferred, Permanent, Rejected, Transient
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import Blobs, Clock, Table
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.deduplication import IdempotentReceiver, Taken
from webhook_inbox.ingest.events import item_event
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# Items whose runs are sent together: what a killed worker leaves to be looked at again.
STRIDE: Final = 100
# What sending them takes when SQS is slow: with less time than this no further item is begun.
RESERVE: Final = timedelta(seconds=5)

# What becomes of an item besides what becomes of an event; ingest has the same words.
IGNORED: Final = "ignored"  # of a type that the source does not store
REJECTED: Final = "rejected"  # it cannot be named
# Of the items that were not taken so many are told, each in so many characters.
TOLD: Final = 5
TOLD_LENGTH: Final = 160


@dataclass(slots=True)
class BatchProgress:
    """What is kept of an attempt, however that ends.

    Attributes:
        progress: how far the run has come; stored with it.
        items: how many items were taken in which way, once a pass over the batch is over.
    """

    progress: Mapping[str, Any]
    items: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """How far a pass over a batch has come.

    Attributes:
        of: how many items the batch has.
        next: the place of the first that was not looked at.
        counts: how many were taken in which way.
        faults: the first that could not be taken, and why.
    """

    of: int
    next: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def resumed(cls, progress: Mapping[str, Any], *, of: int) -> Self:
        """Goes on with a pass that was not finished; any other begins anew."""
        if "next" not in progress or progress["of"] != of:
            return cls(of)
        return cls(of, progress["next"], dict(progress["counts"]), list(progress["faults"]))

    @property
    def finished(self) -> bool:
        """Whether every item was looked at."""
        return self.next == self.of

    def add(self, outcome: str, fault: str) -> None:
        """Notes what became of the next item."""
        self.next += 1
        self.counts[str(outcome)] = self.counts.get(outcome, 0) + 1
        if fault and len(self.faults) < TOLD:
            self.faults.append(f"item {self.next}: {fault}"[:TOLD_LENGTH])

    def progress(self) -> dict[str, Any]:
        """Returns what the run keeps."""
        kept: dict[str, Any] = {"of": self.of, "counts": dict(self.counts)}
        return kept if self.finished else {**kept, "next": self.next, "faults": list(self.faults)}

    def complaint(self) -> str:
        """Returns which items were not taken and why, "" where all were."""
        missing = self.counts.get(Taken.CONFLICT, 0) + self.counts.get(REJECTED, 0)
        more = [f"and {missing - TOLD} more"] if missing > TOLD else []
        told = "; ".join([*self.faults, *more])
        return told and f"{missing} of {self.of} items were not taken: {told}"


class Splitter:
    """Splits batches. Its collaborators are ports; it keeps no state."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        providers: Callable[[SourceSpec], Provider],
        table: Table,
        lanes: Lanes,
        blobs: Blobs,
        clock: Clock,
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._clock = clock
        self._acceptance = IdempotentReceiver(
            manifest=manifest, table=table, lanes=lanes, blobs=blobs
        )

    def split(
        self, batch: StoredEvent, journal: BatchProgress, *, lease: str, end: datetime
    ) -> None:
        """Takes the items of a batch, from where its last attempt stopped.

        Args:
            batch: the event with its body.
            journal: how far earlier attempts came; it is told how far this one does.
            lease: what tells this attempt from any other.
            end: when the attempt is ended, whatever it is doing.

        Raises:
            Deferred: its time is nearly up, and there are more items.
            Permanent: all others are taken, and which cannot be; or it is no batch.
            Transient: this deployment has no such source.
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
            tally.add(*self._take(item, source, provider, batch, runs))
            late = self._clock.now() >= end - RESERVE
            if late or tally.finished or tally.next % STRIDE == 0:
                self._acceptance.send(runs)
                runs.clear()
                journal.progress = tally.progress()
            if late and not tally.finished:
                raise Deferred(self._clock.now(), f"{tally.next} of {tally.of} items are taken")
        journal.items = tally.counts
        if complaint := tally.complaint():
            raise Permanent(complaint)

    def _take(
        self,
        item: Delivery,
        source: SourceSpec,
        provider: Provider,
        batch: StoredEvent,
        runs: dict[tuple[str, RunMessage], None],
    ) -> tuple[str, str]:
        """Records an item and adds its runs; returns what became of it, and what is wrong."""
        try:
            identity = provider.identify(item)
        except Rejected as error:
            return REJECTED, str(error)
        if not self._manifest.wants(source, identity.type):
            return IGNORED, ""
        handlers = self._manifest.runs_for(source.name, identity.type)
        event = item_event(item, provider, identity, handlers, batch=batch)
        recorded = self._acceptance.record(event)
        runs.update(dict.fromkeys(recorded.runs))
        conflicts = recorded.taken is Taken.CONFLICT
        fault = f"{event.event_id} is known with other content" if conflicts else ""
        return recorded.taken, fault


def _items(batch: StoredEvent, provider: Provider, lease: str) -> Sequence[Delivery]:
    """Returns a batch's items, as deliveries of their own."""
    whole = Delivery(
        source=batch.source,
        method="POST",
        path=f"/webhooks/{batch.source}",
        query="",
        headers=batch.headers,
        body=batch.body,
        received_at=batch.received_at,
    )
    try:
        items = provider.batch(whole) if provider.batch else None
    except Rejected as error:
        raise Permanent(f"it cannot be split: {error}") from error
    if items is None:
        raise Permanent(f"to the provider {provider.name!r} as it is now it is no batch")
    # As a request's id does at ingest, it tells a row that this very call has written, and whose
    # runs are to be sent, from one of another attempt or item, whose runs may have begun.
    return [
        replace(item, request_id=f"{batch.request_id}/{lease}/{number}")
        for number, item in enumerate(items, start=1)
    ]
