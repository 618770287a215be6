"""The limits of AWS: each is found at synth, with the number and the remedy."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import CfnResource, Stack, Stage
from webhook_inbox_cdk import limits, synthesis

from tests.infra.template import Template
from webhook_inbox.domain.errors import ConfigurationError

FUNCTION = "AWS::Lambda::Function"
GET_ATT = {"Fn::GetAtt": ["Queue", "Arn"]}
QUEUE = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "q" * 80}}}


def of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Resources": {"It": {"Type": kind, "Properties": properties}, **QUEUE}}


def policy(statements: int) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": GET_ATT}
    return {"Version": "2012-10-17", "Statement": [statement] * statements}


def many(kind: str, number: int, **properties: Any) -> dict[str, Any]:
    return {
        "Resources": {f"It{n}": {"Type": kind, "Properties": properties} for n in range(number)}
    }


API = {"ApiId": {"Ref": "Api"}}
PERMISSION = {"FunctionName": {"Ref": "Ingest"}, "SourceArn": "x" * 100, "Action": "y" * 50}
EXCESSES = [
    (many("AWS::SQS::Queue", 501), "resources: 501, but AWS accepts 500; let several serial"),
    (
        {"Resources": {}, "Outputs": {f"O{n}": {"Value": ""} for n in range(201)}},
        "outputs: 201, but AWS accepts 200; divide the sources between two stacks",
    ),
    (
        {"Resources": {}, "Outputs": {"O" * 256: {"Value": ""}}},
        f"characters in the name of output {'O' * 256}: 256, but AWS accepts 255; shorten the",
    ),
    (of("Any", Text="x" * 1_000_000), "bytes of the template: 1,000,"),
    (
        of(FUNCTION, Environment={"Variables": {"URL": {"Ref": "Queue"}, "A": "x" * 3943}}),
        "bytes of the environment variables of function It: 4,097, but AWS accepts 4,096; let",
    ),
    (
        of("AWS::IAM::Policy", Roles=[{"Ref": "Role"}], PolicyDocument=policy(60)),
        "characters in the inline policies of role Role: 1",
    ),
    (of("AWS::IAM::ManagedPolicy", PolicyDocument=policy(30)), "characters in policy It: 6,"),
    (of("AWS::SQS::QueuePolicy", PolicyDocument=policy(60)), "bytes of AWS::SQS::QueuePolicy It:"),
    (many("AWS::ApiGatewayV2::Route", 301, **API), "routes of API Api: 301, but AWS accepts 300"),
    (
        many("AWS::Lambda::Permission", 50, **PERMISSION),
        "bytes of the resource policy of function Ingest: 21,",
    ),
    (of(FUNCTION, FunctionName="f" * 65), "characters in FunctionName of It: 65, but AWS accepts"),
    (of("AWS::IAM::Role", RoleName="r" * 65), "characters in RoleName of It: 65, but AWS accepts"),
    (of("AWS::SQS::Queue", QueueName="r" * 81), "characters in QueueName of It: 81, but AWS"),
    (
        of("AWS::CloudWatch::Alarm", AlarmDescription="x" * 1025),
        "characters in the description of alarm It: 1,025, but AWS accepts 1,024; shorten",
    ),
]


@pytest.mark.parametrize(("body", "line"), EXCESSES)
def test_an_exceeded_limit_is_one_line_with_number_and_remedy(
    body: dict[str, Any], line: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        limits.check("Inbox", body)
    [found] = str(raised.value).splitlines()
    assert found.startswith(f"Inbox: {line}")


def test_values_at_the_limits_are_accepted() -> None:
    limits.check("Inbox", many("AWS::SQS::Queue", 500))
    variables = {"URL": {"Ref": "Queue"}, "A": "x" * 3942}
    limits.check("Inbox", of(FUNCTION, Environment={"Variables": variables}))


def test_generated_names_count_as_cloudformation_makes_them() -> None:
    """WebhookInbox-prod-LogicalId-1A2B3C4D5E6F7, at most 80 for a queue."""
    for name, length in (("Dead", 5 + 1 + 4 + 14), ("D" * 80, 80)):
        body = of(FUNCTION, Environment={"Variables": {"DLQ": {"Fn::GetAtt": [name, "QueueName"]}}})
        body["Resources"][name] = {"Type": "AWS::SQS::Queue"}
        counts = {each.what: each.found for each in limits.counts("Inbox", body)}
        found = counts["bytes of the environment variables of function It"]
        assert found == len("DLQ") + length


def test_each_exceeded_limit_has_its_line() -> None:
    body = {**many("AWS::SQS::Queue", 501), "Outputs": {f"O{n}": {} for n in range(201)}}
    with pytest.raises(ConfigurationError) as raised:
        limits.check("Inbox", body)
    assert len(str(raised.value).splitlines()) == 2


def test_the_template_of_few_sources_is_far_below_every_limit(dev: Template) -> None:
    for each in limits.counts("Inbox", dev.body):
        assert each.found < each.limit * 0.8, each


@pytest.mark.parametrize("stage", ["", "Prod"])
def test_synthesis_prints_the_lines_and_fails(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CDK's own check would raise first, with another text."""
    (tmp_path / "cdk.json").write_text(json.dumps({}))
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    with pytest.raises(SystemExit, match="1"):
        _large(tmp_path / "app.py", stage)
    line = capsys.readouterr().err.splitlines()[-1]
    name = f"{stage}-Large" if stage else "Large"
    assert line.startswith(f"{name}: resources: 501, but AWS accepts 500")


def _large(app_py: Path, stage: str) -> None:
    with synthesis(str(app_py)) as app:
        stack = Stack(Stage(app, stage) if stage else app, "Large")
        for number in range(501):
            CfnResource(stack, f"Queue{number}", type="AWS::SQS::Queue")
