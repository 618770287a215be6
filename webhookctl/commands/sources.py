"""`sources reconcile`: what the provider says it sent, against what the ledger has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from botocore.exceptions import ClientError

from webhook_inbox.domain.manifest import matches
from webhookctl.checkout import known_provider, known_types
from webhookctl.delivery_logs import github, stripe
from webhookctl.delivery_logs import http as rest
from webhookctl.delivery_logs.api import Api, Refused, Unusable
from webhookctl.delivery_logs.comparison import Comparison, compare
from webhookctl.delivery_logs.log import DeliveryLog, Logged
from webhookctl.display.output import counted
from webhookctl.display.times import iso, moment
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.naming import require_known
from webhookctl.target import Target

COLUMNS: Final = ("AT", "EVENT_ID", "TYPE", "ANSWERED")
ASKED: Final = "asked"
LEFT: Final = "not asked"
# A token is one word of ASCII: anything else would be cut, or be a header of its own.
TOKEN_LIMIT: Final = 4096

app: Final = typer.Typer(
    no_args_is_help=True, help="Compare sources with their providers.", rich_markup_mode=None
)


@app.callback()
def sources() -> None:
    """Compare sources with their providers."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How a provider's log is come by.

    Attributes:
        named: the webhook as the user names it to what the API calls it; raises ValueError.
        log: (API, that) to the log.
        headers: token to what is sent with every request.
        calm: the seconds to wait after "too many requests", unless it says how long.
    """

    address: str
    named: Callable[[str], str]
    log: Callable[[Api, str], DeliveryLog]
    headers: Callable[[str], Mapping[str, str]]
    calm: float = 1.0


PROVIDERS: Final[Mapping[str, Provider]] = {
    "github": Provider(
        github.ADDRESS,
        github.path_of,
        github.GitHubLog,
        github.headers,
        github.CALM,
    ),
    "stripe": Provider(
        stripe.ADDRESS,
        stripe.endpoint_of,
        stripe.StripeLog,
        stripe.headers,
    ),
}


@app.command("reconcile")
@takes_options
def reconcile(
    call: Invocation,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="One whose provider is github or stripe.")
    ],
    *,
    hook: Annotated[
        str, typer.Option(help="The webhook: OWNER/REPO/ID or ORGANIZATION/ID; Stripe: we_….")
    ],
    since: Annotated[str, typer.Option(help="From then on, 24h (ago) or a time.")] = "24h",
    until: Annotated[str, typer.Option(help="What is younger may be on its way.")] = "5m",
    token: Annotated[
        str, typer.Option(metavar="NAME", help="The secret with the API's token; SOURCE-api.")
    ] = "",
    api: Annotated[str, typer.Option(metavar="URL", help="GitHub Enterprise: its API.")] = "",
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Let the provider send again what is missing.")
    ] = False,
) -> None:
    """List what the provider sent and the ledger does not have, and --fetch it."""
    now = call.clock.now()
    low, high = moment(since, now), moment(until, now)
    if low >= high:
        raise typer.BadParameter(f"--since {since} is not before --until {until}")
    log = _log(call, source, hook, token=token or f"{source}-api", api=api)
    if low < now - log.memory:
        call.output.note(f"Note: the provider's log goes back {log.memory.days} days only.")
    found = _compared(call, source, log, (low, high))
    results = _fetch(call, log, found.missing) if fetch else {}
    _show(call, source, found, results, window=(low, high))
    if any(result != ASKED for result in results.values()):
        raise typer.Exit(1)


def _compared(
    call: Invocation, source: str, log: DeliveryLog, window: tuple[datetime, datetime]
) -> Comparison:
    types = known_types(source, call.target.stage)
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
            f"the provider's API answered {error}: see that --hook names the webhook, and that"
            " its token may read it"
        ) from error


def _log(call: Invocation, source: str, hook: str, *, token: str, api: str) -> DeliveryLog:
    target = call.target
    require_known(target, source=source, handler=None)
    name = known_provider(source, target.stage)
    provider = PROVIDERS.get(name)
    if provider is None:
        raise CommandError(
            f"{name} keeps no log that can be asked; there are logs of: {', '.join(PROVIDERS)}"
        )
    try:
        named = provider.named(hook)
    except ValueError as error:
        raise CommandError(f"--hook {hook} is no webhook of {name}: {error}") from error
    asked = Api(
        name=name,
        base=rest.address(api or provider.address),
        headers=provider.headers(_token(call, target, token)),
        send=rest.send,
        clock=call.clock,
        calm=provider.calm,
    )
    return provider.log(asked, named)


def _token(call: Invocation, target: Target, name: str) -> str:
    """Returns the API's token; raises CommandError where it is not set or is none."""
    remedy = call.pasteable(f"`webhookctl secrets set {name} --create`")
    vault = target.client("secretsmanager")
    try:
        value: str = vault.get_secret_value(SecretId=target.secret_prefix + name)["SecretString"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        raise CommandError(
            f"the API's token is not set: {remedy}, or name its secret with --token"
        ) from error
    if not value.isascii() or not value.isprintable() or " " in value or len(value) > TOKEN_LIMIT:
        raise CommandError(f"the secret {name} is no token, which is one word: {remedy}")
    return value


def _fetch(call: Invocation, log: DeliveryLog, missing: tuple[Logged, ...]) -> dict[str, str]:
    """Asks for each again, oldest first; returns by event id what became of the request."""
    results = dict.fromkeys((entry.event_id for entry in missing), LEFT)
    with call.output.progress("asked for", len(missing)) as advance:
        for number, entry in enumerate(missing):
            if number:
                call.clock.sleep(log.pause)
            try:
                log.resend(entry)
                results[entry.event_id] = ASKED
            except Refused as error:
                # This one is too old, or of a webhook that has changed: the next may be fine.
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
        call.output.table((*COLUMNS, "FETCH") if results else COLUMNS, rows)
    call.output.note(_summary(call, source, found, results))


def _entry(entry: Logged, results: Mapping[str, str]) -> dict[str, Any]:
    return {
        "event_id": entry.event_id,
        "type": entry.type,
        "at": iso(entry.at),
        "answered": entry.answered,
        "fetch": results.get(entry.event_id),
    }


def _cells(entry: Logged, results: Mapping[str, str]) -> list[object]:
    cells: list[object] = [iso(entry.at), entry.event_id, entry.type, entry.answered or "-"]
    return [*cells, results[entry.event_id]] if results else cells


def _summary(call: Invocation, source: str, found: Comparison, results: Mapping[str, str]) -> str:
    events = counted(found.looked_at, "event")
    if not found.missing:
        return f"{events} in the log, none of them missing."
    head = f"{len(found.missing)} of {events} in the log missing."
    if not results:
        return f"{head} Add --fetch to let the provider send them again."
    asked = sum(result == ASKED for result in results.values())
    again = call.pasteable(f"`webhookctl inbox list --source {source}`")
    return f"{head} Asked for {asked}; in a minute see {again}."
