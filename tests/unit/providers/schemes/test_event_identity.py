from datetime import UTC, datetime

import pytest

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.providers.schemes.identity import event_identity, values
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def delivery(body: bytes = b"", **headers: str) -> Delivery:
    return Delivery("it", "POST", "/webhooks/it", "", headers, body, NOW, verified=True)


def test_a_body_is_parsed_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[bytes | str]()

    def parse(raw: bytes | str) -> object:
        parsed.append(raw)
        return {"id": "a", "type": "b"}

    monkeypatch.setattr(event_identity, "parse", parse)
    by_header = Naming(id=(event_identity.header("id"),), type=(event_identity.fixed("x"),))
    by_body = Naming(id=(event_identity.in_json("id"),), type=(event_identity.in_json("type"),))

    by_header.identify(delivery(b"{}", id="h"))
    assert parsed == []
    by_body.identify(delivery(b"{}"))
    assert parsed == [b"{}"]


def test_of_several_finders_the_first_that_finds_something_names_the_event() -> None:
    found = Naming(
        id=(
            event_identity.header("absent"),
            event_identity.in_json("id"),
            event_identity.content_hash,
        ),
        type=(event_identity.in_json("empty"), event_identity.fixed("second")),
    )

    identity = found.identify(delivery(b'{"id":"a","empty":""}'))

    assert (identity.event_id, identity.type) == ("a", "second")


@pytest.mark.parametrize(("value", "id_"), [("a b", "a b"), (0, "0"), (-7, "-7"), (10**30, "1" + "0" * 30)])  # fmt: skip  # noqa: E501
def test_text_and_whole_numbers_are_ids(value: object, id_: str) -> None:
    assert values.event_id(value) == id_


@pytest.mark.parametrize("value", [True, 1.0, float("nan"), [], {}, None, "", " ", "\x7f", "\u0085"])  # fmt: skip  # noqa: E501
def test_nothing_else_is_an_id(value: object) -> None:
    with pytest.raises(Rejected) as raised:
        values.event_id(value)

    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1700000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("2023-11-14T22:13:20Z", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("2023-11-14T14:13:20-08:00", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1700000000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1700000000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("20231114", None),
        (-1700000000000, datetime(1916, 2, 18, 1, 46, 40, tzinfo=UTC)),
        (10**400, None),
        (-(10**20), None),
        (True, None),
        (1.5, None),
        ("2023-11-14T22:13:20", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("\ud800", None),
        ("", None),
        (None, None),
        ({}, None),
    ],
    ids=range(19),
)
def test_a_time_is_seconds_milliseconds_or_iso_text_with_an_offset(
    value: object, moment: datetime | None
) -> None:
    assert values.instant(value) == moment


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2023-11-14T22:13:20.5", datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)),
        (1700000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("2023-11-14T22:13:20+01:00", datetime(2023, 11, 14, 21, 13, 20, tzinfo=UTC)),
        ("yesterday", None),
        (None, None),
    ],
)
def test_a_time_without_an_offset_is_read_where_it_is_known_to_be_utc(
    value: object, moment: datetime | None
) -> None:
    find = event_identity.utc(lambda _: value)

    assert values.instant(find(Reading(delivery(b"")))) == moment


@pytest.mark.parametrize(
    ("attempt", "retries"), [(1, 0), ("3", 2), (0, 0), ("x", None), (None, None), (-2, None)]
)
def test_the_first_attempt_is_no_repetition(attempt: object, retries: int | None) -> None:
    find = event_identity.repeats(lambda _: attempt)

    assert find(Reading(delivery(b""))) == retries


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", {"b": [1]}), ("a.b", [1]), ("a.b.0", 1), ("a.b.1", None), ("a.b.-1", None),
        ("a.b.x", None), ("a.b.0.c", None), ("x", None), ("a.x.b", None), ("", None),
        ("a.b." + "9" * 5000, None), ("a.b.\u0660", None),
    ],
)  # fmt: skip
def test_a_path_leads_through_objects_and_lists(path: str, value: object) -> None:
    assert at({"a": {"b": [1]}}, path) == value


@pytest.mark.parametrize(
    ("body", "form", "payload"),
    [
        (b"a=1&a=2&b=%C3%A9", {"a": "1", "b": "\u00e9"}, None),
        (b'payload={"x":1}', {"payload": '{"x":1}'}, {"x": 1}),
        (b"payload=" + b"[" * 100_000, {"payload": "[" * 100_000}, None),
        (b"\xff", {}, None),
        (b"&".join([b"a=1"] * 1001), {}, None),
    ],
    ids=range(5),
)
def test_a_form_is_read_within_bounds(body: bytes, form: dict[str, str], payload: object) -> None:
    reading = Reading(delivery(body))

    assert reading.form == form
    assert reading.payload == payload


def test_json_in_any_unicode_encoding_is_read() -> None:
    assert Reading(delivery('{"a":"\u00e9"}'.encode("utf-8-sig"))).document == {"a": "\u00e9"}
    assert Reading(delivery('{"a":"\u00e9"}'.encode("utf-16"))).document == {"a": "\u00e9"}
