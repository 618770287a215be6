from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.providers.deliveries import delivery, name_of, provider_of
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer

PROVIDER = provider_of("cloudevents", {})
STRUCTURED = {"content-type": "application/cloudevents+json; charset=utf-8"}
BATCH = {"content-type": "Application/CloudEvents-Batch+JSON"}
EVENT = b'{"specversion":"1.0","id":"1","source":"/s","type":"a.b","time":"2026-11-21T08:00:00Z"}'
ORIGIN = {"webhook-request-origin": "eventemitter.example.com"}


def binary(**attributes: str) -> Delivery:
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    return delivery({"content-type": "application/json", **headers}, b"{}")


def asked(headers: Mapping[str, str], *, method: str = "OPTIONS", **given: Any) -> Answer | None:
    greet = provider_of("cloudevents", given).greet
    assert greet is not None
    return greet(delivery(headers, b"", method=method), ())


def test_one_event_has_one_name_in_every_mode() -> None:
    split = PROVIDER.batch
    assert split is not None
    parts = split(delivery(BATCH, b"[" + EVENT + b"]"))
    assert parts is not None
    attributes = {"id": "1", "source": "/s", "type": "a.b", "time": "2026-11-21T08:00:00Z"}

    structured = PROVIDER.identify(delivery(STRUCTURED, EVENT))

    assert (structured.event_id, structured.type) == ("/s|1", "a.b")
    assert structured.occurred_at == delivery({}, b"").received_at
    assert [PROVIDER.identify(part) for part in parts] == [structured]
    assert PROVIDER.identify(binary(**attributes)) == structured


def test_one_event_is_no_batch() -> None:
    assert PROVIDER.batch is not None
    assert PROVIDER.batch(delivery(STRUCTURED, EVENT)) is None
    assert PROVIDER.batch(binary(id="1")) is None


def test_headers_do_not_name_a_structured_event() -> None:
    sent = delivery({**STRUCTURED, "ce-id": "2", "ce-source": "/other"}, EVENT)

    assert PROVIDER.identify(sent).event_id == "/s|1"


def test_an_id_is_unique_for_one_source_alone() -> None:
    assert PROVIDER.identify(binary(id="1", source="/a|b")).event_id == "/a\\|b|1"
    assert name_of(PROVIDER, binary(id="1")) is Reason.MISSING_EVENT_ID
    assert name_of(PROVIDER, binary(source="/s")) is Reason.MISSING_EVENT_ID


@pytest.mark.parametrize(
    ("written", "id_"),
    [
        ("a%20b", "a b"),
        ("%E2%82%AC", "\u20ac"),
        ("100%25", "100%"),
        ("%2525", "%25"),
        ('"a b"', "a b"),
        ('"a\\"b%20c"', 'a"b c'),
        ('"', '"'),
    ],
)
def test_a_header_is_read_as_the_binding_writes_it(written: str, id_: str) -> None:
    assert PROVIDER.identify(binary(id=written, source="/s")).event_id == f"/s|{id_}"


@pytest.mark.parametrize("written", ["%00", "%0A", "%ED%A0%80%01", ""])
def test_a_header_of_control_characters_names_nothing(written: str) -> None:
    assert name_of(PROVIDER, binary(id=written, source="/s")) is Reason.MISSING_EVENT_ID


@pytest.mark.parametrize(
    ("requested", "limit", "allowed"),
    [
        ("120", {}, "120"),
        ("120", {"allowed_rate": 100}, "100"),
        ("50", {"allowed_rate": 100}, "50"),
        (None, {"allowed_rate": 100}, "100"),
        (None, {}, "*"),
        ("0", {}, "*"),
        ("a lot", {"allowed_rate": 100}, "100"),
        ("9" * 5000, {"allowed_rate": 100}, "100"),
    ],
)
def test_permission_is_given_for_the_rate_that_is_allowed(
    requested: str | None, limit: Mapping[str, int], allowed: str
) -> None:
    rate = {} if requested is None else {"webhook-request-rate": requested}

    answer = asked({**ORIGIN, **rate}, **limit)

    assert answer == Answer(
        200,
        headers={
            "Allow": "POST",
            "WebHook-Allowed-Origin": "eventemitter.example.com",
            "WebHook-Allowed-Rate": allowed,
        },
    )


def test_permission_is_given_to_the_origins_that_are_allowed() -> None:
    assert asked(ORIGIN, allowed_origins=["EventEmitter.example.com"]) is not None
    assert asked(ORIGIN, allowed_origins=["example.com"]) is None


@pytest.mark.parametrize("origin", ["", "a b", "a\r\nset-cookie: b", "\u00e4.example", "a" * 254])
def test_what_is_no_origin_gets_no_permission(origin: str) -> None:
    assert asked({"webhook-request-origin": origin}) is None
    assert asked({}) is None
    assert asked(ORIGIN, method="POST") is None


@pytest.mark.parametrize("rate", [0, -1, True, "120", 1.5])
def test_a_rate_is_a_whole_number(rate: object) -> None:
    with pytest.raises(ConfigurationError, match="allowed_rate: must be a whole number"):
        asked(ORIGIN, allowed_rate=rate)
