"""Executions of state machines, started once each."""

import json
import re
from datetime import UTC, datetime

import pytest

from tests.unit.handlers.forwarding.aws import Aws, handled
from webhook_inbox import start_execution
from webhook_inbox.domain.errors import ConfigurationError

MACHINE = "arn:aws:states:eu-west-1:111122223333:stateMachine:fulfil"
# https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
NAME = re.compile(r"[0-9A-Za-z_.-]{1,80}")
STARTED = {"executionArn": "arn:aws:x", "startDate": datetime(2026, 11, 21, tzinfo=UTC)}


@pytest.fixture
def states() -> Aws:
    return Aws("stepfunctions")


def test_an_execution_is_named_by_the_event_and_the_key(states: Aws) -> None:
    states.answers("start_execution", STARTED)

    run = handled(start_execution(MACHINE, client=states.client), {"id": "o-1"})

    assert run.status == "done"
    [call] = states.calls
    assert call["name"].startswith("o-1-")
    assert NAME.fullmatch(call["name"])
    told = json.loads(call["input"])
    assert told["idempotency_key"] == run.effects["start"].key
    assert told["event"]["id"] == "o-1"
    arn = f"arn:aws:states:eu-west-1:111122223333:execution:fulfil:{call['name']}"
    assert run.effects["start"].result == {"execution_arn": arn}


def test_an_execution_that_exists_was_started_by_an_earlier_attempt(states: Aws) -> None:
    states.refuses("start_execution", "InternalError", status=500)
    states.refuses("start_execution", "ExecutionAlreadyExists")

    run = handled(start_execution(MACHINE, client=states.client), {})
    assert run.effects["start"].in_doubt

    assert run.settle().status == "done"
    assert states.calls[0] == states.calls[1]


def test_a_version_or_an_alias_names_the_same_machine(states: Aws) -> None:
    states.answers("start_execution", STARTED)
    run = handled(start_execution(f"{MACHINE}:PROD", client=states.client), {"id": "o-1"})
    assert states.calls[0]["stateMachineArn"] == f"{MACHINE}:PROD"
    arn = run.effects["start"].result["execution_arn"]
    assert arn.startswith("arn:aws:states:eu-west-1:111122223333:execution:fulfil:o-1-")


@pytest.mark.parametrize("id_", ["a b/c#d:é", "x" * 300, "日本"])
def test_any_id_makes_a_name(states: Aws, id_: str) -> None:
    states.answers("start_execution", STARTED)
    run = handled(start_execution(MACHINE, client=states.client), {}, event_id=id_)
    assert run.status == "done"
    assert NAME.fullmatch(states.calls[0]["name"])


def test_an_express_machine_is_not_started_twice(states: Aws) -> None:
    states.refuses("start_execution", "InternalError", status=500)
    ready = start_execution(MACHINE, in_doubt="hold", client=states.client)
    assert handled(ready, {}).settle().status == "held"
    assert len(states.calls) == 1


def test_a_machine_at_its_limit_is_tried_again(states: Aws) -> None:
    states.refuses("start_execution", "ExecutionLimitExceeded")
    run = handled(start_execution(MACHINE, client=states.client), {})
    assert (run.status, run.effects["start"].status) == ("failed", "failed")


def test_a_machine_that_is_not_there_is_dead(states: Aws) -> None:
    states.refuses("start_execution", "StateMachineDoesNotExist")
    run = handled(start_execution(MACHINE, client=states.client), {})
    assert run.error == "permanent: stepfunctions start_execution: StateMachineDoesNotExist: no"


def test_a_missing_right_is_named(states: Aws) -> None:
    states.refuses("start_execution", "AccessDeniedException", status=400)
    run = handled(start_execution(MACHINE, client=states.client), {})
    assert f'add allow("states:StartExecution", on="{MACHINE}")' in run.error


def test_what_is_too_large_is_refused_before_anything_happens(states: Aws) -> None:
    run = handled(start_execution(MACHINE, client=states.client), b'"' + b"y" * 262_144 + b'"')
    assert (run.status, states.calls) == ("dead_letter", [])
    assert "an execution's input takes 262,144" in run.error


@pytest.mark.parametrize("name", ["fulfil", "arn:aws:lambda:eu-west-1:1:function:fulfil"])
def test_what_is_no_machine_is_refused_at_once(name: str) -> None:
    with pytest.raises(ConfigurationError, match="give the state machine's ARN"):
        start_execution(name)
