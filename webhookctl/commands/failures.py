"""`inbox errors`: groups the failed runs by their cause."""

from typing import Annotated

import typer

from webhook_inbox.client.failures import FAILED
from webhook_inbox.client.search import EventQuery
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token
from webhookctl.display.failures import print_group, summary_note
from webhookctl.display.times import moment
from webhookctl.invocation import (
    EventType,
    Handler,
    Invocation,
    Limit,
    Since,
    Source,
    Tenant,
    Until,
    takes_options,
)


@takes_options
def errors(
    call: Invocation,
    *,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    status: Annotated[
        EventStatus | None,
        typer.Option(metavar="STATUS", help=f"Only runs in this status: {', '.join(FAILED)}."),
    ] = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
) -> None:
    """Group failing and dead runs by handler, error class, line and message, the largest first.

    --since and --until select by the time at which an event was received. Quoted texts, ids,
    numbers and times in a message are replaced by their kind, unless they are the same in every
    run.
    """
    now = call.clock.now()
    low, high = (None if text is None else moment(text, now) for text in (since, until))
    query = EventQuery(source, type_, status, handler, low, high, tenant and token(tenant))
    summary = call.client.failures.summarize(query, limit=limit)
    if call.as_json:
        call.output.results(summary.groups)
    else:
        for each in summary.groups:
            print_group(call.output, each, now)
    shows_next = bool(summary.runs) and not call.as_json
    next_ = " `replay` lists the runs first, and sends them with --yes." if shows_next else ""
    call.output.note(f"{summary_note(summary)}{next_}")
