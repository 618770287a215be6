"""`doctor`: each check finds its fault, names the remedy, and one refused call hides no other."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.docs.pages import ROOT
from tests.unit.support.holding import hold
from tests.unit.support.people import person
from tests.webhookctl.commands.stage import MANIFEST, STACK, Cli, Inbox, documents
from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.client.health.doctor.checks import CHECKS
from webhook_inbox.destinations.manual_circuit import CircuitRequest, open_circuit
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Change
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.pauses import PauseRequest, pause
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CRM = DestinationSpec("crm", "https://crm.acme.io")
CALLING = replace(MANIFEST, destinations={"crm": CRM})
RESOURCES = {
    "AWS::CloudWatch::Alarm": ["dead-letters"],
    "AWS::SNS::Topic": ["arn:topic"],
    "AWS::Lambda::EventSourceMapping": ["mapping-1"],
    "AWS::Events::Rule": ["the-schedule"],
}
HEALTHY: dict[str, dict[str, Any]] = {
    "describe_stacks": {
        "Stacks": [
            {
                "StackStatus": "UPDATE_COMPLETE",
                "DriftInformation": {
                    "StackDriftStatus": "IN_SYNC",
                    "LastCheckTimestamp": NOW - timedelta(hours=1),
                },
            }
        ],
        "ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(NOW, usegmt=True)}},
    },
    "list_stack_resources": {
        "StackResourceSummaries": [
            {"ResourceType": kind, "PhysicalResourceId": each}
            for kind, ids in RESOURCES.items()
            for each in ids
        ]
    },
    "get_function_configuration": {
        "Timeout": 60,
        "Environment": {"Variables": {"CODE_VERSION": "abc123"}},
    },
    "get_event_source_mapping": {
        "State": "Enabled",
        "UUID": "mapping-1",
        "EventSourceArn": "arn:aws:sqs:eu-central-1:1:the-queue",
    },
    "describe_rule": {"State": "ENABLED"},
    "get_queue_attributes": {
        "Attributes": {
            "ApproximateNumberOfMessages": "0",
            "ApproximateNumberOfMessagesNotVisible": "0",
            "ApproximateNumberOfMessagesDelayed": "0",
            "VisibilityTimeout": "360",
            "RedrivePolicy": '{"deadLetterTargetArn": "arn:dead"}',
        }
    },
    "get_metric_data": {
        "MetricDataResults": [{"Id": "age0", "Timestamps": [NOW], "Values": [2000.0]}]
    },
    "describe_alarms": {"MetricAlarms": []},
    "list_subscriptions_by_topic": {
        "Subscriptions": [{"SubscriptionArn": "arn:topic:1", "Endpoint": "a@acme.io"}]
    },
    "filter_log_events": {"events": []},
    "detect_stack_drift": {"StackDriftDetectionId": "1"},
}
SERVICES = {"cloudformation", "lambda", "events", "sqs", "cloudwatch", "sns", "logs"}


class Account:
    """The answers of the account's services, and the calls."""

    def __init__(self, other: Callable[[str], Any]) -> None:
        self.answers: dict[str, Any] = json_copy(HEALTHY)
        self.calls: list[str] = []
        self._other = other

    def __call__(self, service: str) -> Any:
        return self if service in SERVICES else self._other(service)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**_: Any) -> Any:
            self.calls.append(operation)
            answer = self.answers[operation]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def json_copy(answers: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(answer) for name, answer in answers.items()}


@pytest.fixture
def inbox(inbox: Inbox) -> Inbox:
    """An inbox whose reconciler has just run."""
    inbox.deploy(CALLING)
    passed(inbox, age=timedelta(seconds=20))
    return inbox


def passed(inbox: Inbox, *, age: timedelta) -> None:
    """Lets the reconciler's last pass be so old."""
    at = to_ms(inbox.now - age - FIRST_LOOK)
    positions = {str(shard): at for shard in range(4)}
    inbox.table.update(CURSORS, Change(set={"first": positions}))


@pytest.fixture
def account(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Account:
    made = Account(cli._client)
    monkeypatch.setattr(cli, "_client", made)
    cli.manifest = CALLING
    for name in ("acme", "github", "stripe"):
        documents().set(SOURCES, name, f"the-{name}-secret")
    return made


def found(cli: Cli, *words: str) -> dict[str, dict[str, Any]]:
    """Returns the findings by check."""
    return {each["check"]: each for each in cli("doctor", *words, "--json").objects}


def finding(cli: Cli, check: str) -> tuple[str, str, str]:
    each = found(cli)[check]
    return each["level"], each["figure"], each["remedy"]


def test_a_healthy_inbox_has_no_finding(cli: Cli, account: Account) -> None:
    shown = cli("doctor")
    assert (shown.code, shown.err) == (0, "18 ok.\n"), shown.out
    assert "ok       recovery: a killed worker's run continues within 6 min\n" in shown.out
    assert "ok       code: version abc123; no valid checkout here to compare\n" in shown.out
    assert all(len(line) <= 80 for line in shown.out.splitlines())


def test_the_number_of_calls_is_bounded(cli: Cli, account: Account) -> None:
    cli("doctor")
    assert len(account.calls) < 25


@pytest.mark.parametrize(
    ("check", "operation", "answer", "level", "remedy"),
    [
        (
            "stack",
            "describe_stacks",
            {"Stacks": [{"StackStatus": "UPDATE_ROLLBACK_FAILED"}]},
            "failure",
            f"`aws cloudformation describe-stack-events --stack-name {STACK}`",
        ),
        (
            "stack",
            "describe_stacks",
            {"Stacks": [{"StackStatus": "UPDATE_ROLLBACK_COMPLETE"}]},
            "warning",
            "the last deployment was rolled back",
        ),
        (
            "drift",
            "describe_stacks",
            {"Stacks": [{"StackStatus": "X", "DriftInformation": {"StackDriftStatus": "DRIFTED"}}]},
            "warning",
            "describe-stack-resource-drifts",
        ),
        (
            "drift",
            "describe_stacks",
            {"Stacks": [{"StackStatus": "X"}]},
            "unknown",
            "`webhookctl doctor --drift`",
        ),
        (
            "event sources",
            "get_event_source_mapping",
            {"State": "Disabled", "UUID": "m-1", "EventSourceArn": "arn:aws:sqs:e:1:q"},
            "failure",
            "`aws lambda update-event-source-mapping --uuid m-1 --enabled`",
        ),
        (
            "schedule",
            "describe_rule",
            {"State": "DISABLED"},
            "failure",
            "`aws events enable-rule --name the-schedule`",
        ),
        (
            "alarm",
            "describe_alarms",
            {"MetricAlarms": [{"AlarmName": "a", "AlarmDescription": "Replay them."}]},
            "failure",
            "Replay them.",
        ),
        (
            "alarm addresses",
            "list_subscriptions_by_topic",
            {"Subscriptions": [{"SubscriptionArn": "PendingConfirmation", "Endpoint": "b@c.de"}]},
            "failure",
            "confirm it by the link",
        ),
    ],
)
def test_a_fault_of_the_account_is_found_with_its_remedy(
    cli: Cli, account: Account, check: str, operation: str, answer: Any, level: str, remedy: str
) -> None:
    account.answers[operation] = {**HEALTHY["describe_stacks"], **answer}
    judged, _, told = finding(cli, check)
    assert (judged, remedy in told) == (level, True)
    assert cli("doctor").code == (1 if level == "failure" else 0)


@pytest.mark.parametrize(
    ("attribute", "value", "check", "level"),
    [
        ("VisibilityTimeout", "65", "queue default", "failure"),
        ("RedrivePolicy", "{}", "queue default", "failure"),
        ("ApproximateNumberOfMessages", "7", "queue default", "warning"),
        ("ApproximateNumberOfMessages", "7", "DLQ default", "warning"),
    ],
)
def test_a_fault_of_a_queue_is_found(
    cli: Cli, account: Account, attribute: str, value: str, check: str, level: str
) -> None:
    attributes = {**HEALTHY["get_queue_attributes"]["Attributes"], attribute: value}
    account.answers["get_queue_attributes"] = {"Attributes": attributes}
    judged, figure, _ = finding(cli, check)
    assert judged == level
    assert ("oldest 33 min" in figure) == (value == "7" and check == "queue default")


@pytest.mark.parametrize(("minutes", "level"), [(1, "warning"), (10, "failure")])
def test_a_wrong_clock_is_found(cli: Cli, account: Account, minutes: int, level: str) -> None:
    cli.inbox.clock.advance(minutes=minutes)
    passed(cli.inbox, age=timedelta(0))  # type: ignore[arg-type]
    judged, figure, remedy = finding(cli, "clock")
    assert (judged, figure) == (level, f"{minutes} min ahead of AWS")
    assert "synchronize" in remedy


@pytest.mark.parametrize(("minutes", "level"), [(5, "warning"), (15, "failure")])
def test_a_reconciler_that_stopped_is_found(
    cli: Cli, inbox: Inbox, account: Account, minutes: int, level: str
) -> None:
    passed(inbox, age=timedelta(minutes=minutes))
    judged, figure, remedy = finding(cli, "reconciler")
    assert (judged, figure) == (level, f"last pass {minutes} min ago")
    assert "`aws logs tail the-reconciler-logs --since 1h --filter-pattern '{ $.level" in remedy


def logged(*lines: dict[str, Any], more: bool = False) -> dict[str, Any]:
    """A page of a log, a minute between two lines."""
    at = to_ms(NOW - timedelta(minutes=len(lines)))
    events = [
        {"timestamp": at + 60_000 * place, "message": json.dumps(line)}
        for place, line in enumerate(lines)
    ]
    return {"events": events, **({"nextToken": "next"} if more else {})}


CONFLICT = {"message": "delivery conflict", "source": "github", "event_id": "evt-1", "level": "x"}


def test_the_latest_error_of_a_log_is_found_with_the_command_that_shows_all(
    cli: Cli, account: Account
) -> None:
    account.answers["filter_log_events"] = logged({"message": "delivery broken"}, CONFLICT)
    shown = cli("doctor").out
    told = (
        "logs: ingest: 2 errors within an hour; 1 min ago: delivery conflict, github, evt-1;"
        " also 1 delivery broken"
    )
    assert told in shown
    assert "`aws logs tail the-ingest-logs --since 1h --filter-pattern '{ $.level =" in shown
    assert "reconciler: 2 errors" in shown


def test_the_latest_error_of_a_log_hides_no_other(cli: Cli, account: Account) -> None:
    """A forged delivery a minute would be the latest error of an outage."""
    forged = {"message": "delivery key-unavailable", "source": "sns"}
    ours = {"message": "delivery unavailable", "source": "github"}
    account.answers["filter_log_events"] = logged(ours, forged, ours, forged)
    shown = finding(cli, "logs")[1]
    assert shown.endswith("ago: delivery key-unavailable, sns; also 2 delivery unavailable")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (json.dumps({"record": {"status": "timeout"}}), "Lambda reports timeout"),
        ("[ERROR] no JSON", "[ERROR] no JSON"),
        (json.dumps({"errorMessage": "x" * 300}), f"{'x' * 199}…"),
    ],
)
def test_a_line_of_lambda_is_told_as_it_is(
    cli: Cli, account: Account, line: str, told: str
) -> None:
    event = {"timestamp": to_ms(NOW), "message": line}
    account.answers["filter_log_events"] = {"events": [event]}
    assert finding(cli, "logs")[1].endswith(told)


def test_a_long_log_is_not_read_to_its_end(cli: Cli, account: Account) -> None:
    account.answers["filter_log_events"] = logged(CONFLICT, more=True)
    assert "at least 5 errors" in finding(cli, "logs")[1]
    assert account.calls.count("filter_log_events") == 2 * 5


def test_a_secret_without_a_value_is_found(cli: Cli, account: Account) -> None:
    documents().remove(SOURCES, "stripe")
    level, figure, remedy = finding(cli, "secrets")
    assert (level, figure) == ("failure", "stripe has no value")
    assert "webhookctl secrets set stripe" in remedy


def test_a_rotation_without_an_end_is_found_and_one_with_an_end_is_told(
    cli: Cli, account: Account
) -> None:
    documents().set(SOURCES, "stripe", "the-new-value")
    level, figure, remedy = finding(cli, "rotation")
    assert (level, figure) == ("warning", "stripe: previous value valid without an end")
    assert "webhookctl secrets revoke stripe --previous" in remedy
    end = NOW + timedelta(hours=2)
    documents().rotate(SOURCES, "stripe", "the-newest", now=NOW, until=end)
    level, figure, _ = finding(cli, "rotation")
    assert (level, figure) == ("ok", "stripe: previous value ends in 2 h, replaced 0 s ago")


def test_a_placeholder_is_found(cli: Cli, account: Account) -> None:
    example = replace(CRM, base_url="https://crm.example")
    cli.manifest = replace(CALLING, destinations={"crm": example})
    level, figure, _ = finding(cli, "destinations")
    assert (level, figure) == ("failure", "crm: https://crm.example belongs to no system")


def test_what_a_person_has_stopped_is_found(cli: Cli, inbox: Inbox, account: Account) -> None:
    pause(
        inbox.table,
        SystemRandomness(),
        PauseRequest("acme.fulfil", person("kim"), "why", inbox.now),
    )
    request = CircuitRequest("crm", person("kim"), "why", inbox.now)
    open_circuit(inbox.table, SystemRandomness(), request)
    level, figure, remedy = finding(cli, "paused")
    assert (level, figure.startswith("acme.fulfil since 2026-01-01")) == ("warning", True)
    assert remedy == "resume it with `webhookctl handlers resume acme.fulfil`"
    assert finding(cli, "circuit")[:2] == ("warning", "crm is open")


def test_people_who_were_not_told_of_a_request_are_found(
    cli: Cli, inbox: Inbox, account: Account
) -> None:
    hold(inbox, "evt-asked", unannounced={"ann": "503"}, wake_at=to_ms(inbox.now))
    level, told, _ = finding(cli, "held")
    assert (level, told) == (
        "warning",
        "1 run held, 1 of them for an effect; people were not told about 1 of them",
    )


def test_an_overdue_run_is_found(cli: Cli, inbox: Inbox, account: Account) -> None:
    inbox.deliver("evt-1")
    inbox.fails("acme.fulfil", Transient("answered 500"))
    inbox.work_once()
    inbox.clock.advance(hours=5)
    passed(inbox, age=timedelta(0))
    level, figure, remedy = finding(cli, "oldest due")
    assert (level, "overdue: acme.fulfil" in figure) == ("failure", True)
    assert remedy == "`webhookctl inbox inspect evt-1` shows why it waits"


def test_one_refused_call_is_unknown_and_hides_no_other_check(cli: Cli, account: Account) -> None:
    error = {"Code": "AccessDenied", "Message": "no"}
    account.answers["describe_alarms"] = ClientError({"Error": error}, "DescribeAlarms")
    every = found(cli)
    assert every["alarms"]["level"] == "unknown"
    assert every["alarms"]["remedy"] == "request the right cloudwatch:DescribeAlarms"
    assert every["stack"]["level"] == "ok"


def test_drift_is_detected_on_demand(cli: Cli, account: Account) -> None:
    assert "detect_stack_drift" not in account.calls
    assert found(cli, "--drift")["drift"]["figure"] == "detection started"
    assert "detect_stack_drift" in account.calls


def test_on_this_machine_what_does_not_apply_is_left_out_with_a_reason(
    cli: Cli, account: Account
) -> None:
    cli.local = True
    every = found(cli)
    skipped = {name for name, each in every.items() if each["level"] == "skipped"}
    assert skipped == {"drift", "clock", "logs", "alarms", "alarm addresses"}
    assert all(every[name]["figure"] for name in skipped)
    assert "get_metric_data" not in account.calls


def test_each_check_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    section = page.partition("## Check the inbox")[2].partition("\n## ")[0]
    assert [name for name in CHECKS if f"| {name} |" not in section] == []
