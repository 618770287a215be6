"""`inbox search`: finds events by a JMESPath condition on their bodies."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.names import require_known
from webhook_inbox.client.times import iso, span
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.model import Overview
from webhook_inbox.domain.prices import S3_GETS
from webhook_inbox.domain.printable import cut
from webhook_inbox.ledger.queries import Ledger, Received
from webhook_inbox.replay.body_condition import compiled, is_true, value_of
from webhookctl.display.output import counted, priced
from webhookctl.display.personal import Masks, ShowPersonal
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import EventType, Invocation, Limit, Source, Until, takes_options
from webhookctl.search import Wanted, read_ahead

# The bodies that are read at a time; each is in memory, and may have 10 MB.
READERS: Final = 8
# The seconds between two lines of progress.
PROGRESS: Final = timedelta(seconds=5)
VALUE_SHOWN: Final = 200
# Dollars for reading a body from S3, where large ones are.
GET: Final = S3_GETS / 1_000_000
COLUMNS: Final = (
    Column("RECEIVED"),
    Column("SOURCE", Fit.NAME),
    Column("TYPE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
)
VALUE: Final = Column("VALUE", Fit.NOTE)


@takes_options
def search(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    expression: Annotated[
        str, typer.Argument(metavar="JMESPATH", help="For example \"customer.id == 'c-9'\".")
    ],
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Only from 30m, 2h or 7d ago on, or a time.")
    ] = "1h",
    until: Until = None,
    source: Source = None,
    type_: EventType = None,
    limit: Limit = 50,
    max_events: Annotated[int, typer.Option(min=1, help="Read at most so many bodies.")] = 10_000,
    show_value: Annotated[
        bool, typer.Option("--show-value", help="Print the value of JMESPATH as well.")
    ] = False,
    show_personal: ShowPersonal = False,
) -> None:
    """Find events whose JSON body fulfils a JMESPath expression, newest first.

    A body is found if the value is neither null, false nor empty. Bodies are not printed.
    """
    try:
        compiled(expression)
    except ValueError as error:
        raise typer.BadParameter(f"JMESPATH {expression!r}: {error}") from error
    if show_personal and not show_value:
        raise typer.BadParameter("--show-personal is about the value: add --show-value")
    now = call.clock.now()
    low, high = moment(since, now), moment(until, now) if until else now
    require_known(call.target, source=source, handler=None)
    table = MeteredTable(call.target.table)
    ledger = Ledger(table=table, blobs=call.target.blobs)
    # The index bounds the time, both ends included: nothing is left out where a search continues.
    wanted = Wanted(source, type_)
    masks = Masks(
        call, show=show_personal, command="inbox search", expression=expression, source=source
    )
    names = filter(wanted.names, ledger.received(low, high, newest_first=True))

    def masked(found: Match) -> Match:
        if not show_value:
            return found
        event = found.overview.event
        return replace(found, value=value_of(expression, masks.body(event.source, event.body)))

    reading = Reading(call, low, high, max_events)
    found = islice(reading.matches(names, ledger, expression), limit)
    rows = [row for each in found if (row := _shown(call, masked(each), show_value=show_value))]
    if rows:
        columns = (*COLUMNS, VALUE) if show_value else COLUMNS
        call.output.table(columns, rows, now=now)
    hidden = " Add --show-value to print the values." if rows and not show_value else ""
    call.output.note(reading.summary(table) + hidden)


@dataclass(frozen=True, slots=True)
class Match:
    """An event and the value of the expression."""

    overview: Overview
    value: Any


@dataclass
class Reading:
    """Reads bodies, newest first, several at a time; counts them, and shows the progress."""

    call: Invocation
    low: datetime
    high: datetime
    most: int
    read: int = 0
    size: int = 0
    place: datetime | None = None
    ended: bool = False
    begun: datetime = field(init=False)
    told: datetime = field(init=False)

    def __post_init__(self) -> None:
        """Starts the clock."""
        self.begun = self.told = self.call.clock.now()

    def matches(
        self, names: Iterator[Received], ledger: Ledger, expression: str
    ) -> Iterator[Match]:
        """Yields the events whose bodies match.

        Raises:
            Unavailable: the ledger or the bucket failed.
        """
        now = self.begun

        def read(name: Received) -> Overview | None:
            try:
                return ledger.overview(name.source, name.event_id, now=now, with_body=True)
            except (Permanent, Skipped):
                return None  # Its payload is gone, or erased.

        for overview in read_ahead(read, islice(names, self.most), at_once=READERS):
            if overview is None:
                continue
            body = overview.event.body
            self.read, self.size = self.read + 1, self.size + len(body)
            self.place = overview.event.received_at
            self._progress()
            if is_true(value := value_of(expression, body)):
                yield Match(overview, value)
        self.ended = self.read < self.most

    def _progress(self) -> None:
        now = self.call.clock.now()
        if self.place is None or now - self.told < PROGRESS:
            return
        self.told = now
        # By time, since the number of events ahead is not known.
        share = (self.high - self.place) / max(self.high - self.low, timedelta(seconds=1))
        left = (now - self.begun) * (1 - share) / max(share, 0.001)
        self.call.output.note(
            f"Read {counted(self.read, 'event')}, {share:.0%} of the time; about {span(left)} left."
        )

    def summary(self, table: MeteredTable) -> str:
        """Returns how much was read, its price, and how to continue if it is not all."""
        took = span(self.call.clock.now() - self.begun)
        dollars = priced(table.dollars + self.read * GET)
        text = f"Read {counted(self.read, 'event')} ({self.size:,} bytes) in {took}, for {dollars}."
        if self.ended or self.place is None:
            return text
        return f"{text} Older ones were not read: continue with --until {iso(self.place)}."


def _shown(call: Invocation, found: Match, *, show_value: bool) -> tuple[object, ...]:
    """Prints a match as JSON, or returns its row."""
    event = found.overview.event
    if call.as_json:
        value = {"value": found.value} if show_value else {}
        about = {"source": event.source, "event_id": event.event_id, "type": event.type}
        call.output.json({**about, "received_at": iso(event.received_at), **value})
        return ()
    row = (event.received_at, event.source, event.type, event.event_id)
    if not show_value:
        return row
    return (*row, cut(json.dumps(found.value, ensure_ascii=False), VALUE_SHOWN))
