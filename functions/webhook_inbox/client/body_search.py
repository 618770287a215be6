"""Searches the bodies of stored events by a JMESPath condition."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import EventQuery, read_ahead
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.model import Overview, StoredEvent
from webhook_inbox.domain.prices import S3_GETS
from webhook_inbox.ledger.queries import Ledger, Received
from webhook_inbox.replay.body_condition import compiled, is_true, value_of

# The bodies that are read at a time; each is in memory, and may have 10 MB.
READERS: Final = 8
# Dollars for reading a body from S3, where large ones are.
GET: Final = S3_GETS / 1_000_000


@dataclass(frozen=True, slots=True)
class BodyMatch:
    """An event whose body matches, without the body, and the value of the expression in it."""

    event: StoredEvent
    value: Any


class BodySearch:
    """The events whose bodies match, newest first; read once, while they are iterated.

    Attributes:
        since: the time from which on events are searched.
        until: the time up to which they are, both included.
        read: the number of bodies that were read.
        size: their bytes.
        reached: when the last event that was read was received; None before the first.
        complete: whether all events were read.
    """

    def __init__(
        self,
        scope: Scope,
        expression: str,
        query: EventQuery,
        *,
        since: datetime,
        until: datetime,
        masks: Masks,
        max_events: int,
        passing: Callable[[], None] | None,
    ) -> None:
        self._table = MeteredTable(scope.table)
        self._ledger = Ledger(table=self._table, blobs=scope.target.blobs)
        self._now = scope.clock.now()
        self._expression = expression
        self._query = query
        self._masks = masks
        self._most = max_events
        self._passing = passing
        self._matches = self._find()
        self.since, self.until = since, until
        self.read = self.size = 0
        self.reached: datetime | None = None
        self.complete = False

    @property
    def dollars(self) -> float:
        """The estimated price of the reads so far."""
        return self._table.dollars + self.read * GET

    def __iter__(self) -> Iterator[BodyMatch]:
        """Returns the matches: a second iteration continues the first.

        Raises:
            Unavailable: the ledger or the bucket failed.
        """
        return self._matches

    def _find(self) -> Iterator[BodyMatch]:
        # The index bounds the time, both ends included: nothing is left out where a search
        # continues.
        received = self._ledger.received(self.since, self.until, newest_first=True)
        names = islice(filter(self._query.names, received), self._most)
        for overview in read_ahead(self._overview, names, at_once=READERS):
            if overview is None:
                continue
            event = overview.event
            self.read, self.size = self.read + 1, self.size + len(event.body)
            self.reached = event.received_at
            if self._passing is not None:
                self._passing()
            if is_true(value_of(self._expression, event.body)):
                masked = self._masks.body(event.source, event.body)
                value = value_of(self._expression, masked)
                yield BodyMatch(replace(event, body=b""), value)
        self.complete = self.read < self._most

    def _overview(self, name: Received) -> Overview | None:
        try:
            return self._ledger.overview(name.source, name.event_id, now=self._now, with_body=True)
        except (Permanent, Skipped):
            return None  # Its payload is gone, or erased.


def require_expression(expression: str) -> None:
    """Raises WrongArgument for a text that is not JMESPath."""
    try:
        compiled(expression)
    except ValueError as error:
        raise WrongArgument(f"JMESPATH {expression!r}: {error}") from error
