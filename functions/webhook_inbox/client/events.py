"""The events: lists, inspects, searches, exports, follows and erases them."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.client.body_search import BodySearch, require_expression
from webhook_inbox.client.erasing import (
    ErasableEvent,
    ErasedEvent,
    TenantErasure,
    erase_event,
    find_erasable,
)
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.event_page import EventPage, read_page
from webhook_inbox.client.event_state import EventDetails, EventState
from webhook_inbox.client.evidence import Logs
from webhook_inbox.client.exporting import INDEX_LAG, EventExport, LineForm, files_at, whole_hours
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.lookup import at_present, conflicts_of, the_one
from webhook_inbox.client.names import known_source, require_known
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import WINDOW, EventQuery, find
from webhook_inbox.client.tail import Tail
from webhook_inbox.domain.audit import Actor, EventName
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus, Overview
from webhook_inbox.ingest.ignored import IgnoredType, find_ignored

# A tail begins with the events of the last minute.
BEFORE: Final = timedelta(minutes=1)
# The attempts left do not matter for events in these statuses.
SETTLED: Final = frozenset({EventStatus.DONE, EventStatus.SKIPPED, EventStatus.ACCEPTED})


class Events:
    """The events of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(
        self, query: EventQuery | None = None, *, limit: int | None = None
    ) -> Listing[EventState]:
        """Returns the events that match, newest first; by default those of the last 24 hours.

        A query by the statuses dead_letter, held, failed, deferred and pending finds events of any
        age. Iterating raises WrongArgument where nothing matches an unknown source or handler.
        """
        return Listing(self._scope, self._find(query or EventQuery()), limit=limit)

    def _find(self, query: EventQuery) -> Iterator[EventState]:
        scope, now, count = self._scope, self._scope.clock.now(), 0
        for count, overview in enumerate(find(scope.table, query, now=now), start=1):  # noqa: B007 - the last number
            yield EventState.of(overview, now=now, program=scope.program, logs=self._logs)
        if not count:
            require_known(scope.target, source=query.source, handler=query.handler)

    def page(self, query: EventQuery, *, matches: Callable[[EventState], bool]) -> EventPage:
        """Returns the newest 50 events that match, as far as one page of a console reads.

        The search for a rare status in a day of a million events would take minutes, so the page
        says how far it came, and the next one continues there.

        Args:
            query: the query.
            matches: whether the page shows an event.
        """
        return read_page(self._scope, query, matches=matches)

    @property
    def _logs(self) -> Logs:
        return Logs(self._scope.target.log_groups, self._scope.target.region)

    def get(
        self,
        event_id: str,
        *,
        source: str | None = None,
        with_body: bool = False,
        personal_to: Actor | None = None,
    ) -> EventDetails:
        """Returns an event, with the place in line of its waiting runs.

        Args:
            event_id: its id at the provider.
            source: its source; needed where several have an event with this id.
            with_body: whether to read its body.
            personal_to: who sees the personal fields of the body, which the audit records
                first; None masks them.

        Raises:
            NotFound: there is no such event.
            Refused: several sources have an event with this id, or the client only reads and the
                audit cannot be written.
            WrongArgument: there is no such source.
        """
        scope, now = self._scope, self._scope.clock.now()
        if with_body:
            overview = self._find_masked(event_id, source, personal_to, "inbox inspect")
        else:
            overview = the_one(scope, event_id, source)
        event = overview.event
        handlers = {} if overview.status in SETTLED else scope.manifest.handlers
        state = EventState.of(
            at_present(scope, overview, now),
            now=now,
            program=scope.program,
            logs=self._logs,
            attempt_limits={name: spec.max_attempts for name, spec in handlers.items()},
        )
        spec = known_source(scope.target, event.source)
        return EventDetails(
            **{each.name: getattr(state, each.name) for each in fields(state)},
            provider=event.source if spec is None else spec.provider,
            conflicts=tuple(conflicts_of(scope, event.source, event.event_id)),
        )

    def export(
        self,
        event_id: str,
        *,
        source: str | None = None,
        personal_to: Actor | None = None,
    ) -> EventState:
        """Returns an event with its body, without what its attempts can be looked up by.

        See `get`, also for what it raises.
        """
        overview = self._find_masked(event_id, source, personal_to, "inbox export")
        now = self._scope.clock.now()
        return EventState.of(overview, now=now, program=self._scope.program)

    def _find_masked(
        self, event_id: str, source: str | None, show_to: Actor | None, command: str
    ) -> Overview:
        """Returns the event with its body, whose personal fields are masked unless `show_to`."""
        scope = self._scope
        overview = the_one(scope, event_id, source, with_body=show_to is None)
        event = EventName(overview.event.source, overview.event.event_id)
        masks = Masks(scope, show_to=show_to, command=command, event=event)
        if show_to is not None:
            # Read after the audit row was written.
            overview = the_one(scope, event_id, event.source, with_body=True)
        return replace(overview, event=masks.event(overview.event))

    def ignored(
        self,
        *,
        source: str | None = None,
        type_: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[IgnoredType]:
        """Returns the types that were acknowledged and not stored, with counts of whole UTC days.

        Args:
            source: only of this source.
            type_: only types that match this pattern.
            since: the first day; by default that of 24 hours before `until`.
            until: the last day; by default today.
        """
        return Listing(self._scope, self._ignored(source, type_, since, until))

    def _ignored(
        self,
        source: str | None,
        type_: str | None,
        since: datetime | None,
        until: datetime | None,
    ) -> Iterator[IgnoredType]:
        scope, now, count = self._scope, self._scope.clock.now(), 0
        high = until or now
        low = since or high - WINDOW
        for name in scope.sources(source):
            for each in find_ignored(scope.table, name, since=low, until=high, now=now):
                if type_ is None or (each.type is not None and matches((type_,), each.type)):
                    count += 1
                    yield each
        if not count:
            require_known(scope.target, source=source, handler=None)

    def search(
        self,
        expression: str,
        *,
        since: datetime,
        until: datetime | None = None,
        source: str | None = None,
        type_: str | None = None,
        max_events: int = 10_000,
        personal_to: Actor | None = None,
        passing: Callable[[], None] | None = None,
    ) -> BodySearch:
        """Returns the events whose JSON body fulfils a JMESPath expression, newest first.

        A body matches if the value is neither null, false nor empty.

        Args:
            expression: the expression.
            since: the time from which on events are searched.
            until: the time up to which they are; by default the present.
            source: only of this source.
            type_: only types that match this pattern.
            max_events: the bodies that are read at most.
            personal_to: who sees personal fields in values; see `get`.
            passing: called after each body that was read.

        Raises:
            WrongArgument: the expression is not JMESPath, or there is no such source.
            Refused: the client only reads, and the audit cannot be written.
        """
        scope = self._scope
        require_expression(expression)
        require_known(scope.target, source=source, handler=None)
        masks = Masks(
            scope,
            show_to=personal_to,
            command="inbox search",
            expression=expression,
            source=source,
        )
        return BodySearch(
            scope,
            expression,
            EventQuery(source, type_),
            since=since,
            until=until or scope.clock.now(),
            masks=masks,
            max_events=max_events,
            passing=passing,
        )

    def export_hours(
        self,
        to: str,
        *,
        since: datetime,
        form: LineForm,
        until: datetime | None = None,
        source: str | None = None,
        personal_to: Actor | None = None,
    ) -> EventExport:
        """Returns an export of all events of whole hours, which writes while it is iterated.

        Args:
            to: a directory, or s3://BUCKET/PREFIX, to which the caller's credentials may write.
            since: the first hour.
            form: returns the line for an event.
            until: the end of the last hour; by default the present.
            source: only of this source.
            personal_to: who sees personal fields; see `get`.

        Raises:
            Refused: no whole hour has ended in this time, `to` names no bucket, or the client only
                reads and the audit cannot be written.
            WrongArgument: there is no such source.
        """
        scope = self._scope
        now = scope.clock.now()
        hours = whole_hours(since, min(until or now, now - INDEX_LAG))
        if not hours:
            raise Refused(
                "no whole hour has ended in this time: give an earlier --since, or a later --until"
            )
        require_known(scope.target, source=source, handler=None)
        files = files_at(scope, to)
        masks = Masks(scope, show_to=personal_to, command="inbox export", to=to, source=source)
        return EventExport(scope, files, hours, source=source, masks=masks, form=form)

    def tail(self, query: EventQuery | None = None, *, since: datetime | None = None) -> Tail:
        """Returns the changes from a time on: by default, of the last minute.

        Raises:
            WrongArgument: there is no such source or handler.
        """
        scope, chosen = self._scope, query or EventQuery()
        require_known(scope.target, source=chosen.source, handler=chosen.handler)
        return Tail(scope, chosen, since=since or scope.clock.now() - BEFORE)

    def plan_erasure(self, event_id: str, *, source: str | None = None) -> ErasableEvent:
        """Returns the event that `erase` would erase, and raises what `erase` would."""
        return find_erasable(self._scope, event_id, source)

    def erase(
        self, event_id: str, *, source: str | None = None, reason: str, by: Actor
    ) -> ErasedEvent:
        """Erases an event's body, headers and error texts for good.

        Its identity, runs and effects stay, so a later delivery is still a duplicate. Runs that
        have not begun end as skipped.

        Raises:
            NotFound: there is no such event.
            Refused: several sources have an event with this id, or the client only reads.
        """
        return erase_event(self._scope, event_id, source, reason=reason, by=by)

    def plan_tenant_erasure(self, tenant: str, *, source: str | None = None) -> TenantErasure:
        """Returns what counts a tenant's events while it is iterated, and erases nothing."""
        return TenantErasure(self._scope, tenant, source, reason="", by=None)

    def erase_tenant(
        self, tenant: str, *, source: str | None = None, reason: str, by: Actor
    ) -> TenantErasure:
        """Returns the erasure of a tenant's stored events, which runs while it is iterated.

        Raises:
            Refused: the client only reads.
        """
        self._scope.require_write()
        return TenantErasure(self._scope, tenant, source, reason=reason, by=by)
