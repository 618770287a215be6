"""Regions and partitions: what Lambda lacks in some is left out there; no name is of one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import Template, named

FUNCTION = "AWS::Lambda::Function"
# The regions of this table are those of docs/deploy.md.
REGIONS = [
    ("eu-west-1", "aws", True, True),
    ("us-east-1", "aws", True, True),
    ("mx-central-1", "aws", False, True),
    ("ap-southeast-6", "aws", False, True),
    ("cn-north-1", "aws-cn", False, True),
    ("cn-northwest-1", "aws-cn", False, True),
    ("us-gov-west-1", "aws-us-gov", False, False),
    ("us-gov-east-1", "aws-us-gov", False, False),
    ("eusc-de-east-1", "aws-eusc", False, True),
]
PARTITIONS = [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
# The principals of services have this suffix in every partition.
PRINCIPALS = {"apigateway", "cloudwatch", "events", "lambda"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """A template with every kind of resource, also the topic of alarms."""
    people = '[alarms]\nnotify = ["mailto:team@a.example"]\npage = ["https://a.example/x"]\n'
    return synthesize(
        functions=write_functions(tmp_path_factory.mktemp("whole"), inbox=INBOX + people)
    )


def texts(value: Any) -> Iterator[str]:
    """Every text of a template, joined, with references as `${Id}`."""
    match value:
        case {"Fn::Join": _} | {"Ref": _} | {"Fn::GetAtt": _}:
            yield named(value)
        case dict():
            for each in value.values():
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
        case str():
            yield value


@pytest.mark.parametrize(("region", "partition", "loops", "logs"), REGIONS)
def test_what_a_region_lacks_is_not_asked_of_it(
    dev: Template, region: str, partition: str, loops: bool, logs: bool
) -> None:
    functions = dev.deployed(region, partition).all(FUNCTION)
    allowed = {name for name, function in functions.items() if "RecursiveLoop" in function}
    assert allowed == {name for name in functions if loops and "Processor" in name}
    for function in functions.values():
        logging = function["LoggingConfig"]
        assert logging.get("LogFormat") == ("JSON" if logs else None)
        # Lambda accepts a level only with JSON.
        assert logging.get("SystemLogLevel") == ("WARN" if logs else None)
        assert function["LoggingConfig"]["LogGroup"]


def test_the_template_names_no_region_and_one_serves_all(dev: Template) -> None:
    without = {key: value for key, value in dev.body.items() if key != "Conditions"}
    assert not re.search(r"\b(us|eu|ap|cn|mx)-(gov-)?[a-z]+-\d\b", json.dumps(without))


@pytest.mark.parametrize("region", [region for region, *_ in REGIONS])
def test_each_type_of_resource_exists_in_the_region(whole: Template, region: str) -> None:
    """By CloudFormation's registry of the region, as cfn-lint has recorded it."""
    known = PROVIDER_SCHEMA_MANAGER.get_resource_types(region)
    assert set(whole.ids.values()) <= set(known)


@pytest.mark.parametrize(("region", "partition"), PARTITIONS)
def test_every_arn_is_of_the_partition(whole: Template, region: str, partition: str) -> None:
    found = [text for text in texts(whole.deployed(region, partition).body) if "arn:" in text]
    assert len(found) >= 3
    for text in found:
        assert set(re.findall(r"arn:[^:]*", text)) == {f"arn:{partition}"}, text


@pytest.mark.parametrize(("region", "partition"), PARTITIONS)
def test_no_host_name_is_of_another_partition(whole: Template, region: str, partition: str) -> None:
    """Service principals aside, AWS gives the endpoints: the API's URL, the queues' URLs."""
    resources = whole.deployed(region, partition).body
    hosts = {host for text in texts(resources) for host in re.findall(r"[\w.-]*amazonaws.*", text)}
    assert hosts == {f"{service}.amazonaws.com" for service in PRINCIPALS}
    assert named(whole.outputs["ApiUrl"]).endswith(".ApiEndpoint}")


def test_no_code_names_a_partition_but_this() -> None:
    top = Path(__file__).resolve().parents[2]
    parts = ("functions", "webhookctl", "webhook_inbox_cdk", "stacks")
    word = re.compile(r"arn:aws:|(?<!docs\.aws\.)\bamazonaws\.|console\.aws")
    found = {
        path.name
        for part in parts
        for path in (top / part).rglob("*.py")
        for line in path.read_text().splitlines()
        if word.search(line) and not line.startswith("#")
    }
    assert found == {
        "topics.py",  # service principals
        "function.py",
        "lean_clients.py",  # the hosts of the services that ingest calls
        "aws_sns.py",  # the certificates' hosts of every partition
        "aws.py",  # examples of ARNs
        "approvers.py",  # an example of a topic's ARN
        "evidence.py",  # the console of each partition
        "document.py",  # an example of a certificate's ARN
        "quotas.py",  # a service principal
        "network.py",  # the names of gateway endpoints, alike in every partition
        "inbox_stack.py",
        "deploy.py",  # the local runtime's
    }
