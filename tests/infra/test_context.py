"""The context values: `cdk -c` gives text, and each mistake is one line."""

import json
from typing import Any

import pytest
from aws_cdk import App, Stack
from webhook_inbox_cdk.context import Context
from webhook_inbox_cdk.network import needs, vpc_from

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import DestinationSpec, Manifest

VPC = {"id": "vpc-1", "availability_zones": ["a", "b"], "private_subnet_ids": ["s-a", "s-b"]}


def context(**values: Any) -> Context:
    return Context(App(context=values, analytics_reporting=False))


def refusal(**vpc: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        vpc_from(Stack(App(), "S"), vpc)
    return str(raised.value)


@pytest.mark.parametrize(
    ("given", "value"),
    [(True, True), ("true", True), ("True", True), (False, False), ("false", False), ("", False)],
)
def test_a_flag_is_true_or_false(given: Any, value: bool) -> None:
    assert context(local=given).flag("local") is value


@pytest.mark.parametrize("given", ["yes", "0", 1, "tru"])
def test_other_flags_are_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^context local: .* is not true or false$"):
        context(local=given).flag("local")


@pytest.mark.parametrize(
    ("given", "value"), [("20", 20), (" 5 ", 5), (7, 7), ("-1", -1), ("", None)]
)
def test_a_number_is_whole(given: Any, value: int | None) -> None:
    assert context(reserved_concurrency=given).number("reserved_concurrency", default=None) == value


@pytest.mark.parametrize("given", ["1e3", "1_0", "2.5", 2.5, "many", True, [5], "٣"])
def test_other_numbers_are_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a whole number; write -c reserved_c"):
        context(reserved_concurrency=given).number("reserved_concurrency", default=None)


def test_a_number_that_is_refused_is_told_one_that_is_taken() -> None:
    with pytest.raises(ConfigurationError, match=r"write -c ingest_memory=512$"):
        context(ingest_memory="512MB").number("ingest_memory", default=512)


@pytest.mark.parametrize("given", ["no/such/directory", "cdk.json", 5])
def test_functions_is_a_directory(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^context functions: .* is not a directory"):
        context(functions=given).directory("functions")


@pytest.mark.parametrize("given", [VPC, json.dumps(VPC), f" {json.dumps(VPC)} "])
def test_a_table_is_an_object_or_its_json(given: Any) -> None:
    assert context(vpc=given).table("vpc") == VPC


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("{id: vpc-1}", r"context vpc: '{id: vpc-1}' is not JSON \(Expecting .*\); write -c vpc="),
        ("vpc-1", r"context vpc: 'vpc-1' is not JSON"),
        ('["vpc-1"]', r"context vpc: \['vpc-1'\] is not an object; write -c vpc='{\"id\": "),
        (True, "context vpc: True is not an object"),
    ],
)
def test_other_tables_are_refused(given: Any, line: str) -> None:
    with pytest.raises(ConfigurationError, match=line) as raised:
        context(vpc=given).table("vpc")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "meant"),
    [("reserved_concurency", "reserved_concurrency"), ("stages", "stage"), ("Stage", "stage")],
)
def test_a_key_that_resembles_ours_is_refused(key: str, meant: str) -> None:
    line = f'^context {key}: unknown key; did you mean "{meant}"'
    with pytest.raises(ConfigurationError, match=line):
        context(**{key: "x"})


@pytest.mark.parametrize("given", ["20", 20, ""])
def test_a_number_of_workers_is_in_inbox_toml(given: Any) -> None:
    line = r"^context max_concurrency: .* `workers` under \[lanes\.NAME\] in inbox\.toml$"
    with pytest.raises(ConfigurationError, match=line):
        context(max_concurrency=given)


@pytest.mark.parametrize(
    "own",
    [
        {"@aws-cdk/core:stackResourceLimit": 0, "stack_owner": "us", "vpc_id": "vpc-1"},
        {"stages": {"dev": {}}, "stacks": ["a"], "vpcs": ["vpc-1"], "locale": "de"},
    ],
)
def test_an_app_s_own_keys_are_not_refused(own: dict[str, Any]) -> None:
    context(**own)


def test_a_misspelt_table_is_refused() -> None:
    with pytest.raises(ConfigurationError, match='did you mean "vpc"'):
        context(vcp=VPC, vpcc=VPC)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"id": ""}, 'context vpc: id: missing, or no text; write "id": "vpc-…"'),
        ({"id": 5}, "context vpc: id: missing, or no text"),
        ({"availability_zones": "a"}, "context vpc: availability_zones: missing, or no list"),
        ({"private_subnet_ids": []}, "context vpc: private_subnet_ids: missing, or no list of"),
        ({"private_subnet_ids": ["s", 5]}, "context vpc: private_subnet_ids: missing, or no"),
        ({"private_subnet_ids": ["s"]}, "context vpc: 1 private_subnet_ids for 2 availability_"),
        ({"gateway_endpoints": True}, "context vpc: gateway_endpoints: missing, or no list of"),
        ({"private_subnets": ["s"]}, "context vpc: private_subnets: unknown key; did you mean"),
        ({"x": 1}, "context vpc: x: unknown key; the keys are id, availability_zones, private_"),
    ],
)
def test_a_network_that_is_not_complete_is_refused(changes: dict[str, Any], line: str) -> None:
    assert refusal(**{**VPC, **changes}).startswith(line)


def test_a_network_says_what_it_must_offer() -> None:
    crm = DestinationSpec("crm", "https://crm.acme.com/api")
    text = needs(Manifest(destinations={"crm": crm, "log": DestinationSpec("log", "sink")}))
    assert "Destinations (crm.acme.com) on the internet need a NAT gateway" in text
    assert "DynamoDB, S3, SQS, Secrets Manager" in text
    assert "Destinations on the internet" in needs(Manifest())
