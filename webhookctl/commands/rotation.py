"""`secrets rotate`, `secrets revoke` and `secrets status`: replaces a secret without an outage."""

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from webhook_inbox.client.secret_documents import SecretChange
from webhook_inbox.client.secrets import LONGEST_OVERLAP, RotatedSecret, SecretStatus
from webhook_inbox.client.times import iso, relative
from webhook_inbox.domain.secrets import LIFE
from webhookctl.checkout import declared_manifest
from webhookctl.commands.secrets import STATES, WORDS, bounded, read_value
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import By, Invocation, Why, takes_options

# Seconds until every function has read the change.
WITHIN: Final = LIFE // timedelta(seconds=1)
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
    length = bounded("--overlap", overlap, LONGEST_OVERLAP, KEPT_LONGER)
    secrets, declared = call.client.secrets, declared_manifest(call.client.target.stage)
    # Before the value is asked for.
    secrets.document_of(name, declared=declared)
    value = read_value(f"New value of {name}: ")
    rotated = secrets.rotate(
        name, value, overlap=length, declared=declared, reason=reason, by=call.actor(by)
    )
    call.output.result(rotated, _text(rotated))
    if call.as_json:
        return
    if rotated.change is not SecretChange.UNCHANGED:
        call.output.note(f"The functions use it within {WITHIN} s.")
    if rotated.change is SecretChange.REPLACED:
        status = call.program.command("secrets status", argument=name)
        call.output.note(
            f"Give the provider the new value; `{status}` shows whether the old one is still used."
        )


def _text(rotated: RotatedSecret) -> str:
    if rotated.change is not SecretChange.REPLACED:
        return WORDS[rotated.change].format(rotated.name)
    until = iso(rotated.previous_until)
    return f"Rotated {rotated.name}; the previous value is valid until {until}."


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
    secrets, declared = call.client.secrets, declared_manifest(call.client.target.stage)
    if yes:
        revoked = secrets.revoke(name, declared=declared, reason=reason, by=call.actor(by))
    else:
        revoked = secrets.plan_revocation(name, declared=declared)
    verb = "is revoked" if yes else "would be revoked"
    call.output.result(revoked, f"The previous value of {name} {verb}.")
    if call.as_json:
        return
    if yes:
        call.output.note(f"The functions refuse it within {WITHIN} s.")
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
    found = call.client.secrets.status(name)
    if call.as_json:
        call.output.results(found)
        return
    now = call.clock.now()
    call.output.table(COLUMNS, [_row(each, now) for each in found], now=now)


def _row(each: SecretStatus, now: datetime) -> tuple[object, ...]:
    until = "next change" if each.values > 1 else "-"
    if each.previous_until:
        until = relative(each.previous_until, now)
    replaced = relative(each.replaced_at, now) if each.replaced_at else "-"
    return each.name, STATES[each.values], replaced, until, _used(each, now)


def _used(each: SecretStatus, now: datetime) -> str:
    if each.values < 2 and not each.previous_until:
        return "-"
    if each.previous_last_used:
        return relative(each.previous_last_used, now)
    return NO_DATA if each.metric_known else "unknown"
