"""`alarms`: states, severities and addresses, and notifications that are sent on request."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.webhookctl.commands.stage import CALLER, STACK, Cli, client

BURST = f"{STACK}-InboxAlarmsDeadLetterBurst1A2B3C4D-AbCdEf012345"
ERRORS = f"{STACK}-InboxAlarmsApiErrors0A0B0C0D-AbCdEf012345"
SLOW = f"{STACK}-InboxAlarmsIngestSlow0A0B0C0E-AbCdEf012345"
# A stack whose name begins alike.
OTHER = f"{STACK}-eu-InboxAlarmsApiErrors0A0B0C0D-AbCdEf012345"


class Topics:
    """SNS, whose addresses confirm when told to; moto's do at once."""

    def __init__(self) -> None:
        self.pending: set[str] = set()
        self.addresses = {
            "arn:notify": ["team@a.example"],
            "arn:page": ["https://pager.example/x"],
        }

    def get_paginator(self, _: str) -> "Topics":
        return self

    def paginate(self, *, TopicArn: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        for address in self.addresses[TopicArn]:
            arn = "PendingConfirmation" if address in self.pending else f"{TopicArn}:1"
            yield {"Subscriptions": [{"Endpoint": address, "SubscriptionArn": arn}]}


@pytest.fixture
def topics(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """The topics of both severities."""
    made = Topics()
    of_aws = cli._client
    monkeypatch.setattr(cli, "_client", lambda name: made if name == "sns" else of_aws(name))
    return made


def put(name: str, severity: str, *actions: str, stack: str = STACK) -> None:
    """Creates an alarm as the stack's template does."""
    client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        AlarmDescription=f"Five died. First: `webhookctl --stack {stack} inbox list`."
        f" Severity: {severity}. Runbook: `webhookctl --stack {stack} runbook dead-letter-burst`",
        AlarmActions=list(actions),
        MetricName="Runs",
        Namespace="WebhookInbox/Test",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
    )
    state(name, "OK")


def state(name: str, value: str) -> None:
    client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=value, StateReason="5 died")


@pytest.fixture
def alarms(inbox: object, topics: Topics) -> Topics:
    """The alarms of a stack, and one of another stack."""
    put(BURST, "page", "arn:page")
    put(ERRORS, "notify", "arn:notify")
    put(SLOW, "notify")
    put(OTHER, "notify", "arn:notify", stack=f"{STACK}-eu")
    return topics


def changes(name: str) -> list[str]:
    """The summaries of an alarm's changes of state, the latest first."""
    found = client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return [each["StateReason"] for each in found]


def test_the_alarms_are_listed_with_their_addresses(cli: Cli, alarms: Topics) -> None:
    found = {each["alarm"]: each for each in cli("alarms", "list", "--json").objects}
    assert set(found) == {"ApiErrors", "DeadLetterBurst", "IngestSlow"}
    burst = found["DeadLetterBurst"]
    assert (burst["severity"], burst["state"]) == ("page", "OK")
    assert (burst["confirmed"], burst["pending"]) == (["https://pager.example/x"], [])
    assert burst["runbook"] == f"webhookctl --stack {STACK} runbook dead-letter-burst"
    assert found["IngestSlow"]["confirmed"] == []


def test_an_alarm_that_is_on_comes_first_with_its_reason_and_command(
    cli: Cli, alarms: Topics
) -> None:
    state(ERRORS, "ALARM")
    shown = cli("alarms", "list")
    first = shown.out.splitlines()[1]
    assert first.split()[:2] == ["ApiErrors", "ALARM"]
    assert first.endswith("5 died")
    program = f"`webhookctl --stack {STACK} "
    assert f"ApiErrors: first {program}inbox list`; then {program}runbook " in shown.err
    assert "no address" in shown.out


def test_an_address_that_has_not_confirmed_is_named(cli: Cli, alarms: Topics) -> None:
    alarms.pending = {"team@a.example"}
    shown = cli("alarms", "list")
    assert "team@a.example (pending)" in shown.out
    assert "1 address is not confirmed: team@a.example. Open the link of SNS's mail" in shown.err


def test_a_test_without_yes_sends_nothing(cli: Cli, alarms: Topics) -> None:
    shown = cli("alarms", "test")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "ApiErrors (notify) would be set to ALARM and back to OK: team@a.example",
        "DeadLetterBurst (page) would be set to ALARM and back to OK: https://pager.example/x",
    ]
    assert "Nothing was sent." in shown.err
    assert "alarms test --yes`" in shown.err
    assert [*changes(ERRORS), *changes(BURST)] == ["5 died"] * 2


@pytest.mark.moto
def test_a_test_sets_one_alarm_of_each_topic_and_records_it(cli: Cli, alarms: Topics) -> None:
    found = cli("alarms", "test", "--yes", "--by", "ana", "--json").objects
    assert [(each["alarm"], each["sent"]) for each in found] == [
        ("ApiErrors", True),
        ("DeadLetterBurst", True),
    ]
    for name in (ERRORS, BURST):
        [reason] = changes(name)
        assert reason.startswith(f"A test by {CALLER} for ana")
    assert changes(OTHER) == ["5 died"]
    rows = client("dynamodb").scan(TableName="ledger")["Items"]
    [row] = [row for row in rows if row["pk"]["S"].startswith("audit#")]
    assert row["action"] == {"S": "test alarms"}
    assert row["counts"] == {"M": {"tested": {"N": "2"}}}
    assert all(each["state"] == "OK" for each in cli("alarms", "list", "--json").objects)


def test_an_alarm_that_is_on_is_not_used_for_a_test(cli: Cli, alarms: Topics) -> None:
    for name in (ERRORS, BURST):
        state(name, "ALARM")
    shown = cli("alarms", "test", "--yes")
    assert shown.code == 1
    assert "every alarm with an address is on" in shown.err


def test_alarms_without_an_address_say_how_to_set_one(cli: Cli, topics: Topics) -> None:
    put(SLOW, "notify")
    listed, tested = cli("alarms", "list"), cli("alarms", "test", "--yes")
    assert "no address" in listed.out
    for shown in (listed, tested):
        assert "set [alarms] in functions/inbox.toml and deploy" in shown.err
    assert tested.code == 1


def test_an_inbox_on_this_machine_has_none(cli: Cli) -> None:
    cli.local = True
    shown = cli("alarms", "list")
    assert shown.code == 1
    assert "an inbox on this machine has no alarms" in shown.err


def test_a_stack_of_another_version_is_to_be_deployed_again(cli: Cli) -> None:
    assert "has no alarms of this version: deploy it again" in cli("alarms", "list").err
