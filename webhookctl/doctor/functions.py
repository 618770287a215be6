"""The functions: their event source mappings, the reconciler's schedule, and the deployed code."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.client.times import span
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK
from webhookctl.checkout import Checkout
from webhookctl.doctor.examination import Examination
from webhookctl.doctor.logs import follow
from webhookctl.errors import CommandError
from webhookctl.preflight.result import Level, Result

MAPPING: Final = "AWS::Lambda::EventSourceMapping"
RULE: Final = "AWS::Events::Rule"
# It runs every minute; the alarm `ReconcilerLate` fires after ten.
LATE: Final = timedelta(minutes=3)
STOPPED: Final = timedelta(minutes=10)


def mappings(exam: Examination) -> Iterator[Result]:
    """Yields a failure for each queue that Lambda does not read."""
    found = [
        exam.reader.call("lambda", "get_event_source_mapping", UUID=each)
        for each in exam.resources.get(MAPPING, ())
    ]
    stopped = [each for each in found if each["State"] not in {"Enabled", "Enabling"}]
    for each in stopped:
        queue = each["EventSourceArn"].rpartition(":")[2]
        enable = f"`aws lambda update-event-source-mapping --uuid {each['UUID']} --enabled`"
        yield Result.judged("event sources", f"{queue}: {each['State']}", failure=f"run {enable}")
    if not stopped:
        yield Result.judged("event sources", f"{len(found)} enabled")


def schedule(exam: Examination) -> Iterator[Result]:
    """Yields a failure for each disabled schedule of the stack."""
    for name in exam.resources.get(RULE, ()):
        rule = name.rpartition("/")[2]
        state = exam.reader.call("events", "describe_rule", Name=rule)["State"]
        enable = f"run `aws events enable-rule --name {rule}`"
        yield Result.judged("schedule", state.lower(), failure="" if state == "ENABLED" else enable)


def reconciler(exam: Examination) -> Result:
    """Returns a failure where the reconciler has stopped, a warning where it is behind.

    A pass reads each shard of the events up to `FIRST_LOOK` before its start.
    """
    row = exam.target.table.get(CURSORS) or {}
    group = exam.target.log_groups.get(exam.target.reconciler, "")
    logs = f"`{follow(group)}` has the errors" if group else "its log has the errors"
    positions = [from_ms(at) + FIRST_LOOK for at in dict(row.get("first", {})).values()]
    if not positions:
        return Result("reconciler", Level.WARNING, "no pass yet", remedy=f"wait a minute; {logs}")
    last, behind = exam.now - max(positions), exam.now - min(positions)
    told = f"last pass {span(last)} ago"
    if behind > last + LATE:
        told += f"; a shard of the events is {span(behind)} behind"
    return Result.judged(
        "reconciler",
        told,
        failure=f"waiting runs do not continue; {logs}" if last > STOPPED else "",
        warning=logs if behind > LATE else "",
    )


def code(exam: Examination) -> Result:
    """Returns the deployed code's version, and a warning where the checkout is configured anew.

    The handlers of the checkout are not imported; only `inbox.toml` is compared.
    """
    name = next(iter(exam.target.processors.values()))
    settings = exam.reader.call("lambda", "get_function_configuration", FunctionName=name)
    variables: dict[str, Any] = settings.get("Environment", {}).get("Variables", {})
    version = variables.get("CODE_VERSION", "unknown")
    try:
        here = Checkout.required().configuration(exam.target.stage)
    except (CommandError, ConfigurationError):
        return Result.judged("code", f"version {version}; no valid checkout here to compare")
    changed = ", ".join(_changes(exam, here))
    if not changed:
        return Result.judged("code", f"version {version}; inbox.toml as in this checkout")
    return Result.judged(
        "code",
        f"version {version}; this checkout differs in {changed}",
        warning="deploy this checkout, or change to the one that is deployed",
    )


def _changes(exam: Examination, here: Configuration) -> Iterator[str]:
    deployed = exam.target.manifest
    for kind, ours, theirs in (
        ("source", here.sources, deployed.sources),
        ("destination", here.destinations, deployed.destinations),
    ):
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield f"{kind} {name}"
