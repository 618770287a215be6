"""`inbox search`: finds events by a JMESPath condition on their bodies."""

import json
from datetime import timedelta
from itertools import islice
from typing import Annotated, Final

import typer

from webhook_inbox.client.body_search import BodyMatch, BodySearch, require_expression
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.times import iso, span
from webhook_inbox.domain.printable import counted, cut
from webhookctl.display.event import match_object
from webhookctl.display.output import priced
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import (
    EventType,
    Invocation,
    Limit,
    ShowPersonal,
    Source,
    Until,
    takes_options,
)

# The seconds between two lines of progress.
PROGRESS: Final = timedelta(seconds=5)
VALUE_SHOWN: Final = 200
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
        require_expression(expression)
    except WrongArgument as error:
        raise typer.BadParameter(str(error)) from error
    if show_personal and not show_value:
        raise typer.BadParameter("--show-personal is about the value: add --show-value")
    now = call.clock.now()
    progress = Progress(call)
    found = call.client.events.search(
        expression,
        since=moment(since, now),
        until=moment(until, now) if until else now,
        source=source,
        type_=type_,
        max_events=max_events,
        personal_to=call.personal_reader(show=show_personal),
        passing=lambda: progress.show(found),
    )
    rows: list[tuple[object, ...]] = []
    for each in islice(found, limit):
        if call.as_json:
            value = {"value": each.value} if show_value else {}
            call.output.json({**match_object(each), **value})
        else:
            rows.append(_row(each, show_value=show_value))
    if rows:
        columns = (*COLUMNS, VALUE) if show_value else COLUMNS
        call.output.table(columns, rows, now=now)
    hidden = " Add --show-value to print the values." if rows and not show_value else ""
    call.output.note(_summary(found, call.clock.now() - now) + hidden)


class Progress:
    """Notes every 5 seconds how far a search came, by time: the number of events is not known."""

    def __init__(self, call: Invocation) -> None:
        self._call = call
        self._began = self._noted = call.clock.now()

    def show(self, search: BodySearch) -> None:
        """Notes how far it came, if it is time."""
        now = self._call.clock.now()
        if search.reached is None or now - self._noted < PROGRESS:
            return
        self._noted = now
        length = max(search.until - search.since, timedelta(seconds=1))
        share = (search.until - search.reached) / length
        left = (now - self._began) * (1 - share) / max(share, 0.001)
        self._call.output.note(
            f"Read {counted(search.read, 'event')}, {share:.0%} of the time; about {span(left)}"
            " left."
        )


def _summary(search: BodySearch, took: timedelta) -> str:
    """Returns how much was read, its price, and how to continue if it is not all."""
    read, dollars = counted(search.read, "event"), priced(search.dollars)
    text = f"Read {read} ({search.size:,} bytes) in {span(took)}, for {dollars}."
    if search.complete or search.reached is None:
        return text
    return f"{text} Older ones were not read: continue with --until {iso(search.reached)}."


def _row(found: BodyMatch, *, show_value: bool) -> tuple[object, ...]:
    event = found.event
    row = (event.received_at, event.source, event.type, event.event_id)
    if not show_value:
        return row
    return (*row, cut(json.dumps(found.value, ensure_ascii=False), VALUE_SHOWN))
