"""`secrets rotate`, `secrets revoke` and `secrets status`: replaces a secret without an outage."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import unknown
from webhook_inbox.client.secret_documents import SecretChange
from webhook_inbox.client.times import iso, relative
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS
from webhook_inbox.domain.secrets import LIFE
from webhookctl.commands.secrets import bounded, deployed_reader, read_value
from webhookctl.display.secrets import STATES, NamedSecret, named_secrets
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Why, takes_options
from webhookctl.metrics import last_verified_with_previous

# A provider retries for days; a longer overlap is a rotation without an end, `secrets set`.
LONGEST: Final = timedelta(days=30)
KEPT_LONGER: Final = (
    "use at most 30d; `secrets set` keeps the previous value valid until the next change"
)
COLUMNS: Final = (
    Column("SECRET", Fit.NAME),
    Column("VALUES"),
    Column("REPLACED"),
    Column("PREVIOUS_UNTIL"),
    Column("PREVIOUS_USED", Fit.NOTE),
)
NO_DATA: Final = "no delivery in 14 days"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret, as in inbox.toml.")]


@takes_options
def rotate(
    call: Invocation,
    name: Name,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="DURATION", help="For how long the previous value stays valid.")
    ] = "24h",
    reason: Why = "",
    by: By = None,
) -> None:
    """Set a new value from standard input; the previous one stays valid until the overlap ends.

    Every function ignores the previous value from then on; the next change removes it.
    """
    now, target = call.clock.now(), call.target
    until = now + bounded("--overlap", overlap, LONGEST, KEPT_LONGER)
    reader = deployed_reader(target, name)
    value = read_value(f"New value of {name}: ")
    # The audit has the names only.
    with call.audited(
        AuditedAction.ROTATE_SECRET, by, reason=reason, secret=name, previous_until=iso(until)
    ) as counts:
        change = target.secret_documents.rotate(reader, name, value, now=now, until=until)
        counts[change] += 1
    replaced = change is SecretChange.REPLACED
    if call.as_json:
        end = iso(until) if replaced else None
        call.output.json({"name": name, "change": str(change), "previous_until": end})
        return
    call.output.line(_told(name, change, until))
    if change is not SecretChange.UNCHANGED:
        call.output.note(f"The functions use it within {LIFE // timedelta(seconds=1)} s.")
    if replaced:
        status = call.program.command("secrets status", argument=name)
        call.output.note(
            f"Give the provider the new value; `{status}` shows whether the old one is still used."
        )


def _told(name: str, change: SecretChange, until: datetime) -> str:
    if change is SecretChange.UNCHANGED:
        return f"Unchanged: {name} already has this value."
    if change is SecretChange.CREATED:
        return f"Set {name}, which had no value."
    return f"Rotated {name}; the previous value is valid until {iso(until)}."


@takes_options
def revoke(
    call: Invocation,
    name: Name,
    *,
    previous: Annotated[
        bool, typer.Option("--previous", help="Revoke the previous value; required.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Revoke it; otherwise a dry run.")] = False,
    reason: Why = "",
    by: By = None,
) -> None:
    """Revoke the previous value of a secret at once; the current one stays valid.

    To replace a current value that leaked, use `secrets set --replace`.
    """
    if not previous:
        raise typer.BadParameter(
            "add --previous: only the previous value can be revoked; to replace the current one,"
            " use `secrets set --replace`"
        )
    documents, reader = call.target.secret_documents, deployed_reader(call.target, name)
    if len(documents.read(reader).get(name, ())) < 2:
        raise CommandError(f"{name} has no previous value; nothing to revoke")
    if yes:
        with call.audited(AuditedAction.REVOKE_SECRET, by, reason=reason, secret=name) as counts:
            documents.revoke_previous(reader, name)
            counts["revoked"] += 1
    if call.as_json:
        call.output.json({"name": name, "revoked": yes})
        return
    told = "is revoked" if yes else "would be revoked"
    call.output.line(f"The previous value of {name} {told}.")
    if yes:
        seconds = LIFE // timedelta(seconds=1)
        call.output.note(f"The functions refuse it within {seconds} s.")
    else:
        call.output.note("Dry run: deliveries signed with it are then rejected. Add --yes.")


@takes_options
def status(
    call: Invocation,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only this secret; by default all.")
    ] = None,
) -> None:
    """Show which values are valid, and when a delivery last needed the previous one.

    The last use is that of the metric VerifiedWithPrevious, minutes late, up to 14 days ago.
    """
    target, now = call.target, call.clock.now()
    stored = {reader: target.secret_documents.read(reader) for reader in (SOURCES, HANDLERS)}
    every = named_secrets(target.manifest, {**stored, TOOLS: {}})
    found = [each for each in every if name in {None, each.name}]
    if name is not None and not found:
        raise WrongArgument(unknown("secret", name, [each.name for each in every]))
    rotating = [each for each in found if each.values > 1]
    used = last_verified_with_previous(target, _sources(rotating), now)
    rows = [_status_object(each, used, now) for each in found]
    if call.as_json:
        for row in rows:
            call.output.json(row)
        return
    call.output.table(COLUMNS, [_row(row, now) for row in rows], now=now)


def _sources(secrets: list[NamedSecret]) -> list[str]:
    """Returns the names of the sources that use these secrets."""
    users = (user for each in secrets if each.reader == SOURCES for user in each.users)
    return [user.removeprefix("source ") for user in users]


def _status_object(
    secret: NamedSecret, used: dict[str, datetime] | None, now: datetime
) -> dict[str, Any]:
    """Returns a secret as JSON data; `previous_last_used` is null where no metric is known."""
    times = [] if used is None else [used[each] for each in _sources([secret]) if each in used]
    ended = secret.until is not None and secret.until <= now
    return {
        "name": secret.name,
        "values": 1 if ended else secret.values,
        "replaced_at": iso(secret.since),
        "previous_until": iso(secret.until),
        "previous_last_used": iso(max(times, default=None)),
        "metric_known": used is not None and secret.reader == SOURCES,
    }


def _row(row: dict[str, Any], now: datetime) -> tuple[object, ...]:
    values = STATES[row["values"]]
    until = "-"
    if row["previous_until"]:
        until = relative(datetime.fromisoformat(row["previous_until"]), now)
    elif row["values"] > 1:
        until = "next change"
    at = row["replaced_at"]
    replaced = relative(datetime.fromisoformat(at), now) if at else "-"
    return row["name"], values, replaced, until, _used(row, now)


def _used(row: dict[str, Any], now: datetime) -> str:
    if row["values"] < 2 and not row["previous_until"]:
        return "-"
    if row["previous_last_used"]:
        return relative(datetime.fromisoformat(row["previous_last_used"]), now)
    return NO_DATA if row["metric_known"] else "unknown"
