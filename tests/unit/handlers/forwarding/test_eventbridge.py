"""CloudEvents on a bus, and what EventBridge says of one entry."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from tests.unit.handlers.forwarding.aws import Aws, handled
from webhook_inbox import to_eventbridge
from webhook_inbox.domain.errors import ConfigurationError

PUT: dict[str, Any] = {"FailedEntryCount": 0, "Entries": [{"EventId": "e-1"}]}


def failed(code: str) -> Mapping[str, Any]:
    return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "no"}]}


@pytest.fixture
def events() -> Aws:
    return Aws("events")


def test_an_event_becomes_one_entry(events: Aws) -> None:
    events.answers("put_events", PUT)

    run = handled(to_eventbridge("orders", client=events.client), {"id": "o-1", "n": 1})

    assert run.status == "done"
    assert run.effects["put"].result == {"event_id": "e-1"}
    [entry] = events.calls[0]["Entries"]
    assert (entry["EventBusName"], entry["DetailType"]) == ("orders", "order.paid")
    detail = json.loads(entry["Detail"])
    assert entry["Source"] == detail["source"] == "webhook-inbox.acme"
    assert (detail["id"], detail["type"], detail["data"]) == (
        "o-1",
        "order.paid",
        {"id": "o-1", "n": 1},
    )
    assert detail["time"] == entry["Time"].isoformat().replace("+00:00", "Z")


def test_the_source_may_be_named(events: Aws) -> None:
    events.answers("put_events", PUT)
    handled(to_eventbridge(source="com.example.shop", client=events.client), {})
    [entry] = events.calls[0]["Entries"]
    assert (entry["EventBusName"], entry["Source"]) == ("default", "com.example.shop")
    assert json.loads(entry["Detail"])["source"] == "com.example.shop"


@pytest.mark.parametrize("code", ["InternalException", "InternalFailure", "ThrottlingException"])
def test_an_entry_that_failed_for_now_is_put_again(events: Aws, code: str) -> None:
    events.answers("put_events", failed(code)).answers("put_events", PUT)

    run = handled(to_eventbridge(client=events.client), {})

    assert (run.status, run.error) == ("failed", f"events put_events: {code}: no")
    assert run.settle().status == "done"
    assert len({call["Entries"][0]["Detail"] for call in events.calls}) == 1


def test_a_throttled_entry_is_known_not_to_be_there(events: Aws) -> None:
    events.answers("put_events", failed("ThrottlingException"))
    run = handled(to_eventbridge(client=events.client), {})
    assert run.effects["put"].status == "failed"


@pytest.mark.parametrize(
    "code", ["MalformedDetail", "InvalidArgument", "NotAuthorizedForSourceException"]
)
def test_an_entry_that_no_repetition_mends_is_dead(events: Aws, code: str) -> None:
    events.answers("put_events", failed(code))
    run = handled(to_eventbridge(client=events.client), {})
    assert (run.status, run.effects["put"].status) == ("dead_letter", "failed")
    assert run.error == f"permanent: events put_events: {code}: no"


@pytest.mark.parametrize(
    ("bus", "arn"),
    [
        ("orders", "arn:aws:events:REGION:ACCOUNT:event-bus/orders"),
        ("arn:aws:events:eu-west-1:1:event-bus/x", "arn:aws:events:eu-west-1:1:event-bus/x"),
    ],
)
def test_a_missing_right_is_named_as_it_is_given(events: Aws, bus: str, arn: str) -> None:
    events.refuses("put_events", "AccessDeniedException", status=400)
    run = handled(to_eventbridge(bus, client=events.client), {})
    assert run.status == "dead_letter"
    assert f'add allow("events:PutEvents", on="{arn}") to stacks/inbox_stack.py' in run.error


def test_what_is_too_large_is_refused_before_anything_happens(events: Aws) -> None:
    run = handled(to_eventbridge(client=events.client), {"x": "y" * 1_048_576})

    assert run.status == "dead_letter"
    assert "an entry of EventBridge takes 1,048,575: forward it" in run.error
    assert (list(run.effects), events.calls) == ([], [])


def test_the_largest_entry_is_put(events: Aws) -> None:
    events.answers("put_events", PUT)
    run = handled(to_eventbridge(client=events.client), b'"' + b"y" * 1_048_000 + b'"')
    assert run.status == "done"


def test_a_type_longer_than_eventbridge_takes_is_whole_in_the_envelope(events: Aws) -> None:
    events.answers("put_events", PUT)
    handled(to_eventbridge(client=events.client), {}, event_type="t" * 200)
    [entry] = events.calls[0]["Entries"]
    assert len(entry["DetailType"]) == 128
    assert json.loads(entry["Detail"])["type"] == "t" * 200


def test_an_event_in_doubt_is_put_again_while_consumers_remember_it(
    events: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://events")

    with monkeypatch.context() as patch:
        patch.setattr(events.client, "put_events", silent)
        run = handled(to_eventbridge(client=events.client), {})
    assert run.effects["put"].in_doubt
    events.answers("put_events", PUT)
    assert run.settle().status == "done"


def test_a_call_that_was_never_made_leaves_no_doubt(
    events: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(**_: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="https://events")

    monkeypatch.setattr(events.client, "put_events", absent)
    run = handled(to_eventbridge(client=events.client), {})
    assert (run.status, run.effects["put"].status) == ("failed", "failed")


def test_for_how_long_is_said_as_a_duration() -> None:
    with pytest.raises(ConfigurationError, match="is not a duration"):
        to_eventbridge(remembered="a day")
