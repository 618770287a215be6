"""The functions: their event source mappings, the reconciler's schedule, and the deployed code."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.doctor.logs import follow
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.times import span
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK

MAPPING: Final = "AWS::Lambda::EventSourceMapping"
RULE: Final = "AWS::Events::Rule"
# It runs every minute; the alarm `ReconcilerLate` fires after ten.
LATE: Final = timedelta(minutes=3)
STOPPED: Final = timedelta(minutes=10)


def mappings(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each queue that Lambda does not read."""
    found = [exam.stack.event_source(each) for each in exam.resources.get(MAPPING, ())]
    stopped = [each for each in found if each.state not in {"Enabled", "Enabling"}]
    for each in stopped:
        enable = f"run `aws lambda update-event-source-mapping --uuid {each.id} --enabled`"
        yield CheckResult.judged("event sources", f"{each.queue}: {each.state}", failure=enable)
    if not stopped:
        yield CheckResult.judged("event sources", f"{len(found)} enabled")


def schedule(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each disabled schedule of the stack."""
    for name in exam.resources.get(RULE, ()):
        rule = name.rpartition("/")[2]
        state = exam.stack.rule_state(rule)
        enable = f"run `aws events enable-rule --name {rule}`"
        yield CheckResult.judged(
            "schedule", state.lower(), failure="" if state == "ENABLED" else enable
        )


def reconciler(exam: Examination) -> CheckResult:
    """Returns a failure where the reconciler has stopped, a warning where it is behind.

    A pass reads each shard of the events up to `FIRST_LOOK` before its start.
    """
    row = exam.scope.table.get(CURSORS) or {}
    group = exam.target.log_groups.get(exam.target.reconciler, "")
    logs = f"`{follow(group)}` has the errors" if group else "its log has the errors"
    positions = [from_ms(at) + FIRST_LOOK for at in dict(row.get("first", {})).values()]
    if not positions:
        return CheckResult(
            "reconciler", Level.WARNING, "no pass yet", remedy=f"wait a minute; {logs}"
        )
    last, behind = exam.now - max(positions), exam.now - min(positions)
    told = f"last pass {span(last)} ago"
    if behind > last + LATE:
        told += f"; a shard of the events is {span(behind)} behind"
    return CheckResult.judged(
        "reconciler",
        told,
        failure=f"waiting runs do not continue; {logs}" if last > STOPPED else "",
        warning=logs if behind > LATE else "",
    )


def code(exam: Examination) -> CheckResult:
    """Returns the deployed code's version, and a warning where the checkout is configured anew.

    The handlers of the checkout are not imported; only `inbox.toml` is compared.
    """
    name = next(iter(exam.target.processors.values()))
    version = exam.stack.function(name).version
    here = exam.configuration
    if here is None:
        return CheckResult.judged("code", f"version {version}; no valid checkout here to compare")
    changed = ", ".join(_changes(exam, here))
    if not changed:
        return CheckResult.judged("code", f"version {version}; inbox.toml as in this checkout")
    return CheckResult.judged(
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
