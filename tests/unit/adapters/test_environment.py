"""The functions' environments: written by the stacks, read by the functions."""

from dataclasses import replace
from typing import Any

import pytest

from webhook_inbox.adapters.environment import (
    IngestEnvironment,
    MaintenanceEnvironment,
    ProcessorEnvironment,
)
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SPLIT, SPLITTER, HandlerSpec, Manifest, Order

NAMES = {"default": "dead-1", "slow": "dead-2"}
COMMON: dict[str, Any] = {
    "table_name": "ledger",
    "queue_url": "https://sqs.example/1/webhook-inbox-dev-default",
    "queue_prefix": "webhook-inbox-dev-",
    "metrics_namespace": "WebhookInbox/WebhookInbox-dev",
}
ENVIRONMENTS = [
    IngestEnvironment(
        **COMMON, bucket_name="bodies", secret_document="dev/sources", generated_keys={}
    ),
    ProcessorEnvironment(
        **COMMON,
        bucket_name="bodies",
        secret_document="dev/handlers",
        generated_keys={"completion-key": "arn:1"},
        lane="slow",
        max_receive_count=13,
        code_version="abc123",
    ),
    MaintenanceEnvironment(**COMMON, bucket_name="bodies", dlq_names=NAMES),
]
INGEST, PROCESSOR, MAINTENANCE = ENVIRONMENTS
SLOW = HandlerSpec("slow", module="m", function="slow", source="s", types=("*",), lane="slow")
SERIAL = replace(SLOW, name="serial", lane="a.b", order=Order("serial", "id"))
MANIFEST = Manifest(handlers={"slow": SLOW, "serial": SERIAL})
WORK = {
    "default": "https://sqs.example/1/webhook-inbox-dev-default",
    "slow": "https://sqs.example/1/webhook-inbox-dev-slow",
    "a.b": "https://sqs.example/1/webhook-inbox-dev-a-b-57299c75.fifo",
}


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: type(e).__name__)
def test_what_a_stack_sets_is_what_its_function_reads(environment: Any) -> None:
    variables = environment.variables()

    assert all(isinstance(value, str) for value in variables.values())
    assert type(environment).read(variables) == environment


def test_variables_are_named_as_the_fields_in_capitals() -> None:
    assert PROCESSOR.variables() == {
        "TABLE_NAME": "ledger",
        "BUCKET_NAME": "bodies",
        "QUEUE_URL": "https://sqs.example/1/webhook-inbox-dev-default",
        "QUEUE_PREFIX": "webhook-inbox-dev-",
        "METRICS_NAMESPACE": "WebhookInbox/WebhookInbox-dev",
        "SECRET_DOCUMENT": "dev/handlers",
        "GENERATED_KEYS": '{"completion-key":"arn:1"}',
        "LANE": "slow",
        "MAX_RECEIVE_COUNT": "13",
        "CODE_VERSION": "abc123",
    }


def test_a_variable_with_a_default_may_be_missing() -> None:
    linked = replace(PROCESSOR, api_url="https://hooks.example")

    assert linked.variables()["API_URL"] == "https://hooks.example"
    assert ProcessorEnvironment.read(linked.variables()) == linked
    assert ProcessorEnvironment.read({**PROCESSOR.variables(), "API_URL": ""}) == PROCESSOR


def test_the_process_is_read_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PROCESSOR.variables().items():
        monkeypatch.setenv(name, value)

    assert ProcessorEnvironment.read() == PROCESSOR


def test_other_variables_do_not_matter() -> None:
    assert ProcessorEnvironment.read({**PROCESSOR.variables(), "HOME": "/"}) == PROCESSOR


@pytest.mark.parametrize("name", sorted(PROCESSOR.variables()))
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(name: str, value: str | None) -> None:
    variables = PROCESSOR.variables()
    del variables[name]
    if value is not None:
        variables[name] = value

    with pytest.raises(ConfigurationError, match=f"{name} is not set"):
        ProcessorEnvironment.read(variables)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", " 7", "1_0", "²", "٣"])
def test_a_number_is_a_whole_one_above_zero(value: str) -> None:
    with pytest.raises(ConfigurationError, match="MAX_RECEIVE_COUNT is not a positive number"):
        ProcessorEnvironment.read({**PROCESSOR.variables(), "MAX_RECEIVE_COUNT": value})


@pytest.mark.parametrize("value", ["x", "[]", "7", "null", '{"default": 1}', '{"default": ""}'])
def test_names_are_an_object_of_texts(value: str) -> None:
    with pytest.raises(ConfigurationError, match="DLQ_NAMES is"):
        MaintenanceEnvironment.read({**MAINTENANCE.variables(), "DLQ_NAMES": value})


def test_the_manifest_s_lanes_have_queues_beside_the_default_one() -> None:
    assert INGEST.queue_urls(MANIFEST) == WORK


def test_dead_letter_queues_are_beside_the_work_queues() -> None:
    assert MAINTENANCE.dlq_urls == {
        "default": "https://sqs.example/1/dead-1",
        "slow": "https://sqs.example/1/dead-2",
    }


def test_a_processor_reaches_its_own_queue_and_every_queue_if_it_splits_batches() -> None:
    assert PROCESSOR.reachable(MANIFEST) == {"slow": WORK["slow"]}

    splitter = replace(SPLITTER, lane="slow")
    splitting = replace(MANIFEST, handlers={**MANIFEST.handlers, SPLIT: splitter})
    assert PROCESSOR.reachable(splitting) == WORK
