"""`alarms`: shows the alarms of a stack, and tests that their notifications arrive."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from webhook_inbox.client.alarms import IN_ALARM, OK, Alarm
from webhook_inbox.domain.printable import counted
from webhookctl.command_tree import CommandTree
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import By, Invocation, takes_options

COLUMNS: Final = (
    Column("ALARM", Fit.NAME),
    Column("STATE"),
    Column("SINCE"),
    Column("SEVERITY"),
    Column("NOTIFIES", Fit.NAME),
    Column("REASON", Fit.NOTE),
)

app: Final = CommandTree(help="Show the alarms of a stack, and test their notifications.")


@app.command("list")
@takes_options
def list_alarms(call: Invocation) -> None:
    """List the alarms with state, severity and addresses; those that are on come first."""
    alarms = list(call.client.alarms.list())
    if call.as_json:
        call.output.results(alarms)
        return
    call.output.table(COLUMNS, [_row(each) for each in alarms])
    for each in alarms:
        if each.state == IN_ALARM:
            call.output.note(f"{each.alarm}: first `{each.first}`; then `{each.runbook}`")
    _warn(call, alarms)


@app.command("test")
@takes_options
def send_test(
    call: Invocation,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Send the notifications.")] = False,
    by: By = None,
) -> None:
    """Send a test notification of each severity through one of its alarms.

    Without --yes it only lists the addresses. With it, an alarm of each topic is set to ALARM and
    back to OK, as a real one would be; each address receives both messages.
    """
    alarms = call.client.alarms
    tested = alarms.test(by=call.actor(by)) if yes else alarms.plan_test()
    verb = "was set to ALARM and back to OK" if yes else "would be set to ALARM and back to OK"
    for each in tested:
        call.output.result(each, f"{each.alarm} ({each.severity}) {verb}: {_addresses(each)}")
    _warn(call, tested)
    if not yes:
        again = call.program.command("alarms test", "--yes")
        call.output.note(f"Nothing was sent. Send the notifications with `{again}`.")


def _row(alarm: Alarm) -> tuple[object, ...]:
    reason = "" if alarm.state == OK else alarm.reason
    told = (alarm.alarm, alarm.state, alarm.since, alarm.severity)
    return (*told, _addresses(alarm), reason)


def _addresses(alarm: Alarm) -> str:
    pending = [f"{each} (pending)" for each in alarm.pending]
    return ", ".join([*alarm.confirmed, *pending]) or "no address"


def _warn(call: Invocation, alarms: Sequence[Alarm]) -> None:
    """Notes the addresses that receive nothing."""
    pending = {address for each in alarms for address in each.pending}
    if pending:
        number = counted(len(pending), "address is", "addresses are")
        call.output.note(
            f"{number} not confirmed: {', '.join(sorted(pending))}."
            " Open the link of SNS's mail within 48 hours; until then no alarm arrives there."
        )
    if not any(each.confirmed or each.pending for each in alarms):
        call.output.note(
            "The alarms notify no address: set [alarms] in functions/inbox.toml and deploy."
        )
