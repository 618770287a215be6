"""Lambda functions that an event is handed to."""

import json
from typing import Any

import pytest

from tests.unit.handlers.forwarding.aws import Aws, handled, payload
from webhook_inbox import invoke, start_execution
from webhook_inbox.domain.errors import ConfigurationError

NAME = "billing-worker"


@pytest.fixture
def functions() -> Aws:
    return Aws("lambda")


def answer(body: bytes = b"{}", **more: Any) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": payload(body), **more}


def test_a_function_is_given_the_event_and_its_key(functions: Aws) -> None:
    functions.answers("invoke", answer(b'{"done": 1}'))

    run = handled(invoke(NAME, client=functions.client), {"id": "o-1"})

    assert run.status == "done"
    [call] = functions.calls
    assert (call["FunctionName"], call["InvocationType"]) == (NAME, "RequestResponse")
    told = json.loads(call["Payload"])
    assert told["idempotency_key"] == run.effects["invoke"].key == "invoke:acme.hand-on:acme:o-1"
    assert told["event"]["data"] == {"id": "o-1"}
    assert run.effects["invoke"].result["answer"] == {"done": 1}


def test_a_function_that_raised_is_invoked_again_under_the_same_key(functions: Aws) -> None:
    error = b'{"errorType": "KeyError", "errorMessage": "no such sku"}'
    functions.answers("invoke", answer(error, FunctionError="Unhandled"))
    functions.answers("invoke", answer())

    run = handled(invoke(NAME, client=functions.client), {})

    assert run.error == f"{NAME} failed: KeyError: no such sku"
    assert run.effects["invoke"].in_doubt
    assert run.settle().status == "done"
    assert len({call["Payload"] for call in functions.calls}) == 1


@pytest.mark.parametrize("kind", ["Permanent", "shop.errors.Permanent"])
def test_a_function_may_say_that_no_repetition_helps(functions: Aws, kind: str) -> None:
    error = json.dumps({"errorType": kind, "errorMessage": "sold out"}).encode()
    functions.answers("invoke", answer(error, FunctionError="Unhandled"))
    run = handled(invoke(NAME, client=functions.client), {})
    assert (run.status, run.effects["invoke"].status) == ("dead_letter", "failed")
    assert run.error == f"permanent: {NAME} failed: {kind}: sold out"


@pytest.mark.parametrize("said", [b"", b"Runtime exited", b"[]", b"\xff"])
def test_a_function_that_died_says_nothing_that_can_be_read(functions: Aws, said: bytes) -> None:
    functions.answers("invoke", answer(said, FunctionError="Unhandled"))
    run = handled(invoke(NAME, client=functions.client), {})
    assert (run.status, run.error) == ("failed", f"{NAME} failed: unknown: ")


def test_in_doubt_it_is_not_repeated_where_the_function_knows_no_key(functions: Aws) -> None:
    functions.answers("invoke", answer(b"{}", FunctionError="Unhandled"))
    run = handled(invoke(NAME, in_doubt="hold", client=functions.client), {}).settle()
    assert (run.status, len(functions.calls)) == ("held", 1)


def test_a_throttled_function_was_not_invoked(functions: Aws) -> None:
    functions.refuses(
        "invoke", "TooManyRequestsException", status=429, headers={"retry-after": "1200"}
    )
    run = handled(invoke(NAME, client=functions.client), {})
    assert (run.status, run.effects["invoke"].status) == ("failed", "failed")
    assert run.due is not None
    assert (run.due - run.row.attempts[0].started_at).total_seconds() >= 1200


@pytest.mark.parametrize("asked", ["", "soon", "9" * 30])
def test_an_odd_pause_breaks_nothing(functions: Aws, asked: str) -> None:
    headers = {"retry-after": asked}
    functions.refuses("invoke", "TooManyRequestsException", status=429, headers=headers)
    assert handled(invoke(NAME, client=functions.client), {}).status == "failed"


@pytest.mark.parametrize(
    ("code", "status", "effect"),
    [
        ("ServiceException", 500, "started"),
        ("ResourceNotReadyException", 502, "failed"),
        ("ResourceConflictException", 409, "failed"),
        ("EC2ThrottledException", 502, "failed"),
        ("ExpiredTokenException", 403, "failed"),
    ],
)
def test_what_may_pass_is_tried_again(functions: Aws, code: str, status: int, effect: str) -> None:
    functions.refuses("invoke", code, status=status)
    run = handled(invoke(NAME, client=functions.client), {})
    assert (run.status, run.effects["invoke"].status) == ("failed", effect)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ResourceNotFoundException", 404),
        ("InvalidParameterValueException", 400),
        ("RequestTooLargeException", 413),
    ],
)
def test_what_will_not_pass_is_dead(functions: Aws, code: str, status: int) -> None:
    functions.refuses("invoke", code, status=status)
    run = handled(invoke(NAME, client=functions.client), {})
    assert run.error == f"permanent: lambda invoke: {code}: no"


def test_a_missing_right_is_named(functions: Aws) -> None:
    functions.refuses("invoke", "AccessDeniedException", status=403)
    run = handled(invoke(NAME, client=functions.client), {})
    right = f'allow("lambda:InvokeFunction", on="arn:aws:lambda:REGION:ACCOUNT:function:{NAME}")'
    assert f"add {right} to stacks/inbox_stack.py" in run.error


def test_without_waiting_lambda_queues_it(functions: Aws) -> None:
    functions.answers("invoke", {"StatusCode": 202, "Payload": payload(b"")})
    run = handled(invoke(NAME, wait=False, client=functions.client), {})
    assert (run.status, functions.calls[0]["InvocationType"]) == ("done", "Event")
    assert run.effects["invoke"].result == {"status": 202, "request_id": ""}


@pytest.mark.parametrize(("wait", "limit"), [(True, 6 * 2**20), (False, 2**20)])
def test_what_is_too_large_is_refused_before_anything_happens(
    functions: Aws, wait: bool, limit: int
) -> None:
    run = handled(invoke(NAME, wait=wait, client=functions.client), b'"' + b"y" * limit + b'"')
    assert (run.status, list(run.effects), functions.calls) == ("dead_letter", [], [])
    assert f"an invocation of {NAME} takes {limit:,}" in run.error


def test_a_long_answer_is_not_recorded(functions: Aws) -> None:
    functions.answers("invoke", answer(json.dumps("y" * 70_000).encode()))
    run = handled(invoke(NAME, client=functions.client), {})
    assert (run.status, "answer" in run.effects["invoke"].result) == ("done", False)


def test_it_is_not_begun_without_the_time_that_it_may_take(functions: Aws) -> None:
    run = handled(invoke(NAME, timeout=58, client=functions.client), {})
    assert run.error == "effect 'invoke' needs 60 s, and 50.0 s are left"
    assert functions.calls == []


def test_an_unknown_policy_is_refused_at_once() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^invoke\('f'\): in_doubt='ask'; use retry or hold"
    ):
        invoke("f", in_doubt="ask")
    with pytest.raises(ConfigurationError, match="in_doubt='ask'; use retry or hold"):
        start_execution("arn:aws:states:eu-west-1:1:stateMachine:m", in_doubt="ask")
