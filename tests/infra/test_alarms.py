"""The alarms: every one is pinned, reaches its severity's topic, and says what to do next."""

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from webhook_inbox_cdk.alarm_declaration import anchor, of_inbox
from webhook_inbox_cdk.answer_limit import answer_limit

from tests.infra.alarm_states import expression, sources
from tests.infra.conftest import INBOX, LANES, Synthesize, write_functions
from tests.infra.template import Properties, Template, named
from webhook_inbox import providers
from webhook_inbox.domain import metrics
from webhook_inbox.domain.manifest import SourceSpec
from webhookctl.app import app

ALARM = "AWS::CloudWatch::Alarm"
TOPIC = "AWS::SNS::Topic"
NOTIFY = 'notify = ["mailto:team@a.example"]\n'
PAGE = 'page = ["https://pager.example/x"]\n'
PEOPLE = f"[alarms]\n{NOTIFY}{PAGE}"
QUIET, FIRES = "notBreaching", "breaching"
OWN, OF_API, OF_LAMBDA, OF_SQS = "own", "AWS/ApiGateway", "AWS/Lambda", "AWS/SQS"
OF_TABLE = "AWS/DynamoDB"
VISIBLE, AGE = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
BY_LANE = "MAX([m1, m2])"
# Alarm: severity; metrics; metric math; period in seconds; "threshold or more" (or less);
# breaching periods of evaluated periods; missing data.
PINS: dict[str, tuple[str, list[tuple[str, ...]], str, int, str, str, str]] = {
    "IntakeFailing": (
        "page",
        [
            (OWN, "IngestFailures", "Sum"),
            (OF_LAMBDA, "Errors", "Sum", "Ingest"),
            (OF_LAMBDA, "Throttles", "Sum", "Ingest"),
        ],
        "SUM([m1, m2, m3])",
        60,
        ">= 1",
        "3 of 10",
        QUIET,
    ),
    "ApiErrors": ("notify", [(OF_API, "5xx", "Sum")], "", 60, ">= 1", "1 of 1", QUIET),
    "IngestSlow": (
        "notify",
        [(OF_API, "Latency", "p99")],
        "",
        300,
        ">= 7000",  # 70 % of 10 s: GitHub's limit, and ingest's
        "3 of 3",
        QUIET,
    ),
    "Throttled": ("notify", [(OWN, "Throttled", "Sum")], "", 60, ">= 1", "1 of 1", QUIET),
    "RejectedRate": (
        "notify",
        [(OWN, "Rejected", "Sum"), (OF_LAMBDA, "Invocations", "Sum")],
        "IF(m1 >= 20, 100 * m1 / m2, IF(m1 >= 5, 20 * m1 / m2, 0))",
        900,
        ">= 10",
        "1 of 1",
        QUIET,
    ),
    "Conflicts": ("notify", [(OWN, "Conflicts", "Sum")], "", 300, ">= 1", "1 of 1", QUIET),
    "HeldUncertain": ("notify", [(OWN, "HeldUncertain", "Sum")], "", 300, ">= 1", "1 of 1", QUIET),
    "HeldIdentical": ("notify", [(OWN, "HeldIdentical", "Sum")], "", 300, ">= 1", "1 of 1", QUIET),
    "DeadLetters": (
        "notify",
        [(OWN, "Runs", "Sum", "outcome=dead")],
        "",
        300,
        ">= 1",
        "1 of 3",
        QUIET,
    ),
    "DeadLetterBurst": (
        "page",
        [(OWN, "Runs", "Sum", "outcome=dead")],
        "",
        600,
        ">= 5",
        "1 of 1",
        QUIET,
    ),
    "DeadAgain": ("notify", [(OWN, "DeadAgain", "Sum")], "", 300, ">= 1", "1 of 1", QUIET),
    "EffectsInDoubt": (
        "notify",
        [(OWN, "EffectsInDoubt", "Sum")],
        "",
        300,
        ">= 1",
        "1 of 1",
        QUIET,
    ),
    "DlqGrowing": (
        "page",
        [(OF_SQS, VISIBLE, "Maximum", "DeadLetters")] * 2,
        "DIFF(SUM([m1, m2]))",
        300,
        ">= 1",
        "3 of 3",
        QUIET,
    ),
    "DlqAge": (
        "notify",
        [(OWN, "OldestDeadLetter", "Maximum")],
        "",
        3_600,
        ">= 864000",
        "1 of 2",
        QUIET,
    ),
    "OldestDue": ("page", [(OWN, "OldestDue", "Maximum")], "", 300, ">= 3600", "3 of 3", QUIET),
    "Backlog": (
        "notify",
        [(OF_SQS, AGE, "Maximum", "Work")] * 2,
        BY_LANE,
        60,
        ">= 900",
        "5 of 5",
        QUIET,
    ),
    "ProcessorCrashes": (
        "page",
        [(OF_LAMBDA, "Errors", "Sum", "Processor")] * 2,
        BY_LANE,
        900,
        ">= 3",
        "1 of 1",
        QUIET,
    ),
    "FunctionThrottles": (
        "notify",
        [(OF_LAMBDA, "Throttles", "Sum", "Processor")] * 2,
        "SUM([m1, m2])",
        300,
        ">= 1",
        "3 of 3",
        QUIET,
    ),
    "DestinationRefusals": (
        "page",
        [(OWN, "DestinationRefusals", "Sum")],
        "",
        300,
        ">= 1",
        "1 of 1",
        QUIET,
    ),
    "TableThrottles": (
        "notify",
        [
            (OF_TABLE, "ThrottledRequests", "Sum", "Ledger", "PutItem"),
            (OF_TABLE, "ThrottledRequests", "Sum", "Ledger", "UpdateItem"),
        ],
        "SUM([m1, m2])",
        300,
        ">= 1",
        "3 of 3",
        QUIET,
    ),
    "ReconcilerLate": (
        "page",
        [
            (OF_LAMBDA, "Invocations", "Sum", "Reconciler"),
            (OF_LAMBDA, "Errors", "Sum", "Reconciler"),
        ],
        "m1 - m2",
        300,
        "<= 2",
        "2 of 2",
        FIRES,
    ),
    "Degraded": ("notify", [(OWN, "Degraded", "Sum")], "", 900, ">= 5", "1 of 1", QUIET),
    "RunsGivenUp": ("notify", [(OWN, "RunsGivenUp", "Sum")], "", 300, ">= 1", "1 of 1", QUIET),
    "RunsNearExpiry": (
        "notify",
        [(OWN, "RunsNearExpiry", "Sum")],
        "",
        3_600,
        ">= 1",
        "1 of 24",
        QUIET,
    ),
    "ReplayErrors": (
        "notify",
        [(OF_LAMBDA, "Errors", "Sum", "Replay")],
        "",
        300,
        ">= 1",
        "1 of 1",
        QUIET,
    ),
    "ReplayInterrupted": (
        "notify",
        [(OWN, "ReplayInterrupted", "Sum")],
        "",
        300,
        ">= 1",
        "1 of 1",
        QUIET,
    ),
}
COMPARISONS = {"GreaterThanOrEqualToThreshold": ">=", "LessThanOrEqualToThreshold": "<="}


def told_by(top: Path, synthesize: Synthesize, people: str) -> Template:
    return synthesize(functions=write_functions(top, inbox=INBOX + people))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """An inbox whose configuration names people for both severities."""
    return told_by(tmp_path_factory.mktemp("told"), synthesize, PEOPLE)


def flat(name: str) -> str:
    """An alarm's id as in its logical id."""
    return re.sub(r"\W", "", name)


def alarm_id(logical: str) -> str:
    """The part of a logical id that is the alarm's own."""
    return logical[len("InboxAlarms") : -8]


def alarm(template: Template, name: str) -> Properties:
    [found] = [p for key, p in template.all(ALARM).items() if alarm_id(key) == flat(name)]
    return found


def test_the_alarms_are_these_with_and_without_people(dev: Template, told: Template) -> None:
    for template in (dev, told):
        assert {alarm_id(name) for name in template.all(ALARM)} == {flat(name) for name in PINS}


@pytest.mark.parametrize("name", PINS)
def test_each_alarm_has_its_metrics_condition_and_topic(told: Template, name: str) -> None:
    severity, watched, math, period, condition, datapoints, missing = PINS[name]
    found = alarm(told, name)
    for source, (namespace, metric, statistic, *named_by) in zip(
        sources(found), watched, strict=True
    ):
        own = namespace == OWN
        assert source.namespace == ("WebhookInbox/Inbox" if own else namespace)
        assert (source.name, source.statistic, source.period) == (metric, statistic, period)
        if own:
            assert [f"{key}={value}" for key, value in source.dimensions.items()] == named_by
        else:
            values = source.dimensions.values()
            assert all(part in "".join(values) for part in named_by)
            resources = {value[2:-1].partition(".")[0] for value in values if "${" in value}
            assert resources <= set(told.ids)
    assert expression(found) == math
    compare = COMPARISONS[found["ComparisonOperator"]]
    assert f"{compare} {found['Threshold']}" == condition
    evaluated = found["EvaluationPeriods"]
    assert f"{found.get('DatapointsToAlarm', evaluated)} of {evaluated}" == datapoints
    assert found["TreatMissingData"] == missing
    assert topics_of(told, found) == [severity]


def topics_of(template: Template, properties: Properties) -> list[str]:
    """The severities of the topics that an alarm notifies, of its beginning and of its end."""
    assert properties.get("AlarmActions") == properties.get("OKActions")
    assert "InsufficientDataActions" not in properties
    names = [named(action)[2:-1] for action in properties.get("AlarmActions", ())]
    return [template.all(TOPIC)[name]["DisplayName"].partition(" ")[0] for name in names]


def test_each_lane_and_table_index_is_watched_once(told: Template) -> None:
    for name, (_, watched, *_) in PINS.items():
        keys = [source.key for source in sources(alarm(told, name))]
        assert len(set(keys)) == len(watched)


def test_no_page_reads_what_anyone_can_make_the_api_answer(told: Template) -> None:
    """API Gateway counts a 5xx for a body over 6 MB, a source without a secret, an unknown key."""
    for name, (severity, *_) in PINS.items():
        read = {source.namespace for source in sources(alarm(told, name))}
        assert severity != "page" or OF_API not in read, name


def test_each_metric_is_of_the_catalogue_with_its_dimensions(dev: Template) -> None:
    for properties in dev.all(ALARM).values():
        for source in sources(properties):
            if not source.namespace.startswith("AWS/"):
                declared = metrics.CATALOGUE[source.name]
                assert tuple(source.dimensions) in declared.dimensions
                assert metrics.Use.ALARM in declared.used


def test_dimensions_that_no_function_writes_are_refused() -> None:
    with pytest.raises(ValueError, match="Runs has the dimensions"):
        of_inbox("WebhookInbox/Inbox", metrics.RUNS, handler="a.b")


def test_without_people_there_are_no_topics(dev: Template) -> None:
    assert not dev.all(TOPIC)
    for properties in dev.all(ALARM).values():
        assert "AlarmActions" not in properties


def test_each_severity_has_its_topic_and_its_addresses(told: Template) -> None:
    severity = {name: p["DisplayName"].partition(" ")[0] for name, p in told.all(TOPIC).items()}
    assert sorted(severity.values()) == ["notify", "page"]
    people = {
        (severity[s["TopicArn"]["Ref"]], s["Protocol"], s["Endpoint"])
        for s in told.all("AWS::SNS::Subscription").values()
    }
    assert people == {
        ("notify", "email", "team@a.example"),
        ("page", "https", "https://pager.example/x"),
    }


@pytest.mark.parametrize(("people", "severity"), [(NOTIFY, "notify"), (PAGE, "page")])
def test_the_only_list_with_addresses_receives_both_severities(
    tmp_path: Path, synthesize: Synthesize, people: str, severity: str
) -> None:
    template = told_by(tmp_path, synthesize, f"[alarms]\n{people}")
    for name in ("IntakeFailing", "ApiErrors"):
        assert topics_of(template, alarm(template, name)) == [severity]


@pytest.mark.parametrize(
    ("fact", "seconds"),
    [
        ("3 s", 3),
        ("10 s on GitLab.com", 10),
        ("15 to 30 s", 15),
        ("3 minutes", 180),
        ("the subscription's acknowledgement deadline, 10 to 600 s", 10),
        ("a few seconds", None),
        ("not documented", None),
    ],
)
def test_a_provider_s_answer_limit_is_read_from_its_facts(fact: str, seconds: int | None) -> None:
    assert answer_limit(fact) == seconds


def test_every_documented_limit_with_a_number_is_read() -> None:
    for name in providers.MODULES:
        if name in providers.DECLARED:
            continue
        module = import_module(f"webhook_inbox.providers.{providers.MODULES[name]}")
        spec = SourceSpec(name, name, name, settings=getattr(module, "EXAMPLE", {}))
        facts = providers.load(spec).facts
        if facts is not None and re.search(r"\d", facts.answer_within):
            assert answer_limit(facts.answer_within) is not None, name


def test_ingest_is_slow_near_the_strictest_limit(tmp_path: Path, synthesize: Synthesize) -> None:
    template = told_by(tmp_path, synthesize, '\n[sources.slack]\nprovider = "slack"\n')
    assert alarm(template, "IngestSlow")["Threshold"] == 2_100
    assert "3 s, the strictest" in alarm(template, "IngestSlow")["AlarmDescription"]


def test_only_this_account_s_alarms_may_publish_and_only_with_tls(told: Template) -> None:
    for topic in told.all(TOPIC):
        admits_alarms(told, topic)


def admits_alarms(told: Template, topic: str) -> None:
    [policy] = [
        each
        for each in told.all("AWS::SNS::TopicPolicy").values()
        if each["Topics"] == [{"Ref": topic}]
    ]
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


TEXT = re.compile(
    r".+ First: `webhookctl --stack Inbox [^`]+`\. Severity: (notify|page)\."
    r" Runbook: `webhookctl --stack Inbox runbook ([a-z-]+)`"
)


def described(template: Template) -> dict[str, str]:
    """The text of every alarm by its id."""
    every = template.all(ALARM)
    return {alarm_id(name): properties["AlarmDescription"] for name, properties in every.items()}


def test_every_text_has_a_first_command_its_severity_and_its_page(told: Template) -> None:
    texts = described(told)
    for name, text in texts.items():
        found = TEXT.fullmatch(text)
        assert found is not None, name
        assert name.startswith(flat(found[2].replace("-", " ").title()))
    for name, (severity, *_) in PINS.items():
        # A consequence notifies through the composite.
        expected = "notify" if severity == "none" else severity
        assert f"Severity: {expected}." in texts[flat(name)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("DlqGrowing-2", "dlq-growing"), ("DeadLetters", "dead-letters"), ("Backlog", "backlog")],
)
def test_a_page_is_the_alarm_s_name_in_kebab_case(name: str, expected: str) -> None:
    assert anchor(name) == expected


def test_every_alarm_says_what_to_do_in_commands_that_exist(dev: Template) -> None:
    for name, text in described(dev).items():
        assert "`webhookctl" not in text.replace("`webhookctl --stack Inbox ", "")
        commands = re.findall(r"`webhookctl --stack Inbox ([^`]+)`", text)
        assert commands, name
        for command in commands:
            understood(shlex.split(command))


@pytest.mark.parametrize(
    "command", ["inbox look", "replay --now", "inbox list --status lost", "replay --yes"]
)
def test_a_command_that_does_not_exist_would_be_noticed(command: str) -> None:
    with pytest.raises(Exception, match=r"look|--now|'lost'|without a filter"):
        understood(shlex.split(command))


def understood(words: list[str]) -> None:
    """Reads a command line as the command would, and does not run it."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    filters = set(words) - {"--yes"}
    command.make_context(command.name, words)
    assert command.name != "replay" or filters, "replay refuses to run without a filter"


def test_two_secrets_in_one_enrolment_alarm_where_the_provider_delivers_it(
    tmp_path: Path, synthesize: Synthesize
) -> None:
    template = told_by(tmp_path, synthesize, '\n[sources.asana]\nprovider = "asana"\n')
    contested = alarm(template, "ContestedEnrolments")
    [source] = sources(contested)
    assert (source.name, source.dimensions) == ("Rejected", {"reason": "contested-enrolment"})


def test_a_text_names_the_sources_whose_provider_never_repeats(
    dev: Template, tmp_path: Path, synthesize: Synthesize
) -> None:
    names = ("ApiErrors", "Throttled")
    texts = [alarm(dev, name)["AlarmDescription"] for name in names]
    assert all("again for a limited time, except for github." in text for text in texts)
    inbox = INBOX.replace('"github"', '"shopify"')
    shopify = synthesize(functions=write_functions(tmp_path, inbox=inbox))
    texts = [alarm(shopify, name)["AlarmDescription"] for name in names]
    assert all("again for a limited time. First" in text for text in texts)


def test_more_lanes_than_an_expression_takes_have_a_second_alarm(
    tmp_path: Path, synthesize: Synthesize
) -> None:
    functions = write_functions(tmp_path)
    settings = functions / "inbox.toml"
    settings.write_text(settings.read_text().replace(LANES, ""))
    handlers = "".join(
        f'@many.on("push", lane="l{n}", name="many.h{n}")\ndef h{n}(event, ctx): ...\n'
        for n in range(10)
    )
    head = 'from webhook_inbox import Router\nmany = Router("many", source="github")\n'
    (functions / "handlers" / "github_issues.py").write_text(head + handlers)
    template = synthesize(functions=functions)
    assert len(sources(alarm(template, "Backlog"))) == 10
    assert len(sources(alarm(template, "Backlog-2"))) == 1
    assert expression(alarm(template, "DlqGrowing-2")) == "DIFF(m1)"
