"""Events of a batch, cut out of its text as their provider wrote them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.providers.schemes.identity.batches import LIMIT, excerpt, split_at

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEADERS = {"content-type": "application/json"}
AWKWARD = [
    b'{"amount": 1.10}',
    b'{"amount":0.12345678901234567890123}',
    b'{"amount":1e400,"next":-0.0,"id":123456789012345678901234567890}',
    b'{"twice":1,"twice":2}',
    b'{ "b" : [ ] ,\r\n\t"a" : { } }',
    b'{"text":"\\u00e9 \\/ \\ud83d\\ude00, ]}"}',
    '{"text":"é 😀"}'.encode(),
    b'{"lone":"\xed\xa0\x80"}',
    b"{}",
]


def delivery(body: bytes) -> Delivery:
    return Delivery("mail", "POST", "/webhooks/mail", "", HEADERS, body, NOW, verified=True)


def bodies(body: bytes, path: str = "", inside: str = "") -> list[bytes]:
    parts = split_at(path, inside=inside)(delivery(body))
    assert parts is not None
    return [part.body for part in parts]


@pytest.mark.parametrize("separator", [b",", b" , ", b"\r\n,\n"])
def test_each_body_is_what_was_sent_to_the_byte(separator: bytes) -> None:
    assert bodies(b"[" + separator.join(AWKWARD) + b"]\r\n") == AWKWARD
    assert bodies(b" [ " + separator.join(AWKWARD) + b" ] ") == AWKWARD


@pytest.mark.parametrize("event", AWKWARD)
def test_lists_and_events_are_found_inside_of_objects(event: bytes) -> None:
    body = b'{"a":[{}], "data" : {"items":[0], "items" :[ {"x":{}, "event" : %s },' % event
    body += b'{"event":{},"event":%s}]},"z":1.50}' % event
    assert bodies(body, "data.items", "event") == [event, event]


def test_what_surrounds_the_list_is_in_no_part_and_headers_are_in_all() -> None:
    whole = delivery(b'{"secret":1,"events":[{"n":1},{"n":2}]}')
    assert split_at("events")(whole) == [
        replace(whole, body=b'{"n":1}'),
        replace(whole, body=b'{"n":2}'),
    ]
    retyped = split_at("events", content_type="application/cloudevents+json")(whole)
    assert retyped is not None
    assert {part.headers["content-type"] for part in retyped} == {"application/cloudevents+json"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_of_json_become_utf_8(encoding: str) -> None:
    assert bodies('[{"name":"é"}]'.encode(encoding)) == ['{"name":"é"}'.encode()]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b"{}",
        b'{"events":null}',
        b'{"events":[]}',
        b'{"events":{"0":{}}}',
        b'{"events":[{"event":{}},{"event":1}]}',
        b'{"events":[{"event":{}},7]}',
        b'{"events":[{"event":{}},{}]}',
        b'{"events":[{"event":[]}]}',
        b'{"events":[{"event":{}}',
        b'{"events":[{"event":{}}]}{}',
        b'{"events":' + b"[" * 100_000,
        b"\xff\xfe\xfd",
    ],
)
def test_what_holds_no_events_is_malformed(body: bytes) -> None:
    with pytest.raises(Rejected) as refused:
        bodies(body, "events", "event")
    assert refused.value.reason is Reason.MALFORMED


def test_a_batch_has_a_largest_length() -> None:
    assert len(bodies(b"[" + b",".join([b"{}"] * LIMIT) + b"]")) == LIMIT
    with pytest.raises(Rejected):
        bodies(b"[" + b",".join([b"{}"] * (LIMIT + 1)) + b"]")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


EVENTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=3)


@given(st.lists(EVENTS, min_size=1, max_size=4), st.sampled_from([None, 1]))
def test_a_body_parses_to_what_the_whole_parses_to(
    events: list[dict[str, object]], indent: int | None
) -> None:
    written = json.dumps({"in": {"list": events}}, indent=indent).encode()
    assert [json.loads(body) for body in bodies(written, "in.list")] == events


@given(VALUES)
def test_a_value_is_cut_out_whole(value: object) -> None:
    written = json.dumps(value)
    found = excerpt(b'{ "a" : ' + written.encode() + b' , "b":1}').at("a")
    assert found is not None
    assert found.raw.decode() == written
