"""The alarms of the stack, and the addresses that receive them."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox.client.health.doctor.examination import LOCAL, Examination
from webhook_inbox.client.health.result import CheckResult, Level

ALARM: Final = "AWS::CloudWatch::Alarm"
TOPIC: Final = "AWS::SNS::Topic"


def alarms(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each alarm that fires; its description has the next step."""
    if exam.target.local:
        yield CheckResult("alarms", Level.SKIPPED, LOCAL)
        return
    names = exam.resources.get(ALARM, ())
    firing = exam.stack.firing_alarms(names)
    for each in firing:
        text = each.description or "look at it in CloudWatch"
        yield CheckResult.judged("alarm", each.name, failure=text)
    if not firing:
        yield CheckResult.judged("alarms", f"{len(names)} in the stack, none fires")


def subscriptions(exam: Examination) -> Iterator[CheckResult]:
    """Yields a failure for each topic with an address that has not confirmed its subscription."""
    if exam.target.local:
        yield CheckResult("alarm addresses", Level.SKIPPED, LOCAL)
        return
    topics = exam.resources.get(TOPIC, ())
    if not topics:
        yield CheckResult(
            "alarm addresses",
            Level.WARNING,
            "none: alarms notify no address",
            remedy="add [alarms] to inbox.toml, and deploy",
        )
    for topic in topics:
        listed = exam.stack.subscribers(topic)
        pending = [address for address, confirmed in listed if not confirmed]
        yield CheckResult.judged(
            "alarm addresses",
            f"{len(listed) - len(pending)} of {len(listed)} confirmed"
            + (f"; pending: {', '.join(pending)}" if pending else ""),
            failure="confirm it by the link in SNS's mail, or deploy again for a new mail"
            if pending
            else "",
        )
