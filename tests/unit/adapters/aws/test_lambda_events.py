"""What Lambda hands over becomes records: a valid event first, then one part broken."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.adapters.aws.lambda_events import delivery_from, message_from
from webhook_inbox.domain.errors import ForeignMessage, Reason, Rejected
from webhook_inbox.domain.model import Delivery

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


def http(**changes: Any) -> dict[str, Any]:
    """An event as HTTP API sends it, some parts changed."""
    return {
        "version": "2.0",
        "routeKey": "ANY /webhooks/{source}",
        "rawPath": "/webhooks/stripe",
        "rawQueryString": "a=1&b=%20",
        "cookies": ["session=1"],
        "headers": {"content-type": "application/json", "stripe-signature": "t=1,v1=ab"},
        "requestContext": {
            "http": {"method": "POST", "path": "/webhooks/stripe", "sourceIp": "192.0.2.1"},
            "requestId": "JKJaXmPLvHcESHA=",
            "timeEpoch": 1,
        },
        "pathParameters": {"source": "stripe"},
        "body": '{"id": "evt_1"}',
        "isBase64Encoded": False,
        **changes,
    }


def read(event: Any) -> Delivery:
    return delivery_from(event, received_at=NOW)


def test_an_event_becomes_a_delivery() -> None:
    assert read(http()) == Delivery(
        source="stripe",
        method="POST",
        path="/webhooks/stripe",
        query="a=1&b=%20",
        headers={"content-type": "application/json", "stripe-signature": "t=1,v1=ab"},
        body=b'{"id": "evt_1"}',
        received_at=NOW,
        request_id="JKJaXmPLvHcESHA=",
    )


@pytest.mark.parametrize(
    ("body", "is_base64", "expected"),
    [
        (None, False, b""),
        (None, True, b""),
        ("", False, b""),
        ("", True, b""),
        ("naïve ☃", False, "naïve ☃".encode()),
        ("AP8=", True, b"\x00\xff"),
        ("AP8=", False, b"AP8="),
        ("\ud800", False, b"\xed\xa0\x80"),
        ('{"a": "\\ud800"}', False, b'{"a": "\\ud800"}'),
        ("\x00\r\n\t", False, b"\x00\r\n\t"),
    ],
)
def test_the_body_is_what_was_sent(body: str | None, is_base64: bool, expected: bytes) -> None:
    assert read(http(body=body, isBase64Encoded=is_base64)).body == expected


def test_an_event_without_a_body_has_an_empty_one() -> None:
    event = http()
    del event["body"]
    del event["isBase64Encoded"]

    assert read(event).body == b""


@given(st.binary(max_size=200))
def test_any_bytes_arrive_through_base64(body: bytes) -> None:
    encoded = base64.b64encode(body).decode()

    assert read(http(body=encoded, isBase64Encoded=True)).body == body


@given(st.text(max_size=200))
def test_any_text_arrives_as_utf8(body: str) -> None:
    through_json = json.loads(json.dumps(http(body=body)))

    assert read(through_json).body == body.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("body", ["AP8", "AP8=\n", "A P8=", "====", "AP_-", "é", "AP8=AP8="])
def test_what_is_not_base64_is_malformed(body: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read(http(body=body, isBase64Encoded=True))

    assert rejected.value.reason is Reason.MALFORMED
    assert body not in str(rejected.value)


def test_header_names_come_in_lower_case_and_twice_is_joined() -> None:
    headers = {"X-Hub-Signature": "a", "x-hub-signature": "b", "Content-Type": "c"}

    found = read(http(headers=headers)).headers

    assert found == {"x-hub-signature": "a,b", "content-type": "c"}


@pytest.mark.parametrize("headers", [None, {}])
def test_no_headers_are_no_error(headers: Any) -> None:
    assert read(http(headers=headers)).headers == {}


@pytest.mark.parametrize(
    ("path", "parameters", "source"),
    [
        ("/webhooks/stripe", {"source": "stripe"}, "stripe"),
        ("/webhooks/stripe", None, "stripe"),
        ("/webhooks/stripe", {}, "stripe"),
        ("/prod/webhooks/stripe", None, "stripe"),
        ("/webhooks/a%2Fb", None, "a/b"),
        ("/webhooks/", None, ""),
        ("/", None, ""),
        ("/webhooks/stripe/extra", None, "stripe/extra"),
        ("/webhooks/stripe/t-1", {"tenant": "t-1"}, "stripe"),
        ("/prod/webhooks/stripe/a/b", {"tenant": "a/b"}, "stripe"),
        ("/webhooks/%ff%zz", None, "\ufffd%zz"),
    ],
)
def test_the_source_is_the_paths_last_part(path: str, parameters: Any, source: str) -> None:
    assert read(http(rawPath=path, pathParameters=parameters)).source == source


def test_the_method_comes_in_capitals() -> None:
    assert read(http(requestContext={"http": {"method": "post"}})).method == "POST"


@pytest.mark.parametrize("query", [None, ""])
def test_no_query_is_an_empty_one(query: Any) -> None:
    assert read(http(rawQueryString=query)).query == ""


@pytest.mark.parametrize(
    "event",
    [
        {},
        [],
        "text",
        None,
        7,
        {"Records": []},
        {"version": "1.0", "path": "/webhooks/x", "httpMethod": "POST"},
        http(requestContext={}),
        http(requestContext=None),
        http(requestContext={"http": {}}),
        http(headers=["a"]),
        http(headers={7: "x"}),
        http(pathParameters="stripe"),
        http(body={"a": 1}),
        http(body=b"x"),
    ],
    ids=lambda event: str(event)[:40],
)
def test_what_is_no_http_event_is_malformed_and_nothing_else(event: Any) -> None:
    with pytest.raises(Rejected) as rejected:
        read(event)

    assert rejected.value.reason is Reason.MALFORMED


def record(**changes: Any) -> dict[str, Any]:
    """A record as SQS's event source mapping sends it, some parts changed."""
    return {
        "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
        "receiptHandle": "AQEB",
        "body": '{"v":1}',
        "attributes": {
            "ApproximateReceiveCount": "3",
            "SentTimestamp": "1790000000123",
            "SenderId": "AIDA",
            "ApproximateFirstReceiveTimestamp": "1790000000124",
        },
        "messageAttributes": {},
        "md5OfBody": "x",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:q",
        "awsRegion": "us-east-1",
        **changes,
    }


def test_a_record_becomes_a_message() -> None:
    message = message_from(record())

    assert message.id == "059f36b4-87a3-44ab-83d2-661975830a7d"
    assert message.receipt == "AQEB"
    assert message.body == '{"v":1}'
    assert message.receive_count == 3
    assert message.sent_at == datetime(2026, 9, 21, 14, 13, 20, 123000, tzinfo=UTC)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        None,
        "text",
        record(attributes=None),
        record(attributes={}),
        record(attributes={"SentTimestamp": "x", "ApproximateReceiveCount": "1"}),
        record(attributes={"SentTimestamp": "1", "ApproximateReceiveCount": ""}),
        record(attributes={"SentTimestamp": "9" * 30, "ApproximateReceiveCount": "1"}),
        {k: v for k, v in record().items() if k != "messageId"},
        {k: v for k, v in record().items() if k != "receiptHandle"},
        {k: v for k, v in record().items() if k != "body"},
    ],
    ids=lambda broken: str(broken)[:60],
)
def test_what_is_no_record_is_foreign(broken: Any) -> None:
    with pytest.raises(ForeignMessage):
        message_from(broken)
