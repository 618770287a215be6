"""The alarms of the stack, and the addresses that receive them."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from webhookctl.doctor.examination import LOCAL, Examination
from webhookctl.preflight.result import Level, Result

ALARM: Final = "AWS::CloudWatch::Alarm"
TOPIC: Final = "AWS::SNS::Topic"
PENDING: Final = "PendingConfirmation"
# The alarms that one call describes.
BATCH: Final = 100


def alarms(exam: Examination) -> Iterator[Result]:
    """Yields a failure for each alarm that fires; its description has the next step."""
    if exam.target.local:
        yield Result("alarms", Level.SKIPPED, LOCAL)
        return
    names = list(exam.resources.get(ALARM, ()))
    batches = (names[at : at + BATCH] for at in range(0, len(names), BATCH))
    firing = list(chain.from_iterable(_firing(exam, batch) for batch in batches))
    for each in firing:
        text = str(each.get("AlarmDescription") or "look at it in CloudWatch")
        yield Result.judged("alarm", str(each["AlarmName"]), failure=text)
    if not firing:
        yield Result.judged("alarms", f"{len(names)} in the stack, none fires")


def _firing(exam: Examination, names: list[str]) -> list[Any]:
    found = exam.reader.call(
        "cloudwatch",
        "describe_alarms",
        AlarmNames=names,
        AlarmTypes=["MetricAlarm"],
        StateValue="ALARM",
        MaxRecords=BATCH,
    )
    return [*found.get("MetricAlarms", ())]


def subscriptions(exam: Examination) -> Iterator[Result]:
    """Yields a failure for each topic with an address that has not confirmed its subscription."""
    if exam.target.local:
        yield Result("alarm addresses", Level.SKIPPED, LOCAL)
        return
    topics = exam.resources.get(TOPIC, ())
    if not topics:
        yield Result(
            "alarm addresses",
            Level.WARNING,
            "none: alarms notify no address",
            remedy="add [alarms] to inbox.toml, and deploy",
        )
    for topic in topics:
        found = exam.reader.call("sns", "list_subscriptions_by_topic", TopicArn=topic)
        listed = found["Subscriptions"]
        pending = [each["Endpoint"] for each in listed if each["SubscriptionArn"] == PENDING]
        yield Result.judged(
            "alarm addresses",
            f"{len(listed) - len(pending)} of {len(listed)} confirmed"
            + (f"; pending: {', '.join(pending)}" if pending else ""),
            failure="confirm it by the link in SNS's mail, or deploy again for a new mail"
            if pending
            else "",
        )
