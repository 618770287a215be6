"""`sources reconcile`: compares a provider's delivery log with the ledger."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.names import known_source, require_known
from webhook_inbox.client.target import Target
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.secret_document import TOOLS
from webhookctl.command_tree import CommandTree
from webhookctl.delivery_logs.api import Api, Refused, Unusable, address, send
from webhookctl.delivery_logs.comparison import Comparison, DeliveryLog, Logged, compare
from webhookctl.delivery_logs.github import GitHubLog
from webhookctl.delivery_logs.stripe import StripeLog
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Why, takes_options

COLUMNS: Final = (
    Column("AT"),
    Column("EVENT_ID", Fit.ID),
    Column("TYPE", Fit.NAME),
    Column("ANSWERED"),
)
ASKED: Final = "asked"
LEFT: Final = "not asked"
# A token is one ASCII word; any other text would be truncated or inject a header.
TOKEN_LIMIT: Final = 4096
LOGS: Final[Mapping[str, type[GitHubLog] | type[StripeLog]]] = {
    "github": GitHubLog,
    "stripe": StripeLog,
}

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
    log = _log(call, source, hook, token=token or f"{source}-api", api=api)
    if low < now - log.memory:
        call.output.note(f"Note: the provider's log covers only {log.memory.days} days.")
    found = _compared(call, source, log, (low, high))
    results: dict[str, str] = {}
    if yes and found.missing:
        about = {"source": source, "hook": hook, "since": iso(low), "until": iso(high)}
        with call.audited(AuditedAction.REDELIVER, by, reason=reason, **about) as counts:
            results = _request(call, log, found.missing)
            counts.update(result.partition(",")[0] for result in results.values())
    _show(call, source, found, results, window=(low, high))
    if any(result != ASKED for result in results.values()):
        raise typer.Exit(1)


def _compared(
    call: Invocation, source: str, log: DeliveryLog, window: tuple[datetime, datetime]
) -> Comparison:
    spec = known_source(call.target, source)
    types = ("*",) if spec is None else spec.types
    try:
        return compare(
            log.entries(*window),
            call.target.table,
            source=source,
            wants=lambda type_: matches(types, type_),
            now=call.clock.now(),
        )
    except Refused as error:
        raise CommandError(
            f"the provider's API answered {error}: check that --hook names the webhook and that"
            " the token may read it"
        ) from error


def _log(call: Invocation, source: str, hook: str, *, token: str, api: str) -> DeliveryLog:
    target = call.target
    require_known(target, source=source, handler=None)
    spec = known_source(target, source)
    name = source if spec is None else spec.provider
    log = LOGS.get(name)
    if log is None:
        raise CommandError(f"{name} has no delivery log to query; supported: {', '.join(LOGS)}")
    try:
        named = log.named(hook)
    except ValueError as error:
        raise CommandError(f"--hook {hook} is no webhook of {name}: {error}") from error
    client = Api(
        name=name,
        base=address(api or log.address),
        headers=log.headers(_token(call, target, token)),
        send=send,
        clock=call.clock,
        calm=log.calm,
    )
    return log(client, named)


def _token(call: Invocation, target: Target, name: str) -> str:
    """Returns the API's token; raises CommandError where it is missing or malformed."""
    remedy = f"`{call.program.command('secrets set', '--create', argument=name)}`"
    values = target.secret_documents.read(TOOLS).get(name)
    if not values:
        raise CommandError(
            f"the API token is not set: run {remedy}, or name its secret with --token"
        )
    value = values[0]
    if not value.isascii() or not value.isprintable() or " " in value or len(value) > TOKEN_LIMIT:
        raise CommandError(f"the secret {name} is not a token, which is one word: run {remedy}")
    return value


def _request(call: Invocation, log: DeliveryLog, missing: tuple[Logged, ...]) -> dict[str, str]:
    """Requests each event again, oldest first; returns the results by event id."""
    results = dict.fromkeys((entry.event_id for entry in missing), LEFT)
    with call.output.progress("requested", len(missing)) as advance:
        for number, entry in enumerate(missing):
            if number:
                call.clock.sleep(log.pause)
            try:
                log.resend(entry)
                results[entry.event_id] = ASKED
            except Refused as error:
                # Too old, or of a webhook that has changed; the next event may succeed.
                results[entry.event_id] = f"refused, {error}"
            except Unusable as error:
                call.output.note(f"webhookctl: {error}")
                break
            advance(1)
    return results


def _show(
    call: Invocation,
    source: str,
    found: Comparison,
    results: Mapping[str, str],
    *,
    window: tuple[datetime, datetime],
) -> None:
    if call.as_json:
        call.output.json(
            {
                "source": source,
                "since": iso(window[0]),
                "until": iso(window[1]),
                "looked_at": found.looked_at,
                "unwanted": found.unwanted,
                "missing": [_entry(entry, results) for entry in found.missing],
            }
        )
        return
    if found.missing:
        rows = [_cells(entry, results) for entry in found.missing]
        columns = (*COLUMNS, Column("REDELIVERY", Fit.NOTE)) if results else COLUMNS
        call.output.table(columns, rows, now=call.clock.now())
    call.output.note(_summary(call, source, found, results))


def _entry(entry: Logged, results: Mapping[str, str]) -> dict[str, Any]:
    return {
        "event_id": entry.event_id,
        "type": entry.type,
        "at": iso(entry.at),
        "answered": entry.answered,
        "redelivery": results.get(entry.event_id),
    }


def _cells(entry: Logged, results: Mapping[str, str]) -> list[object]:
    cells: list[object] = [entry.at, entry.event_id, entry.type, entry.answered or "-"]
    return [*cells, results[entry.event_id]] if results else cells


def _summary(call: Invocation, source: str, found: Comparison, results: Mapping[str, str]) -> str:
    events = counted(found.looked_at, "event")
    if not found.missing:
        return f"{events} in the log, none missing."
    head = f"{len(found.missing)} of {events} in the log missing."
    if not results:
        return f"{head} Add --yes to have the provider send them again."
    asked = sum(result == ASKED for result in results.values())
    again = call.program.command("inbox list", "--source", source)
    return f"{head} Requested {asked}; check `{again}` in a minute."
