"""The alarms of a stack as CloudWatch has them, and the addresses that they notify."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.adapters.aws.cloudwatch import AlarmState, describe_alarms, set_alarm_state
from webhook_inbox.adapters.aws.sns import list_subscriptions
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor, AuditedAction

IN_ALARM: Final = "ALARM"
OK: Final = "OK"
# As `webhook_inbox_cdk.alarm_declaration.describe` writes it.
_TEXT: Final = re.compile(
    r"First: `(?P<first>[^`]+)`\. Severity: (?P<severity>\w+)\. Runbook: `(?P<page>[^`]+)`"
)
# CloudFormation names an alarm after the stack, its logical id and a random part; the logical id
# ends with a hash.
_NAME: Final = re.compile(r"Alarms(\w+?)[0-9A-F]{8}-\w+$")


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm.

    Attributes:
        alarm: the part of its name that docs/operate.md has.
        state: OK, ALARM or INSUFFICIENT_DATA.
        severity: notify or page.
        pending: the addresses that SNS sends nothing to before they are confirmed.
        reason: CloudWatch's explanation of the state.
        runbook: the command that prints its page of the runbook.
    """

    alarm: str
    name: str
    state: str
    since: datetime
    severity: str
    confirmed: tuple[str, ...]
    pending: tuple[str, ...]
    reason: str
    first: str
    runbook: str


@dataclass(frozen=True, slots=True)
class AlarmTest(Alarm):
    """An alarm of a test, as it was before; `sent` is False for a plan."""

    sent: bool


class StackAlarms:
    """The alarms of a stack; an inbox on this machine has none.

    Every method raises Refused for an inbox on this machine, and for a stack without alarms.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self) -> Listing[Alarm]:
        """Returns the alarms: those that are not OK first, then by name."""
        return Listing(self._scope, (alarm for alarm, _ in self._read()))

    def plan_test(self) -> Sequence[AlarmTest]:
        """Returns the alarms that `test` would use, one of each topic.

        Raises:
            Refused: no alarm has an address, or none of them is OK.
        """
        return [AlarmTest(**asdict(each), sent=False) for each in self._one_of_each_topic()]

    def test(self, *, by: Actor) -> Sequence[AlarmTest]:
        """Sends a test notification of each severity through one of its alarms.

        An alarm of each topic is set to ALARM and back to OK, as a real one would be; each address
        receives both messages.

        Raises:
            Refused: no alarm has an address, or none of them is OK.
        """
        self._scope.require_write()
        chosen, client = self._one_of_each_topic(), self._scope.target.client
        reason = f"A test by {by} with webhookctl alarms test; nothing is wrong."
        names = {each.severity: each.name for each in chosen}
        with self._scope.audited(AuditedAction.TEST_ALARMS, by, **names) as counts:
            for each in chosen:
                for state in (IN_ALARM, OK):
                    set_alarm_state(client, each.name, state, reason)
                counts["tested"] += 1
        return [AlarmTest(**asdict(each), sent=True) for each in chosen]

    def _one_of_each_topic(self) -> Sequence[Alarm]:
        alarms = [(alarm, topics) for alarm, topics in self._read() if topics]
        if not alarms:
            raise Refused(
                "the alarms notify no address: set [alarms] in functions/inbox.toml and deploy"
            )
        quiet = {topics: alarm for alarm, topics in reversed(alarms) if alarm.state == OK}
        if not quiet:
            raise Refused(
                "every alarm with an address is on or has no data yet; see `alarms list`, and"
                " repeat the test when one is OK"
            )
        return sorted(quiet.values(), key=lambda each: each.alarm)

    def _read(self) -> Sequence[tuple[Alarm, tuple[str, ...]]]:
        """Returns the alarms with the topics that they notify themselves."""
        target = self._scope.target
        if target.local:
            raise Refused(
                "an inbox on this machine has no alarms: its stack is deployed without them; use"
                " --stack NAME"
            )
        described = [
            (each, text)
            for each in describe_alarms(target.client, f"{target.name}-")
            if (text := _text_of(each, target.name)) is not None
        ]
        if not described:
            raise Refused(f"the stack {target.name} has no alarms of this version: deploy it again")
        topics = dict.fromkeys(topic for each, _ in described for topic in each.topics)
        listed = {topic: list_subscriptions(target.client, topic) for topic in topics}
        alarms = [(_alarm(each, text, listed), each.topics) for each, text in described]
        return sorted(alarms, key=lambda each: (each[0].state == OK, each[0].state, each[0].alarm))


def _text_of(described: AlarmState, stack: str) -> "re.Match[str] | None":
    """Returns what an alarm's text names; None for an alarm of another stack or version."""
    text = _TEXT.search(described.text)
    # The prefix of stack `a` is also that of stack `a-b`; the text names the stack.
    of_stack = text is not None and text["first"].startswith(f"webhookctl --stack {stack} ")
    return text if of_stack else None


def _alarm(
    described: AlarmState,
    text: "re.Match[str]",
    listed: Mapping[str, Sequence[tuple[str, bool]]],
) -> Alarm:
    addresses = [each for topic in described.topics for each in listed[topic]]
    title = _NAME.search(described.name)
    return Alarm(
        alarm=title[1] if title else described.name,
        name=described.name,
        state=described.state,
        since=described.since,
        severity=text["severity"],
        confirmed=tuple(address for address, confirmed in addresses if confirmed),
        pending=tuple(address for address, confirmed in addresses if not confirmed),
        reason=described.reason,
        first=text["first"],
        runbook=text["page"],
    )
