"""The alarms: that no failure is silent, that they reach somebody, and that they say what next."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools import Logger, Metrics
from typer.main import get_command

from processor.telemetry import observe
from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import Properties, Template, named
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.reconciler.report import Action
from webhookctl.app import app

ALARM = "AWS::CloudWatch::Alarm"
PEOPLE = '[alarms]\nnotify = ["mailto:team@a.example"]\npage = ["https://pager.example/x"]\n'
AT_LEAST = "GreaterThanOrEqualToThreshold"
SOURCES = ("github", "stripe-eu")
LANES = ("default", "slow")
OF_A_LANE = ("DeadLetters", "Backlog", "DestinationRefusals", "FailedOpen", "ProcessorCrashes")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """An inbox whose configuration names people."""
    top = tmp_path_factory.mktemp("told")
    return synthesize(functions=write_functions(top, inbox=INBOX + PEOPLE))


def alarm(template: Template, name: str) -> Properties:
    return template.one(ALARM, f"InboxAlarms{name.replace('-', '')}")


def dimensions(properties: Mapping[str, Any]) -> dict[str, str]:
    return {entry["Name"]: named(entry["Value"]) for entry in properties["Dimensions"]}


def watched(properties: Mapping[str, Any]) -> tuple[str, str, str, int]:
    """A metric, how it is added up, and over how many seconds."""
    keys = ("Namespace", "MetricName", "Statistic", "Period")
    namespace, metric, statistic, period = (properties[key] for key in keys)
    return namespace, metric, statistic, period


def fires(properties: Mapping[str, Any]) -> tuple[str, int, int]:
    """How an alarm compares, with what, and how many periods in a row."""
    return (
        properties["ComparisonOperator"],
        properties["Threshold"],
        properties["EvaluationPeriods"],
    )


def test_alarms_are_these_with_and_without_people(dev: Template, told: Template) -> None:
    expected = {f"{kind}{source}" for kind in ("Conflicts", "IngestFaults") for source in SOURCES}
    expected |= {f"{kind}{lane}" for kind in OF_A_LANE for lane in LANES}
    expected |= {"Held-github"}  # Stripe signs its time
    expected |= {"ApiErrors", "Throttled", "IngestCrashes", "ReplayErrors", "ReplayInterrupted"}
    expected |= {
        "ReconcilerStopped",
        "ReconcilerCrashes",
        "ReconcilerFailed",
        "ReconcilerIncomplete",
    }
    expected |= {"RunsLost", "RunsExpired", "RunsNearExpiry"}
    for template in (dev, told):
        names = {name[len("InboxAlarms") : -8] for name in template.all(ALARM)}
        assert names == {name.replace("-", "") for name in expected}


def test_without_people_nobody_is_told(dev: Template) -> None:
    assert not dev.all("AWS::SNS::Topic")
    for properties in dev.all(ALARM).values():
        assert "AlarmActions" not in properties


def test_all_alarms_tell_whom_the_configuration_names(told: Template) -> None:
    [topic] = told.all("AWS::SNS::Topic")
    people = {(s["Protocol"], s["Endpoint"]) for s in told.all("AWS::SNS::Subscription").values()}
    assert people == {("email", "team@a.example"), ("https", "https://pager.example/x")}
    for properties in told.all(ALARM).values():
        assert properties["AlarmActions"] == properties["OKActions"] == [{"Ref": topic}]


def test_this_account_s_alarms_may_publish_and_nobody_without_tls(told: Template) -> None:
    [topic] = told.all("AWS::SNS::Topic")
    policy = told.one("AWS::SNS::TopicPolicy")
    assert policy["Topics"] == [{"Ref": topic}]
    by_effect = {s["Effect"]: s for s in policy["PolicyDocument"]["Statement"]}
    assert len(policy["PolicyDocument"]["Statement"]) == 2
    assert by_effect["Allow"] == {
        "Sid": "AllowAlarms",
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": {"Ref": topic},
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    deny = by_effect["Deny"]
    assert (deny["Principal"], deny["Action"]) == ("*", "sns:Publish")
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_silence_is_good_news_except_from_the_reconciler(dev: Template) -> None:
    stopped = alarm(dev, "ReconcilerStopped")
    for properties in dev.all(ALARM).values():
        expected = "breaching" if properties is stopped else "notBreaching"
        assert properties["TreatMissingData"] == expected


def test_a_reconciler_that_makes_no_pass_for_ten_minutes_is_noticed(dev: Template) -> None:
    stopped = alarm(dev, "ReconcilerStopped")
    assert watched(stopped) == ("WebhookInbox/Inbox", "ReconcilerPasses", "Sum", 300)
    assert fires(stopped) == ("LessThanOrEqualToThreshold", 0, 2)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("RunsLost", Action.LOST),
        ("RunsExpired", Action.EXPIRED),
        ("RunsNearExpiry", Action.LAST_CALL),
    ],
)
def test_one_run_that_the_reconciler_gives_up_or_calls_last_is_enough(
    dev: Template, name: str, action: Action
) -> None:
    found = alarm(dev, name)
    # As `reconciler/telemetry.py` spells an action.
    metric = f"Reconciler{str(action).title().replace('_', '')}"
    assert watched(found) == ("WebhookInbox/Inbox", metric, "Sum", 300)
    assert fires(found) == (AT_LEAST, 1, 1)
    assert dimensions(found) == {"service": "reconciler"}


def test_what_the_reconciler_fails_on_may_pass_within_a_quarter_of_an_hour(dev: Template) -> None:
    failed = alarm(dev, "ReconcilerFailed")
    assert watched(failed) == ("WebhookInbox/Inbox", "ReconcilerFailed", "Sum", 300)
    incomplete = alarm(dev, "ReconcilerIncomplete")
    assert watched(incomplete) == ("WebhookInbox/Inbox", "ReconcilerIncomplete", "Sum", 300)
    assert fires(failed) == (AT_LEAST, 1, 3)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("name", "outcome"),
    [("Conflicts", IngestOutcome.CONFLICT), ("IngestFaults", IngestOutcome.BROKEN)],
)
def test_each_source_s_conflicts_and_our_faults_are_noticed(
    dev: Template, source: str, name: str, outcome: IngestOutcome
) -> None:
    found = alarm(dev, f"{name}-{source}")
    assert watched(found) == ("WebhookInbox/Inbox", "Deliveries", "Sum", 300)
    assert fires(found) == (AT_LEAST, 1, 1)
    assert dimensions(found) == {"service": "ingest", "source": source, "outcome": str(outcome)}


def test_a_held_event_is_noticed_where_bodies_can_be_identical(dev: Template) -> None:
    found = alarm(dev, "Held-github")
    assert watched(found) == ("WebhookInbox/Inbox", "Deliveries", "Sum", 300)
    assert fires(found) == (AT_LEAST, 1, 1)
    outcome = str(IngestOutcome.HELD)
    assert dimensions(found) == {"service": "ingest", "source": "github", "outcome": outcome}


def test_a_metric_has_the_dimensions_that_powertools_gives_it(
    dev: Template, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudWatch finds a metric by all of its dimensions; `service` is Powertools' own."""
    metrics = Metrics(namespace="WebhookInbox/Inbox", service="ingest")
    metrics.add_dimension(name="source", value="github")
    metrics.add_dimension(name="outcome", value="conflict")
    metrics.add_metric(name="Deliveries", unit="Count", value=1)
    metrics.flush_metrics()
    written = json.loads(capsys.readouterr().out)
    [declared] = written["_aws"]["CloudWatchMetrics"]
    found = alarm(dev, "Conflicts-github")
    assert {name: written[name] for name in declared["Dimensions"][0]} == dimensions(found)
    assert declared["Namespace"] == found["Namespace"]


@pytest.mark.parametrize(
    ("name", "function", "period", "at_least"),
    [
        ("IngestCrashes", "InboxIngest", 60, 1),
        ("ReconcilerCrashes", "InboxReconciler", 300, 1),
        ("ReplayErrors", "InboxReplay", 300, 1),
        ("ProcessorCrashes-default", "InboxProcessordefault", 900, 3),
        ("ProcessorCrashes-slow", "InboxProcessorslow", 900, 3),
    ],
)
def test_functions_that_crash_are_noticed(
    dev: Template, name: str, function: str, period: int, at_least: int
) -> None:
    found = alarm(dev, name)
    assert watched(found) == ("AWS/Lambda", "Errors", "Sum", period)
    assert fires(found) == (AT_LEAST, at_least, 1)
    assert dimensions(found)["FunctionName"].startswith(f"${{{function}")


def test_an_interrupted_replay_is_noticed(dev: Template) -> None:
    found = alarm(dev, "ReplayInterrupted")
    assert watched(found) == ("WebhookInbox/Inbox", "ReplayInterrupted", "Sum", 300)
    assert dimensions(found) == {"service": "replay"}
    assert fires(found) == (AT_LEAST, 1, 1)


def test_intake_that_fails_is_noticed_within_a_minute(dev: Template) -> None:
    found = alarm(dev, "ApiErrors")
    assert watched(found) == ("AWS/ApiGateway", "5xx", "Sum", 60)
    assert fires(found) == (AT_LEAST, 1, 1)


def test_throttled_deliveries_are_noticed_within_a_minute(dev: Template) -> None:
    found = alarm(dev, "Throttled")
    assert watched(found) == ("WebhookInbox/Inbox", "Throttled", "Sum", 60)
    assert fires(found) == (AT_LEAST, 1, 1)
    assert "Dimensions" not in found


@pytest.mark.parametrize("lane", LANES)
def test_one_dead_letter_is_enough(dev: Template, lane: str) -> None:
    found = alarm(dev, f"DeadLetters-{lane}")
    metric = ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 60)
    assert watched(found) == metric
    assert fires(found) == (AT_LEAST, 1, 1)
    assert dimensions(found)["QueueName"].startswith(f"${{InboxLane{lane}DeadLetters")


@pytest.mark.parametrize("lane", LANES)
def test_work_that_waits_for_a_quarter_of_an_hour_is_noticed(dev: Template, lane: str) -> None:
    found = alarm(dev, f"Backlog-{lane}")
    assert watched(found) == ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", 60)
    assert fires(found) == (AT_LEAST, 900, 5)
    assert dimensions(found)["QueueName"].startswith(f"${{InboxLane{lane}Work")


@pytest.mark.parametrize("lane", LANES)
def test_a_page_and_what_fails_open_are_noticed_by_the_metrics_that_are_written(
    dev: Template,
    lane: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "processor")
    metrics = Metrics(namespace="WebhookInbox/Inbox", service="processor")
    result = RunResult(RunOutcome.DEAD, page=True, degraded=("the breaker of crm",))
    observe(Logger(service="processor"), metrics, lane, result, redact=str)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    written = {}
    for line in (line for line in lines if "_aws" in line):
        [declared] = line["_aws"]["CloudWatchMetrics"]
        [name] = [metric["Name"] for metric in declared["Metrics"]]
        written[name] = {key: line[key] for key in declared["Dimensions"][0]}
    for name, fired in (
        ("DestinationRefusals", (AT_LEAST, 1, 1)),
        ("FailedOpen", (AT_LEAST, 10, 3)),
    ):
        found = alarm(dev, f"{name}-{lane}")
        assert dimensions(found) == written[found["MetricName"]]
        assert fires(found) == fired


def test_every_alarm_says_what_to_do_in_commands_that_exist(dev: Template) -> None:
    for name, properties in dev.all(ALARM).items():
        commands = re.findall(r"`webhookctl --stack Inbox ([^`]+)`", properties["AlarmDescription"])
        assert commands, name
        for command in commands:
            understood(shlex.split(command))


@pytest.mark.parametrize("command", ["inbox look", "replay --now", "inbox list --status lost"])
def test_a_command_that_does_not_exist_would_be_noticed(command: str) -> None:
    with pytest.raises(Exception, match=r"look|--now|'lost'"):
        understood(shlex.split(command))


def understood(words: list[str]) -> None:
    """Reads a command line as the command would, and does not run it."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, words)


def test_two_secrets_in_one_enrolment_alarm_where_the_provider_delivers_it(
    tmp_path: Path, synthesize: Synthesize
) -> None:
    asana = '\n[sources.asana]\nprovider = "asana"\n'
    template = synthesize(functions=write_functions(tmp_path, inbox=INBOX + asana))
    contested = alarm(template, "ContestedEnrolments-asana")
    assert watched(contested) == ("WebhookInbox/Inbox", "Deliveries", "Sum", 300)
    assert fires(contested) == (AT_LEAST, 1, 1)
    assert dimensions(contested) == {
        "service": "ingest",
        "source": "asana",
        "outcome": IngestOutcome.CONTESTED,
    }
    assert "secrets enrol asana`" in contested["AlarmDescription"]
    assert [name for name in template.all(ALARM) if "Contested" in name] == [
        name for name in template.all(ALARM) if "ContestedEnrolmentsasana" in name
    ]
