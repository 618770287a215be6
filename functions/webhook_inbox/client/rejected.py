"""The rejected deliveries: listed, explained, verified again, and released."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Final

from webhook_inbox import providers
from webhook_inbox.adapters.https import HttpsFetcher
from webhook_inbox.client.diagnosis.diagnose import Diagnosis, diagnose
from webhook_inbox.client.diagnosis.hypothesis import Trial
from webhook_inbox.client.errors import NotFound, Refused
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.names import known_source, require_known
from webhook_inbox.client.operation import Operation
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.errors import Permanent, Reason
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.events import GENERAL_HEADERS
from webhook_inbox.ingest.rejected import (
    PER_MINUTE,
    RejectedDelivery,
    RejectedFilter,
    find,
    full_minutes,
)
from webhook_inbox.ingest.release import Reverification, ReverifiedDelivery
from webhook_inbox.ledger import payloads

# Longer texts are not ids, and could exceed the limit of a key.
ID_LIMIT: Final = 64
MINUTE: Final = timedelta(minutes=1)
UNSHOWN: Final = "(stored, not shown)"
UNSTORED: Final = "(not stored)"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected delivery, without the values that could authenticate its sender (G10).

    Attributes:
        id: its id.
        source: the source that it was sent to.
        received_at: when it was received.
        reason: why it was rejected.
        detail: why in words.
        method: the method of the request.
        path: its path.
        query_fields: the names of its query's fields.
        headers: its headers; the value of one that is a secret is replaced by a remark.
        fingerprint: the digest of its body.
        body_size: the bytes of its body.
        expires_at: when it is deleted.
        released_at: when it was released; None, as those that follow, if it was not.
        released_by: who released it.
        released_as: the outcome.
        released_event_id: its event.
    """

    id: str
    source: str
    received_at: datetime
    reason: Reason
    detail: str | None
    method: str
    path: str
    query_fields: tuple[str, ...]
    headers: Mapping[str, str]
    fingerprint: str
    body_size: int
    expires_at: datetime
    released_at: datetime | None
    released_by: str | None
    released_as: str | None
    released_event_id: str | None

    @classmethod
    def of(cls, delivery: RejectedDelivery, provider: Provider | None = None) -> "Rejection":
        """Returns a delivery as it may be shown; without its provider, with fewer headers."""
        row = delivery.row
        return cls(
            id=delivery.id,
            source=delivery.source,
            received_at=delivery.received_at,
            reason=delivery.reason,
            detail=row.get("detail") or None,
            method=row["method"],
            path=row["path"],
            query_fields=tuple(name for name, _ in fields(row["query"])),
            headers=_shown_headers(delivery, provider),
            fingerprint=row["fingerprint"],
            body_size=row["body_size"],
            expires_at=delivery.expires_at,
            released_at=delivery.released_at,
            released_by=row.get("released_by"),
            released_as=row.get("released_as"),
            released_event_id=delivery.released_event_id or None,
        )


@dataclass(frozen=True, slots=True)
class RejectionFilter(RejectedFilter):
    """Selects rejected deliveries; (), None and "" select all.

    Attributes:
        source: the source that they were sent to.
    """

    source: str = ""


EVERY: Final = RejectionFilter()


@dataclass(frozen=True, slots=True)
class FullMinutes:
    """The minutes in which a source reached the limit of stored deliveries, newest first.

    Further deliveries of such a minute may have been rejected without being stored.
    """

    source: str
    minutes: tuple[datetime, ...]
    limit: int = PER_MINUTE


class ReleaseOutcome(StrEnum):
    """The result of verifying a rejected delivery again, and of releasing it."""

    VALID = "valid"  # it verifies and has an event
    INVALID = "invalid"  # it still does not verify, or cannot be named
    CHALLENGE = "challenge"  # it verifies and is a handshake without an event
    IGNORED = "ignored"  # it verifies; the source does not store its type
    LOST = "lost"  # its body is gone
    RELEASED = "released"  # it was released before
    ACCEPTED = "accepted"  # released: a new event, its runs sent
    DUPLICATE = "duplicate"  # released: the event was known
    HELD = "held"  # released: a new event with a known body, its runs wait for a person
    UNREADABLE = "unreadable"  # released: its type cannot be read, its runs wait for a person
    CONTRADICTED = "contradicted"  # released: a header contradicts its type, its runs wait
    REPLAYED = "replayed"  # released: known content, whose runs the source forbids
    CONFLICT = "conflict"  # not accepted: its id is known, with other content

    @property
    def is_stored(self) -> bool:
        """Whether the event is stored, by this release or earlier."""
        return self in _STORED

    @property
    def is_fine(self) -> bool:
        """Whether the delivery is valid, and no conflict refuses it."""
        return self not in {ReleaseOutcome.INVALID, ReleaseOutcome.LOST, ReleaseOutcome.CONFLICT}


_STORED: Final = frozenset(
    {
        ReleaseOutcome.RELEASED,
        ReleaseOutcome.ACCEPTED,
        ReleaseOutcome.DUPLICATE,
        ReleaseOutcome.HELD,
        ReleaseOutcome.UNREADABLE,
        ReleaseOutcome.CONTRADICTED,
        ReleaseOutcome.REPLAYED,
    }
)


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A rejected delivery that was verified again, and on request released.

    Attributes:
        id: its id.
        source: its source.
        received_at: when it was received at first.
        result: the result.
        reason: why it is invalid, None if it is not.
        detail: why in words.
        event_id: its event, or that of an earlier release; None without one.
        type: the type of its event.
        handlers: the handlers of its event.
    """

    id: str
    source: str
    received_at: datetime
    result: ReleaseOutcome
    reason: str | None
    detail: str | None
    event_id: str | None
    type: str | None
    handlers: tuple[str, ...]

    @classmethod
    def of(cls, verified: ReverifiedDelivery) -> "ReleaseResult":
        """Returns the result for a delivery."""
        event = verified.event
        return cls(
            id=verified.rejected.id,
            source=verified.rejected.source,
            received_at=verified.rejected.received_at,
            result=ReleaseOutcome(verified.verdict),
            reason=verified.reason or None,
            detail=verified.detail or None,
            event_id=verified.event_id or None,
            type=event.type if event else None,
            handlers=tuple(event.runs) if event else (),
        )


class RejectedDeliveries:
    """The rejected deliveries of the last 7 days.

    Methods that verify take the sources of a manifest; by default those of the deployed one.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(
        self, filters: RejectionFilter = EVERY, *, limit: int | None = None
    ) -> Listing[Rejection]:
        """Returns the deliveries that the filter selects, newest first.

        Raises:
            WrongArgument: no such source is deployed.
        """
        by_source = self._by_source(filters, newest_first=True)
        newest = merge(*by_source, key=lambda each: each.received_at, reverse=True)
        return Listing(self._scope, map(Rejection.of, newest), limit=limit)

    def full_minutes(
        self, filters: RejectionFilter = EVERY, *, since: datetime | None = None
    ) -> Sequence[FullMinutes]:
        """Returns the minutes of the filter's time in which a source reached the limit.

        Args:
            filters: the filter.
            since: where the filter has no start, that of the time.
        """
        scope, low = self._scope, filters.since or since
        found: list[FullMinutes] = []
        for name in self._scope.sources(filters.source):
            full = full_minutes(scope.table, name, now=scope.clock.now())
            listed = takewhile(lambda minute: low is None or minute + MINUTE > low, full)
            minutes = tuple(m for m in listed if filters.until is None or m < filters.until)
            if minutes:
                found.append(FullMinutes(name, minutes))
        return found

    def get(self, id_: str, *, source: str = "") -> Rejection:
        """Returns one delivery.

        Raises:
            NotFound: there is no such delivery.
            WrongArgument: no such source is deployed.
        """
        delivery = self._find(id_, source)
        spec = known_source(self._scope.target, delivery.source)
        return Rejection.of(delivery, None if spec is None else providers.load(spec))

    def body(self, id_: str, *, source: str = "", personal_to: Actor | None = None) -> bytes:
        """Returns the body of one delivery, its personal fields masked.

        Args:
            id_: the delivery.
            source: its source; by default it is looked for in all.
            personal_to: who sees the personal fields, which the audit records first.

        Raises:
            NotFound, WrongArgument: as `get`.
            Refused: the body is gone, or the client only reads and may not record the audit.
        """
        delivery = self._find(id_, source)
        masks = Masks(
            self._scope, show_to=personal_to, command="rejected show", delivery=delivery.id
        )
        try:
            body = payloads.unpack(delivery.row, self._scope.target.blobs)
        except Permanent as error:
            raise Refused(str(error)) from error
        return masks.body(delivery.source, body)

    def diagnose(self, id_: str, *, source: str, manifest: Manifest | None = None) -> Diagnosis:
        """Explains why a delivery fails with the present secrets.

        Raises:
            NotFound: there is no such delivery.
            Refused: the manifest does not have its source, or its body is gone.
        """
        sources = self._manifest(manifest)
        [delivery] = self._chosen(RejectionFilter(ids=(id_,), source=source), 1, sources)
        spec = sources.sources[source]
        try:
            found = self._reverification(sources).delivery(delivery)
        except Permanent as error:
            raise Refused(str(error)) from error
        shared, ports = providers.load(spec).needs_secret, self._ports
        secrets = ports.secrets.get(spec.secret) if shared else ()
        return diagnose(Trial(spec, found, secrets), fetcher=ports.fetcher)

    def verify(
        self,
        filters: RejectionFilter = EVERY,
        *,
        limit: int | None = None,
        manifest: Manifest | None = None,
    ) -> Listing[ReleaseResult]:
        """Verifies deliveries again with the present secrets, as of their arrival; writes nothing.

        Raises:
            WrongArgument: no such source is deployed.
            NotFound: there is no delivery with one of the filter's ids.
            Refused: the manifest does not have the source of a delivery.
        """
        sources = self._manifest(manifest)
        verification = self._reverification(sources)
        chosen = self._chosen(filters, limit, sources)
        results = (ReleaseResult.of(verification.check(each)) for each in chosen)
        return Listing(self._scope, results, limit=limit)

    def release(
        self,
        filters: RejectionFilter = EVERY,
        *,
        limit: int | None = None,
        manifest: Manifest | None = None,
        reason: str = "",
        by: Actor,
    ) -> Operation[ReleaseResult]:
        """Accepts the valid ones of the deliveries, each once: the call is safe to repeat.

        Raises:
            WrongArgument, NotFound: as `verify`.
            Refused: as `verify`; or the manifest has a lane that is not deployed.
            Unavailable: while iterated, AWS failed; it says what was done.
        """
        scope = self._scope
        scope.require_write()
        sources = self._manifest(manifest)
        self._require_lanes(sources)
        verification = self._reverification(sources)
        chosen = self._chosen(filters, limit, sources)

        def steps(operation: Operation[ReleaseResult]) -> Iterator[ReleaseResult]:
            with scope.audited(
                AuditedAction.RELEASE, by, reason=reason, **_texts(filters)
            ) as counts:
                operation.counts = counts
                for each in chosen:
                    if operation.ended_by:
                        break
                    now = scope.clock.now()
                    released = verification.release(each, by=by, reason=reason, now=now)
                    result = ReleaseResult.of(released)
                    counts[result.result] += 1
                    yield result

        return Operation(steps, done=_accepted)

    def _require_lanes(self, manifest: Manifest) -> None:
        missing = set(manifest.lanes) - set(self._scope.target.queue_urls)
        if missing:
            names = ", ".join(sorted(missing))
            raise Refused(f"the deployed inbox has no lane {names}: deploy first")

    def _manifest(self, manifest: Manifest | None) -> Manifest:
        return self._scope.target.manifest if manifest is None else manifest

    @property
    def _ports(self) -> Ports:
        target = self._scope.target
        return replace(self._scope.ports, secret_store=target.secrets, fetcher=HttpsFetcher())

    def _reverification(self, manifest: Manifest) -> Reverification:
        return Reverification(manifest, self._ports, providers=providers.load)

    def _by_source(
        self, filters: RejectionFilter, *, newest_first: bool = False
    ) -> Sequence[Iterator[RejectedDelivery]]:
        scope = self._scope
        require_known(scope.target, source=filters.source or None, handler=None)
        if impossible := [each for each in filters.ids if not 0 < len(each) <= ID_LIMIT]:
            raise NotFound(self._unknown(impossible))
        table, now = scope.table, scope.clock.now()
        return [
            find(table, name, filters, now=now, newest_first=newest_first)
            for name in self._scope.sources(filters.source)
        ]

    def _find(self, id_: str, source: str) -> RejectedDelivery:
        filters = RejectionFilter(ids=(id_,), source=source)
        delivery = next(chain.from_iterable(self._by_source(filters)), None)
        if delivery is None:
            raise NotFound(self._unknown([id_]))
        return delivery

    def _chosen(
        self, filters: RejectionFilter, limit: int | None, manifest: Manifest
    ) -> Sequence[RejectedDelivery]:
        found = list(islice(chain.from_iterable(self._by_source(filters)), limit))
        missing = set(filters.ids) - {delivery.id for delivery in found}
        if missing:
            raise NotFound(self._unknown(sorted(missing)))
        for delivery in found:
            if delivery.source not in manifest.sources:
                raise Refused(
                    f"inbox.toml has no source {delivery.source}: add it, or filter with --source"
                )
        return found

    def _unknown(self, ids: Sequence[str]) -> str:
        listed = self._scope.program.command("rejected list")
        return (
            f"no rejected delivery {', '.join(ids)}: search with `{listed}`"
            " (they are stored for 7 days)"
        )


def _accepted(counts: Counter[str]) -> str:
    return f"{sum(counts[each] for each in ReleaseOutcome if each.is_stored)} were accepted"


def _texts(filters: RejectionFilter) -> dict[str, str | None]:
    """Returns the filters that are given, for the audit."""
    return {
        "source": filters.source,
        "rejected": ", ".join(filters.ids),
        "rejected_for": ", ".join(filters.reasons),
        "since": iso(filters.since),
        "until": iso(filters.until),
    }


def _shown_headers(delivery: RejectedDelivery, provider: Provider | None) -> dict[str, str]:
    """Returns the headers; values that could authenticate a sender are masked."""
    harmless = GENERAL_HEADERS | {"host"}
    if provider is not None:
        harmless |= provider.kept_headers
        harmless -= provider.signature_headers | provider.token_headers
    row = delivery.row
    headers: Mapping[str, str] = row["headers"]
    stored = (
        headers.keys() | row.get("unread_headers", {}).keys() | row.get("unread_tokens", {}).keys()
    )
    names = sorted(stored | {*row.get("header_names", ())})
    shown = {name: UNSHOWN if name in stored else UNSTORED for name in names}
    return shown | {k: v for k, v in headers.items() if k in harmless}
