"""Forwards events to AWS services as CloudEvents."""

import json
from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.adapters.aws.operation import AwsOperation
from webhook_inbox.domain.errors import ConfigurationError, Permanent, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.effects.plan import InDoubt
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.forwarding.cloud_event import cloud_event
from webhook_inbox.handlers.router import ReadyMade

# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
ENTRY_LIMIT: Final = 1024 * 1024
DETAIL_TYPE_LIMIT: Final = 128
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html#eb-putevent-size
TIME_BYTES: Final = 14
# 6 MB for a synchronous invocation, 1 MB for an asynchronous one. https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
INVOKE_LIMIT: Final = 6 * 1024 * 1024
INVOKE_LATER_LIMIT: Final = 1024 * 1024
# https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
INPUT_LIMIT: Final = 262_144
EXECUTION_NAME_LIMIT: Final = 80
NAMES_KEPT: Final = "2160h"  # 90 days after the end of the execution
# A larger answer of a function is not recorded.
ANSWER_LIMIT: Final = 64 * 1024
# Seconds of an attempt beyond the function's timeout.
MARGIN: Final = 2.0


def to_eventbridge(
    bus: str = "default", *, source: str = "", remembered: str = "24h", client: Any = None
) -> ReadyMade:
    """Returns a handler that puts a CloudEvent on an EventBridge bus.

    PutEvents has no idempotency keys: an event in doubt is put again within `remembered`, and
    consumers deduplicate by `id` and `source` of the CloudEvent in `detail`. Later it is held.

    Add to stacks/inbox_stack.py:
    `allow("events:PutEvents", on="arn:aws:events:REGION:ACCOUNT:event-bus/BUS")`.

    Args:
        bus: the name or ARN of the bus.
        source: the entry's source; `webhook-inbox.SOURCE` by default.
        remembered: how long consumers remember an id, like "24h".
        client: a boto3 `events` client, for another region or account.
    """
    remembers = duration(remembered)
    right = f'allow("events:PutEvents", on="{_arn(bus, "events", "event-bus/")}")'
    target = AwsOperation("events", "put_events", right=right, client=client)

    def put(event: Event, ctx: Context) -> None:
        named = source or f"webhook-inbox.{event.source}"
        detail = cloud_event(event, source=named)
        kind = (event.type or "unknown")[:DETAIL_TYPE_LIMIT]
        size = TIME_BYTES + sum(len(text.encode()) for text in (named, kind, detail))
        _require_size(size, ENTRY_LIMIT - 1, "an entry of EventBridge")
        entry = {
            "EventBusName": bus,
            "Source": named,
            "DetailType": kind,
            "Time": event.occurred_at or event.received_at,
            "Detail": detail,
        }
        ctx.effect("put", lambda: _put(target, entry), in_doubt="retry", key_lifetime=remembers)

    return ReadyMade(f"to_eventbridge({bus!r})", put)


def invoke(
    function: str,
    *,
    wait: bool = True,
    timeout: float = 30.0,
    in_doubt: str = "retry",
    key_lifetime: str = "24h",
    client: Any = None,
) -> ReadyMade:
    """Returns a handler that invokes a Lambda function with the event and an idempotency key.

    The payload is `{"idempotency_key": …, "event": a CloudEvent}`, at most 6 MB, or 1 MB without
    `wait`. The function must honour the key, as with Powertools Idempotency; otherwise pass
    `in_doubt="hold"`. An error of the function is transient and leaves the effect in doubt, unless
    its class is named `Permanent`: then nothing was done.

    Add to stacks/inbox_stack.py:
    `allow("lambda:InvokeFunction", on="arn:aws:lambda:REGION:ACCOUNT:function:NAME")`.

    Args:
        function: the name or ARN of the function.
        wait: whether to wait for the answer. Otherwise Lambda queues the event, invokes at least
            once and retries by its own rules.
        timeout: seconds to wait; the attempt needs 2 s more.
        in_doubt: "retry" or "hold".
        key_lifetime: how long the function keeps a key, like "24h".
        client: a boto3 `lambda` client, for another region or account.

    Raises:
        ConfigurationError: `in_doubt` is unknown, or `key_lifetime` is not a duration.
    """
    lifetime = duration(key_lifetime)
    _require_policy(f"invoke({function!r})", in_doubt)
    right = f'allow("lambda:InvokeFunction", on="{_arn(function, "lambda", "function:")}")'
    target = AwsOperation("lambda", "invoke", right=right, client=client, timeout=timeout)
    limit = INVOKE_LIMIT if wait else INVOKE_LATER_LIMIT

    def call(event: Event, ctx: Context) -> None:
        payload = _input(event, ctx.idempotency_key("invoke"))
        _require_size(len(payload), limit, f"an invocation of {function}")
        ctx.effect(
            "invoke",
            lambda: _invoked(target, function, payload, wait=wait),
            in_doubt=in_doubt,
            key_lifetime=lifetime,
            needs=timeout + MARGIN if wait else MARGIN,
        )

    return ReadyMade(f"invoke({function!r})", call)


def start_execution(
    state_machine: str, *, in_doubt: str = "retry", client: Any = None
) -> ReadyMade:
    """Returns a handler that starts an execution of a Step Functions state machine.

    The execution is named after the effect's key. A Standard workflow accepts a name once in 90
    days, so a repetition starts nothing. An Express workflow starts again: pass `in_doubt="hold"`
    if it must not run twice. The input is the payload of `invoke`, at most 256 KB.

    Add to stacks/inbox_stack.py:
    `allow("states:StartExecution", on="arn:aws:states:REGION:ACCOUNT:stateMachine:NAME")`.

    Args:
        state_machine: the ARN of the state machine, a version or an alias.
        in_doubt: "retry" or "hold".
        client: a boto3 `stepfunctions` client, for another region or account.

    Raises:
        ConfigurationError: `state_machine` is not an ARN, or `in_doubt` is unknown.
    """
    if ":stateMachine:" not in state_machine:
        raise ConfigurationError(
            f"start_execution({state_machine!r}): give the state machine's ARN, like"
            " arn:aws:states:REGION:ACCOUNT:stateMachine:NAME"
        )
    _require_policy(f"start_execution({state_machine!r})", in_doubt)
    right = f'allow("states:StartExecution", on="{state_machine}")'
    target = AwsOperation("stepfunctions", "start_execution", right=right, client=client)

    def start(event: Event, ctx: Context) -> None:
        key = ctx.idempotency_key("start")
        told = _input(event, key)
        _require_size(len(told), INPUT_LIMIT, "an execution's input")
        ctx.effect(
            "start",
            lambda: _started(target, state_machine, _execution_name(event.id, key), told.decode()),
            in_doubt=in_doubt,
            key_lifetime=NAMES_KEPT,
        )

    return ReadyMade(f"start_execution({state_machine!r})", start)


def _put(target: AwsOperation, entry: Mapping[str, Any]) -> dict[str, Any]:
    answer = target.call(Entries=[entry])
    if not answer.get("FailedEntryCount"):
        return {"event_id": answer["Entries"][0]["EventId"]}
    refused = answer["Entries"][0]
    code, message = refused.get("ErrorCode", "unknown"), refused.get("ErrorMessage", "")
    # The HTTP status of the request is 200; this is the entry's.
    status = 500 if code in {"InternalException", "InternalFailure"} else 400
    raise target.failure(code, message, answered={"HTTPStatusCode": status})


def _invoked(target: AwsOperation, function: str, payload: bytes, *, wait: bool) -> dict[str, Any]:
    kind = "RequestResponse" if wait else "Event"
    answer = target.call(FunctionName=function, InvocationType=kind, Payload=payload)
    said = answer.get("Payload", b"") if wait else b""
    if answer.get("FunctionError"):
        raise _function_error(function, said)
    request = answer.get("ResponseMetadata", {}).get("RequestId", "")
    recorded = {"answer": _parsed(said)} if 0 < len(said) <= ANSWER_LIMIT else {}
    return {"status": answer["StatusCode"], "request_id": request, **recorded}


def _function_error(function: str, said: bytes) -> Transient | Permanent:
    told = _parsed(said)
    fault = told if isinstance(told, dict) else {}
    kind, message = fault.get("errorType", "unknown"), fault.get("errorMessage", "")
    text = f"{function} failed: {kind}: {message}"
    permanent = str(kind).rpartition(".")[2] == Permanent.__name__
    return Permanent(text) if permanent else Transient(text)


def _started(target: AwsOperation, state_machine: str, name: str, told: str) -> dict[str, Any]:
    parts = state_machine.replace(":stateMachine:", ":execution:").split(":")
    arn = ":".join((*parts[:7], name))
    try:
        target.call(stateMachineArn=state_machine, name=name, input=told)
    except Permanent as error:
        # The name contains our key: an earlier call has started it, and its answer was lost.
        if _code(error) != "ExecutionAlreadyExists":
            raise
    return {"execution_arn": arn}


def _code(error: Permanent) -> str:
    response = getattr(error.__cause__, "response", {})
    code: str = response.get("Error", {}).get("Code", "")
    return code


def _execution_name(event_id: str, key: IdempotencyKey) -> str:
    """Returns the name of an execution: the readable event id and the key."""
    shown = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in event_id)
    return f"{shown[: EXECUTION_NAME_LIMIT - len(key.uuid) - 1]}-{key.uuid}"


def _input(event: Event, key: IdempotencyKey) -> bytes:
    told = cloud_event(event, source=f"webhook-inbox.{event.source}")
    return f'{{"idempotency_key": {json.dumps(key)}, "event": {told}}}'.encode()


def _parsed(said: bytes) -> Any:
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return said.decode(errors="replace")


def _require_policy(made_by: str, in_doubt: str) -> None:
    if in_doubt not in set(InDoubt):
        raise ConfigurationError(f"{made_by}: in_doubt={in_doubt!r}; use {' or '.join(InDoubt)}")


def _require_size(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise Permanent(
            f"the event takes {size:,} bytes, and {what} takes {limit:,}: forward it over HTTP,"
            " or send a reference to its body"
        )


def _arn(name: str, service: str, kind: str) -> str:
    return name if name.startswith("arn:") else f"arn:aws:{service}:REGION:ACCOUNT:{kind}{name}"
