"""`alarms`: shows the alarms of a stack, and tests that their notifications arrive."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction
from webhookctl.alarm_states import (
    IN_ALARM,
    OK,
    DeployedAlarm,
    Subscription,
    deployed_alarms,
    subscriptions,
)
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
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

Addresses = Mapping[str, Sequence[Subscription]]


@app.command("list")
@takes_options
def list_alarms(call: Invocation) -> None:
    """List the alarms with state, severity and addresses; those that are on come first."""
    alarms = deployed_alarms(call.target)
    reached = _addresses(call, alarms)
    if call.as_json:
        for each in alarms:
            call.output.json(_object(each, reached))
        return
    call.output.table(COLUMNS, [_row(each, reached) for each in alarms])
    for each in (each for each in alarms if each.state == IN_ALARM):
        call.output.note(f"{each.title}: first `{each.first}`; then `{each.page}`")
    _warn(call, reached)


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
    alarms = deployed_alarms(call.target)
    chosen = _one_of_each_topic(alarms)
    reached = _addresses(call, chosen)
    if yes:
        _notify(call, chosen, by)
    for each in chosen:
        data = {**_object(each, reached), "sent": yes}
        if call.as_json:
            call.output.json(data)
            continue
        verb = "was set to ALARM and back to OK" if yes else "would be set to ALARM and back to OK"
        call.output.line(f"{each.title} ({each.severity}) {verb}: {_reached(each, reached)}")
    _warn(call, reached)
    if not yes:
        again = call.program.command("alarms test", "--yes")
        call.output.note(f"Nothing was sent. Send the notifications with `{again}`.")


def _one_of_each_topic(alarms: Sequence[DeployedAlarm]) -> list[DeployedAlarm]:
    """Returns an alarm in OK for each topic; raises CommandError where there are none."""
    quiet = {each.topics: each for each in reversed(alarms) if each.topics and each.state == OK}
    if not any(each.topics for each in alarms):
        raise CommandError(
            "the alarms notify no address: set [alarms] in functions/inbox.toml and deploy"
        )
    if not quiet:
        raise CommandError(
            "every alarm with an address is on or has no data yet; see `alarms list`, and repeat"
            " the test when one is OK"
        )
    return sorted(quiet.values(), key=lambda each: each.title)


def _notify(call: Invocation, alarms: Sequence[DeployedAlarm], by: str | None) -> None:
    client, names = call.target.client("cloudwatch"), {each.severity: each.name for each in alarms}
    reason = f"A test by {call.actor(by)} with webhookctl alarms test; nothing is wrong."
    with call.audited(AuditedAction.TEST_ALARMS, by, **names) as counts:
        for each in alarms:
            for state in (IN_ALARM, OK):
                client.set_alarm_state(AlarmName=each.name, StateValue=state, StateReason=reason)
            counts["tested"] += 1


def _addresses(call: Invocation, alarms: Sequence[DeployedAlarm]) -> dict[str, list[Subscription]]:
    """Returns the addresses of each topic of these alarms."""
    topics = dict.fromkeys(topic for each in alarms for topic in each.topics)
    return {topic: subscriptions(call.target.client, topic) for topic in topics}


def _object(alarm: DeployedAlarm, reached: Addresses) -> dict[str, Any]:
    """Returns an alarm as JSON data."""
    found = [each for topic in alarm.topics for each in reached[topic]]
    return {
        "alarm": alarm.title,
        "name": alarm.name,
        "state": alarm.state,
        "since": iso(alarm.since),
        "severity": alarm.severity,
        "confirmed": [each.address for each in found if each.confirmed],
        "pending": [each.address for each in found if not each.confirmed],
        "reason": alarm.reason,
        "first": alarm.first,
        "runbook": alarm.page,
    }


def _row(alarm: DeployedAlarm, reached: Addresses) -> tuple[object, ...]:
    reason = "" if alarm.state == OK else alarm.reason
    notifies = _reached(alarm, reached)
    return (alarm.title, alarm.state, alarm.since, alarm.severity, notifies, reason)


def _reached(alarm: DeployedAlarm, reached: Addresses) -> str:
    found = [each for topic in alarm.topics for each in reached[topic]]
    texts = [each.address if each.confirmed else f"{each.address} (pending)" for each in found]
    return ", ".join(texts) or "no address"


def _warn(call: Invocation, reached: Addresses) -> None:
    """Notes the addresses that receive nothing."""
    pending = {each.address for found in reached.values() for each in found if not each.confirmed}
    if pending:
        number = counted(len(pending), "address is", "addresses are")
        call.output.note(
            f"{number} not confirmed: {', '.join(sorted(pending))}."
            " Open the link of SNS's mail within 48 hours; until then no alarm arrives there."
        )
    if not reached:
        call.output.note(
            "The alarms notify no address: set [alarms] in functions/inbox.toml and deploy."
        )
