"""Erases the payload of an event, or of a tenant's events, and keeps the ledger."""

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.client.errors import NotFound
from webhook_inbox.client.lookup import the_one
from webhook_inbox.client.operation import Operation
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ledger.erasure import (
    Erasure,
    ErasureRequest,
    erase,
    erase_of_tenant,
    has_remains,
)
from webhook_inbox.ledger.schema import EVENT_LIFE, dedupe_key

WORKERS: Final = 8
HOUR: Final = timedelta(hours=1)
# The copies that an erasure leaves; docs/operate.md says how long each is kept.
NOT_ERASED: Final = (
    "backups of the table (35 days)",
    "rejected deliveries (7 days)",
    "the handlers' logs and what they sent",
    "recorded results of effects and jobs",
    "errors that jobs reported",
    "selections of replays (7 days)",
    "audit reasons",
    "exports",
    "the event's id, type, tenant and ordering keys",
)
# The index by which a tenant's events are found has no event that has expired.
NOT_ERASED_OF_TENANT: Final = (
    "events that have expired (S3 keeps bodies for 49 days)",
    *NOT_ERASED,
)


@dataclass(frozen=True, slots=True)
class ErasableEvent:
    """An event that can be erased; `runs` is the number of its runs, 0 if it has expired."""

    source: str
    event_id: str
    runs: int


@dataclass(frozen=True, slots=True)
class ErasedEvent:
    """An event whose payload was erased; an absent value is None.

    Attributes:
        source: its source.
        event_id: its id.
        erased_at: when its payload was erased first.
        unfinished: the handlers whose runs are in progress or held: erase it again when they have
            ended, which erases their error texts as well.
        arriving_until: when the last delivery ends that may still store its payload: erase it again
            after that time.
        batch: the id of the batch that still has its text.
        not_erased: the copies that an erasure leaves.
    """

    source: str
    event_id: str
    erased_at: datetime
    unfinished: tuple[str, ...]
    arriving_until: datetime | None
    batch: str | None
    not_erased: tuple[str, ...] = NOT_ERASED


@dataclass(frozen=True, slots=True)
class TenantErasureCounts:
    """The events of a tenant so far.

    Attributes:
        tenant: the tenant.
        events: the number of its events.
        by_source: the same by source.
        erased: those whose payload is erased.
        unfinished: those with runs in progress or held: erase again when these have ended.
        arriving: those with deliveries in progress: erase again in 5 minutes.
        unchanged: those that were erased before, or expired meanwhile.
        batches: the batches that still have the text of an event.
        not_erased: the copies that an erasure leaves.
    """

    tenant: str
    events: int
    by_source: Mapping[str, int]
    erased: int
    unfinished: int
    arriving: int
    unchanged: int
    batches: tuple[str, ...]
    not_erased: tuple[str, ...] = NOT_ERASED_OF_TENANT


def find_erasable(scope: Scope, event_id: str, source: str | None) -> ErasableEvent:
    """Returns the event; objects and error texts outlive the event's row by up to 14 days.

    Raises:
        NotFound: there is no such event.
        Refused: several sources have an event with this id.
    """
    if event_id and not scope.overviews(event_id, source):
        stored = dedupe_key(event_id)
        names = [EventName(each, stored) for each in scope.sources(source)]
        left = [name for name in names if has_remains(scope.table, scope.target.blobs, name)]
        if len(left) == 1:
            return ErasableEvent(*left[0], runs=0)
    event = the_one(scope, event_id, source).event
    return ErasableEvent(event.source, event.event_id, len(event.runs))


def erase_event(
    scope: Scope, event_id: str, source: str | None, *, reason: str, by: Actor
) -> ErasedEvent:
    """Erases an event's payload; `find_erasable` says what it raises."""
    scope.require_write()
    found = find_erasable(scope, event_id, source)
    request = ErasureRequest(found.source, found.event_id, by, reason, scope.clock.now())
    erased = erase(scope.table, scope.target.blobs, scope.randomness, request)
    if erased is None:
        raise NotFound(
            f"{found.event_id} of {found.source} has expired meanwhile: nothing to erase"
        )
    return ErasedEvent(
        source=found.source,
        event_id=found.event_id,
        erased_at=erased.erased_at,
        unfinished=tuple(erased.unfinished),
        arriving_until=erased.arriving_until,
        batch=erased.batch or None,
    )


@dataclass(frozen=True, slots=True)
class ErasedDay:
    """A day of the retention whose events were counted, or erased; 1 is the oldest."""

    day: int
    of: int


class TenantErasure(Operation[ErasedDay]):
    """Reads the events of the retention hour by hour, and erases those of a tenant.

    Each iteration reads a day. Where it ends early, by `stop`, by an interrupt or with its process,
    erased payloads stay erased, and a repeated erasure continues.

    Iterating it raises NotFound where the tenant has no stored event.

    Attributes:
        days: the number of iterations.
    """

    days: Final = EVENT_LIFE.days + 1

    def __init__(
        self, scope: Scope, tenant: str, source: str | None, *, reason: str, by: Actor | None
    ) -> None:
        super().__init__(lambda _: self._erase(), done=lambda counts: f"{counts.total()} erased")
        self._scope = scope
        self._tenant = token(tenant)
        self._source = source
        self._reason = reason
        self._by = by
        self._now = scope.clock.now()
        self._sources = Counter[str]()
        self._batches = set[str]()

    @property
    def erased(self) -> TenantErasureCounts:
        """The events so far."""
        return TenantErasureCounts(
            tenant=self._tenant,
            events=self._sources.total(),
            by_source=dict(self._sources),
            erased=self.counts["erased"],
            unfinished=self.counts["unfinished"],
            arriving=self.counts["arriving"],
            unchanged=self.counts["unchanged"],
            batches=tuple(sorted(self._batches)),
        )

    def _erase(self) -> Iterator[ErasedDay]:
        """Counts or erases the events; the index may miss one of the last seconds."""
        if self._by is None:
            yield from self._read()
        else:
            about = {"tenant": self._tenant, "source": self._source}
            with self._scope.audited(
                AuditedAction.ERASE, self._by, reason=self._reason, **about
            ) as outcomes:
                yield from self._read()
                outcomes.update(self.counts)
        if not self._sources and not self.ended_by:
            raise NotFound(f"no stored event has the tenant {self._tenant}: nothing to erase")

    def _read(self) -> Iterator[ErasedDay]:
        days = self.days
        with ThreadPoolExecutor(WORKERS) as pool:
            for day in range(days):
                begin = self._now - timedelta(days=days - day)
                hours = (begin + hour * HOUR for hour in range(1, 25))
                for sources, outcomes in pool.map(self._hour, hours):
                    self._sources.update(sources)
                    self.counts.update(outcomes)
                if self.ended_by:
                    return
                yield ErasedDay(day + 1, days)

    def _hour(self, begin: datetime) -> tuple[Counter[str], Counter[str]]:
        """Returns the events of an hour by source and by outcome; see `_outcome`."""
        scope = self._scope
        sources, outcomes = Counter[str](), Counter[str]()
        if self.ended_by:
            return sources, outcomes
        for event in scope.ledger().received(begin, begin + HOUR - MILLISECOND):
            if event.tenant == self._tenant and self._source in {None, event.source}:
                sources[event.source] += 1
                if self._by is not None:
                    blobs = scope.target.blobs
                    erased = erase_of_tenant(scope.table, blobs, event, now=self._now)
                    outcomes[_outcome(erased)] += 1
                    if erased and erased.batch:
                        self._batches.add(f"{event.source} {erased.batch}")
        return sources, outcomes


def _outcome(found: Erasure | None) -> str:
    if found is None:
        return "unchanged"
    if found.unfinished:
        return "unfinished"
    return "erased" if found.arriving_until is None else "arriving"
