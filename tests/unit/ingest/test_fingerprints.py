"""When two bodies say the same (G7)."""

import json
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.support.people import person
from tests.unit.support.world import ACME, MANIFEST, World
from webhook_inbox.adapters.memory import SeededRandomness
from webhook_inbox.ingest.fingerprint import Fingerprint, fingerprint, same_content
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.erasure import ErasureRequest, erase

VOLATILE = ("attempt", "pending")


def test_without_volatile_fields_it_is_the_hash_of_the_bytes() -> None:
    assert fingerprint(b'{"a": 1}', ()) == sha256(b'{"a": 1}').hexdigest()
    assert fingerprint(b'{"a": 1}', ()) != fingerprint(b'{"a":1}', ())


@pytest.mark.parametrize(
    "same",
    [
        {"id": 1, "attempt": 9, "pending": 2},
        {"pending": 0, "id": 1},
        {"id": 1},
        {"id": 1, "attempt": {"deep": [1, 2]}},
    ],
)
def test_volatile_fields_order_and_spacing_do_not_count(same: dict[str, object]) -> None:
    first = fingerprint(b'{"id":1,"attempt":1}', VOLATILE)
    assert fingerprint(json.dumps(same, indent=2).encode(), VOLATILE) == first


@pytest.mark.parametrize(
    "other",
    [b'{"id":2}', b'{"id":"1"}', b'{"id":1,"x":null}', b'{"id":[1]}', b"{}", b'{"id":true}'],
)
def test_every_other_field_counts(other: bytes) -> None:
    assert fingerprint(other, VOLATILE) != fingerprint(b'{"id":1}', VOLATILE)


def test_a_volatile_name_deeper_down_counts() -> None:
    one, two = (b'{"data":{"attempt":%d}}' % n for n in (1, 2))
    assert fingerprint(one, VOLATILE) != fingerprint(two, VOLATILE)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"not json", b"[1]", b"3", b"null", b"[" * 100_000, b"9" * 5000, b"{"],
)
def test_what_is_no_json_object_is_compared_by_its_bytes(body: bytes) -> None:
    assert fingerprint(body, VOLATILE) == sha256(body).hexdigest()


@pytest.mark.parametrize("body", [b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}'])
def test_odd_json_has_a_fingerprint_too(body: bytes) -> None:
    assert len(fingerprint(body, VOLATILE)) == 64


# -- of an event: without a whole parse, where the fields are found


def stripe(pending: int, **more: Any) -> bytes:
    event = {"id": "evt_1", "data": {"object": {"amount": 1, **more}}, "pending_webhooks": pending}
    return json.dumps({**event, "type": "paid"}).encode()


PENDING = ("pending_webhooks",)
# Too long for a row, however it is compressed.
NOISE = Random(15).randbytes(20_000).hex()


def test_a_volatile_value_at_the_end_does_not_count() -> None:
    first, again = (Fingerprint.of(stripe(pending), PENDING) for pending in (1, 23))
    assert first == again
    assert first != Fingerprint.of(stripe(1, amount=2), PENDING)
    # The rest counts byte by byte: nothing was parsed.
    assert first == sha256(stripe(1).replace(b': 1, "type', b': , "type')).hexdigest()


@pytest.mark.parametrize(
    "body",
    [
        stripe(1, pending_webhooks=5),
        b'{"data": {"pending_webhooks": 1}}',
        b'[{"pending_webhooks": 1}]',
        b'{"pending_webhooks": [1]}',
        b'{"other\\"pending_webhooks": 1}',
        b'{"pending_webhooks": 1, "pending_webhooks": 2}',
        b'{"pending_webhooks": 1, "x": "' + b"x" * 5000 + b'"}',
        b'{"pending_webhooks": 1',
    ],
)
def test_a_field_that_may_be_elsewhere_is_removed_by_a_parser(body: bytes) -> None:
    made = Fingerprint.of(body, PENDING)
    assert made == made.canonical == fingerprint(body, PENDING)


def test_a_member_with_the_name_of_a_path_counts() -> None:
    one, two = (Fingerprint.of(b'{"id": 1, "data.x": %d}' % x, ("data.x",)) for x in (1, 2))
    assert one != two
    assert one.canonical != two.canonical


MEMBERS = st.dictionaries(
    st.sampled_from(["id", "attempt", "pending", "data"]),
    st.integers(0, 2) | st.text(max_size=2) | st.dictionaries(
        st.sampled_from(["attempt", "x"]), st.integers(0, 1), max_size=2
    ),
)  # fmt: skip


@given(one=MEMBERS, two=MEMBERS)
def test_equal_fingerprints_are_equal_in_canonical_form(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    made = [Fingerprint.of(json.dumps(body).encode(), VOLATILE) for body in (one, two)]
    if made[0] == made[1]:
        assert made[0].canonical == made[1].canonical


def test_the_form_that_an_earlier_version_stored_is_known() -> None:
    made = Fingerprint.of(stripe(2), PENDING)
    assert made != made.canonical
    assert same_content(made, fingerprint(stripe(1), PENDING))
    assert not same_content(made, fingerprint(stripe(1, amount=9), PENDING))
    assert same_content(str(made), str(made))


# -- of an event that is known


@pytest.fixture
def world() -> World:
    source = replace(ACME, volatile=PENDING)
    return World(replace(MANIFEST, sources={**MANIFEST.sources, "acme": source}))


def reordered(pending: int) -> bytes:
    return json.dumps(dict(reversed(json.loads(stripe(pending)).items())), indent=1).encode()


def test_a_row_of_an_earlier_version_is_known(world: World) -> None:
    world.deliver(body=stripe(1))
    row = world.event_row()
    assert row is not None
    world.table.put({**row, "fingerprint": fingerprint(stripe(1), PENDING)})

    assert world.deliver(body=stripe(2)).outcome is IngestOutcome.DUPLICATE
    assert world.deliver(body=stripe(1, amount=2)).outcome is IngestOutcome.CONFLICT


@pytest.mark.parametrize("note", ["", NOISE], ids=["in the row", "in S3"])
def test_the_same_content_in_another_order_is_compared_with_the_stored_body(
    world: World, note: str
) -> None:
    def noted(body: bytes) -> bytes:
        return body.replace(b'"evt_1"', b'"evt_1%s"' % note.encode())

    world.deliver(body=noted(stripe(1)))

    assert world.deliver(body=noted(reordered(2))).outcome is IngestOutcome.DUPLICATE
    assert world.rows("conflict#") == []


def test_an_outage_of_the_bucket_makes_no_conflict(world: World) -> None:
    body = stripe(1, note=NOISE)
    again = json.dumps(json.loads(body), indent=1).encode()
    world.deliver(body=body)
    world.plan.fail("GetObject")

    assert world.deliver(body=again).outcome is IngestOutcome.UNAVAILABLE

    world.plan.heal()
    assert world.deliver(body=again).outcome is IngestOutcome.DUPLICATE


def test_a_retry_of_an_erased_event_is_a_duplicate(world: World) -> None:
    world.deliver(body=stripe(1))
    request = ErasureRequest("acme", "evt-1", person("kim"), "asked to", world.now)
    erase(world.table, world.blobs, SeededRandomness(7), request)

    assert world.deliver(body=stripe(2)).outcome is IngestOutcome.DUPLICATE
    # Nothing is left to compare it with.
    assert world.deliver(body=reordered(1)).outcome is IngestOutcome.CONFLICT
