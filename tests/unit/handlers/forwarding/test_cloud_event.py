"""Events as CloudEvents: what is JSON stays as it came, to the digit."""

import json
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from webhook_inbox import Event
from webhook_inbox.handlers.forwarding.cloud_event import cloud_event, rfc3339

RECEIVED = datetime(2026, 11, 21, 10, 30, 0, 250_000, tzinfo=UTC)


def event(body: bytes = b"{}", *, content_type: str | None = "application/json") -> Event:
    headers = {} if content_type is None else {"content-type": content_type}
    return Event("acme", "o-1", "order.paid", RECEIVED, headers, body)


def test_an_envelope_has_what_the_specification_asks_for() -> None:
    assert json.loads(cloud_event(event(b'{"n": 1}'), source="shop")) == {
        "specversion": "1.0",
        "id": "o-1",
        "source": "shop",
        "type": "order.paid",
        "time": "2026-11-21T10:30:00.250000Z",
        "datacontenttype": "application/json",
        "traceparent": "00-d260cc96734f2e94985041434d03625f-1e072f11dbc675f0-01",
        "data": {"n": 1},
    }


def test_it_continues_the_trace_of_the_event() -> None:
    trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    traced = replace(event(), headers={"traceparent": trace})
    assert json.loads(cloud_event(traced, source="shop"))["traceparent"] == trace


@pytest.mark.parametrize(
    "body",
    [b'{"n": 1.10}', b'{"n": 12345678901234567890.123456789}', b'{ "a" :\t1 }', b'"\xc3\xa9"'],
)
def test_json_stands_in_it_to_the_digit(body: bytes) -> None:
    text = cloud_event(event(body), source="shop")
    assert text.endswith(f'"data": {body.decode()}}}')
    assert json.loads(text)["data"] == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"NaN", b"[Infinity]", b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00", b"[" * 100_000],
)
def test_a_body_that_some_parsers_reject_is_encoded(body: bytes) -> None:
    told = json.loads(cloud_event(event(body), source="shop"))
    assert b64decode(told["data_base64"]) == body
    assert "data" not in told


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        (None, True),
        ("application/json; charset=utf-8", True),
        ("application/cloudevents+json", True),
        ("Application/JSON", True),
        ("application/x-www-form-urlencoded", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_the_content_type_says_whether_it_is_json(content_type: str | None, is_json: bool) -> None:
    told = json.loads(cloud_event(event(b"1", content_type=content_type), source="shop"))
    assert ("data" in told) is is_json
    expected = "application/json" if content_type is None else content_type
    assert told["datacontenttype"] == expected


def test_when_it_happened_counts_before_when_it_came() -> None:
    happened = RECEIVED - timedelta(hours=1)
    given = Event("acme", "o-1", "", RECEIVED, {}, b"{}", occurred_at=happened)
    told = json.loads(cloud_event(given, source="shop"))
    assert (told["time"], told["type"]) == ("2026-11-21T09:30:00.250000Z", "unknown")


def test_times_are_told_in_utc() -> None:
    local = datetime(2026, 11, 21, 11, 30, tzinfo=timezone(timedelta(hours=1)))
    assert rfc3339(local) == "2026-11-21T10:30:00Z"
