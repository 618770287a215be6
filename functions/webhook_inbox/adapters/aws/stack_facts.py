"""Reads what a deployed stack consists of, and the states of its parts."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain, islice
from typing import Any, Final

from webhook_inbox.adapters.aws.cloudwatch import MetricStatistic, read_metrics
from webhook_inbox.adapters.aws.reader import Reader, Unread
from webhook_inbox.adapters.aws.sqs import COUNTS, LOOK_BACK
from webhook_inbox.domain.timestamps import from_ms, to_ms

# The alarms that one call describes.
BATCH: Final = 100
PENDING: Final = "PendingConfirmation"
# A page of log lines ends after 1 MB, also where few lines match.
LOG_PAGES: Final = 5


@dataclass(frozen=True, slots=True)
class StackState:
    """A stack's description.

    Attributes:
        status: CloudFormation's status.
        drift: the result of the last drift detection.
        drifted_at: its time, if it is known.
        answered_at: the time of AWS's answer, if it has one.
    """

    status: str
    drift: str
    drifted_at: datetime | None
    answered_at: datetime | None


@dataclass(frozen=True, slots=True)
class FunctionState:
    """A function's timeout, and the version of its code."""

    timeout: timedelta
    version: str


@dataclass(frozen=True, slots=True)
class EventSource:
    """An event source mapping: what Lambda reads a queue by."""

    id: str
    queue: str
    state: str


@dataclass(frozen=True, slots=True)
class FiringAlarm:
    """An alarm that fires, with its description, "" without one."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class LoggedError:
    """A line of a log."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue; the counts are approximate.

    Attributes:
        visible: the messages that can be received.
        in_flight: those that a worker holds, or that hide.
        delayed: those whose delay has not ended.
        visibility: the visibility timeout.
        redrives: whether SQS moves messages to a DLQ.
    """

    visible: int
    in_flight: int
    delayed: int
    visibility: timedelta
    redrives: bool


class StackFacts:
    """Reads one stack; every method raises Unread where a call is refused or fails."""

    def __init__(self, reader: Reader, stack: str) -> None:
        self._reader = reader
        self._stack = stack

    def resources(self) -> Mapping[str, tuple[str, ...]]:
        """Returns the physical ids of the deployed resources by type."""
        ids = defaultdict[str, list[str]](list)
        for page in self._reader.pages(
            "cloudformation", "list_stack_resources", "NextToken", StackName=self._stack
        ):
            for each in page["StackResourceSummaries"]:
                ids[each["ResourceType"]].append(each.get("PhysicalResourceId", ""))
        return {kind: tuple(filter(None, names)) for kind, names in ids.items()}

    def state(self) -> StackState:
        """Returns the stack's description."""
        answer = self._reader.call("cloudformation", "describe_stacks", StackName=self._stack)
        stack = answer["Stacks"][0]
        drift = stack.get("DriftInformation", {})
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        return StackState(
            status=str(stack["StackStatus"]),
            drift=drift.get("StackDriftStatus", "NOT_CHECKED"),
            drifted_at=drift.get("LastCheckTimestamp"),
            answered_at=None if date is None else parsedate_to_datetime(date),
        )

    def detect_drift(self) -> None:
        """Starts a drift detection, which takes minutes."""
        self._reader.call("cloudformation", "detect_stack_drift", StackName=self._stack)

    def function(self, name: str) -> FunctionState:
        """Returns the settings of a function."""
        found = self._reader.call("lambda", "get_function_configuration", FunctionName=name)
        variables = found.get("Environment", {}).get("Variables", {})
        return FunctionState(
            timedelta(seconds=found["Timeout"]), variables.get("CODE_VERSION", "unknown")
        )

    def event_source(self, id_: str) -> EventSource:
        """Returns an event source mapping."""
        found = self._reader.call("lambda", "get_event_source_mapping", UUID=id_)
        return EventSource(
            found["UUID"], found["EventSourceArn"].rpartition(":")[2], found["State"]
        )

    def rule_state(self, name: str) -> str:
        """Returns the state of a rule: ENABLED or DISABLED."""
        return str(self._reader.call("events", "describe_rule", Name=name)["State"])

    def firing_alarms(self, names: Sequence[str]) -> list[FiringAlarm]:
        """Returns those of the alarms that fire."""
        batches = (names[at : at + BATCH] for at in range(0, len(names), BATCH))
        return [
            FiringAlarm(str(each["AlarmName"]), str(each.get("AlarmDescription") or ""))
            for each in chain.from_iterable(map(self._firing, batches))
        ]

    def _firing(self, names: Sequence[str]) -> list[Any]:
        found = self._reader.call(
            "cloudwatch",
            "describe_alarms",
            AlarmNames=list(names),
            AlarmTypes=["MetricAlarm"],
            StateValue="ALARM",
            MaxRecords=BATCH,
        )
        return [*found.get("MetricAlarms", ())]

    def subscribers(self, topic: str) -> list[tuple[str, bool]]:
        """Returns the addresses that subscribe to a topic, and whether each is confirmed."""
        found = self._reader.call("sns", "list_subscriptions_by_topic", TopicArn=topic)
        return [(e["Endpoint"], e["SubscriptionArn"] != PENDING) for e in found["Subscriptions"]]

    def logged(
        self, group: str, pattern: str, *, since: datetime
    ) -> tuple[list[LoggedError], bool]:
        """Returns the matching lines of a log, oldest first, and whether there can be more."""
        pages = self._reader.pages(
            "logs",
            "filter_log_events",
            "nextToken",
            logGroupName=group,
            filterPattern=pattern,
            startTime=to_ms(since),
        )
        read = list(islice(pages, LOG_PAGES))
        lines = [
            LoggedError(from_ms(int(each["timestamp"])), str(each["message"]))
            for page in read
            for each in page["events"]
        ]
        return lines, "nextToken" in read[-1]

    def queue(self, url: str) -> QueueState:
        """Returns the depth and the settings of a queue."""
        names = [*COUNTS, "VisibilityTimeout", "RedrivePolicy"]
        answer = self._reader.call(
            "sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=names
        )
        found = answer["Attributes"]
        visible, in_flight, delayed = (int(found.get(name, 0)) for name in COUNTS)
        return QueueState(
            visible,
            in_flight,
            delayed,
            visibility=timedelta(seconds=int(found["VisibilityTimeout"])),
            redrives="deadLetterTargetArn" in json.loads(found.get("RedrivePolicy", "{}")),
        )

    def ages(self, urls: Mapping[str, str], now: datetime) -> dict[str, timedelta]:
        """Returns the ages of the oldest messages by lane; none without the right.

        CloudWatch leaves out messages that were received three times, as those of a DLQ are.
        """
        ids = {f"age{number}": lane for number, lane in enumerate(urls)}
        oldest = {id_: _oldest_message(urls[lane]) for id_, lane in ids.items()}
        try:
            values = read_metrics(self._reader, oldest, start=now - LOOK_BACK, end=now)
        except Unread:
            return {}  # The counts matter more.
        return {ids[id_]: timedelta(seconds=max(each)[1]) for id_, each in values.items() if each}


def _oldest_message(url: str) -> MetricStatistic:
    queue = {"QueueName": url.rpartition("/")[2]}
    minute = timedelta(minutes=1)
    return MetricStatistic("AWS/SQS", "ApproximateAgeOfOldestMessage", queue, "Maximum", minute)
