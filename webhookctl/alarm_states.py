"""The alarms of a stack as CloudWatch has them, and the addresses that they notify."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from webhook_inbox.adapters.aws.account import Clients
from webhook_inbox.client.target import Target
from webhookctl.errors import CommandError

IN_ALARM: Final = "ALARM"
OK: Final = "OK"
PENDING: Final = "PendingConfirmation"
DELETED: Final = "Deleted"
# As `webhook_inbox_cdk.alarm_declaration.describe` writes it.
_TEXT: Final = re.compile(
    r"First: `(?P<first>[^`]+)`\. Severity: (?P<severity>\w+)\. Runbook: `(?P<page>[^`]+)`"
)
# CloudFormation names an alarm after the stack, its logical id and a random part; the logical id
# ends with a hash.
_NAME: Final = re.compile(r"Alarms(\w+?)[0-9A-F]{8}-\w+$")


@dataclass(frozen=True, slots=True)
class Subscription:
    """An address of a topic; SNS sends nothing to it before it is confirmed."""

    address: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class DeployedAlarm:
    """One alarm.

    Attributes:
        name: its name in CloudWatch.
        title: the part of the name that docs/operate.md has.
        state: OK, ALARM or INSUFFICIENT_DATA.
        since: when it changed to this state.
        severity: notify or page.
        topics: the ARNs of the topics that it notifies itself.
        reason: CloudWatch's explanation of the state.
        first: the first command of its text.
        page: the command that prints its page of the runbook.
    """

    name: str
    title: str
    state: str
    since: datetime
    severity: str
    topics: tuple[str, ...]
    reason: str
    first: str
    page: str


def deployed_alarms(target: Target) -> list[DeployedAlarm]:
    """Returns the alarms of a stack: those in ALARM first, then by name.

    Raises:
        CommandError: the inbox runs on this machine, or the stack has no alarms.
    """
    if target.local:
        raise CommandError(
            "an inbox on this machine has no alarms: its stack is deployed without them; use"
            " --stack NAME"
        )
    client = target.client("cloudwatch")
    found = list(_alarms(client, target.name))
    if not found:
        raise CommandError(
            f"the stack {target.name} has no alarms of this version: deploy it again"
        )
    return sorted(found, key=lambda each: (each.state == OK, each.state, each.title))


def _alarms(client: Any, stack: str) -> Iterator[DeployedAlarm]:
    pages = client.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{stack}-", AlarmTypes=["MetricAlarm"]
    )
    for page in pages:
        for alarm in page.get("MetricAlarms", ()):
            text = alarm.get("AlarmDescription", "")
            said = _TEXT.search(text)
            # The prefix of stack `a` is also that of stack `a-b`; the text names the stack.
            if said is not None and said["first"].startswith(f"webhookctl --stack {stack} "):
                yield _alarm(alarm, said)


def _alarm(alarm: Mapping[str, Any], said: "re.Match[str]") -> DeployedAlarm:
    name = alarm["AlarmName"]
    found = _NAME.search(name)
    return DeployedAlarm(
        name=name,
        title=found[1] if found else name,
        state=alarm["StateValue"],
        since=alarm.get("StateTransitionedTimestamp") or alarm["StateUpdatedTimestamp"],
        severity=said["severity"],
        topics=tuple(alarm.get("AlarmActions", ())),
        reason=alarm.get("StateReason", ""),
        first=said["first"],
        page=said["page"],
    )


def subscriptions(clients: Clients, topic: str) -> list[Subscription]:
    """Returns the addresses of a topic, also those that have not confirmed."""
    pages = clients("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    return [
        Subscription(each["Endpoint"], each["SubscriptionArn"] != PENDING)
        for page in pages
        for each in page["Subscriptions"]
        if each["SubscriptionArn"] != DELETED
    ]
