"""`sources reconcile`: compares a provider's delivery log with the ledger."""

from dataclasses import replace
from typing import Annotated, Final

import typer

from webhook_inbox.client.sources import ASKED, LEFT, MissingEvent, ProviderHook, Reconciliation
from webhookctl.command_tree import CommandTree
from webhookctl.display.reconciliation import print_reconciliation
from webhookctl.display.times import moment
from webhookctl.invocation import By, Invocation, Why, takes_options

app: Final = CommandTree(help="Compare sources with their providers.")


@app.callback()
def sources() -> None:
    """Compare sources with their providers."""


@app.command("reconcile")
@takes_options
def reconcile(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A source whose provider is github or stripe.")
    ],
    *,
    hook: Annotated[
        str,
        typer.Option(
            metavar="ID", help="The webhook: OWNER/REPO/ID or ORGANIZATION/ID; Stripe: we_…."
        ),
    ],
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Start of the window: 24h (ago), or a time.")
    ] = "24h",
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="End of the window; newer events may still be in flight."
        ),
    ] = "5m",
    token: Annotated[
        str, typer.Option(metavar="NAME", help="The API token's secret; default SOURCE-api.")
    ] = "",
    api: Annotated[str, typer.Option(metavar="URL", help="The API of GitHub Enterprise.")] = "",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Ask the provider to redeliver the missing events; without it, list them."
        ),
    ] = False,
    reason: Why = "",
    by: By = None,
) -> None:
    """List the events that the provider sent and the ledger lacks; --yes requests them again."""
    now = call.clock.now()
    low, high = moment(since, now), moment(until, now)
    if low >= high:
        raise typer.BadParameter(f"--since {since} is not before --until {until}")
    named = ProviderHook(source, hook, token, api)
    found = call.client.sources.reconcile(named, since=low, until=high)
    if low < found.log_begins_at:
        days = (now - found.log_begins_at).days
        call.output.note(f"Note: the provider's log covers only {days} days.")
    if yes and found.missing:
        found = replace(found, missing=_redeliver(call, found, by, reason))
    print_reconciliation(call, found)
    if any(each.redelivery not in {None, ASKED} for each in found.missing):
        raise typer.Exit(1)


def _redeliver(
    call: Invocation, found: Reconciliation, by: str | None, reason: str
) -> tuple[MissingEvent, ...]:
    requests = call.client.sources.redeliver(found, reason=reason, by=call.actor(by))
    results: list[MissingEvent] = []
    with call.output.progress("requested", len(found.missing)) as advance:
        for each in requests:
            results.append(each)
            if each.redelivery != LEFT:
                advance(1)
    if requests.ended_by:
        call.output.note(f"webhookctl: {requests.ended_by}")
    return tuple(results)
