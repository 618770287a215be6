"""The answers of ingest, and its writes."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import ACME, BODY, SECRET, World, handler, with_handlers, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.provider import Answer
from webhook_inbox.ingest.receipt import IngestOutcome

OTHER = b'{"id": "evt-1", "type": "paid", "amount": 9000}'


# -- accepted


def test_a_new_event_is_stored_with_its_runs_and_sent(world: World) -> None:
    receipt = world.deliver()

    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert receipt.event_id == "evt-1"
    assert receipt.handlers == ("acme.fulfil",)
    row = world.event_row()
    assert row is not None
    assert row["runs"] == ["acme.fulfil"]
    assert world.messages() == [
        {"v": 1, "source": "acme", "event_id": "evt-1", "handler": "acme.fulfil", "generation": 0}
    ]


def test_a_message_carries_a_reference_and_no_payload(world: World) -> None:
    world.deliver(body=b'{"card": "4242-4242"}')
    assert "4242" not in world.queues["default"].bodies[0]


def test_every_handler_of_the_type_gets_a_run_in_its_own_lane() -> None:
    world = World(
        with_handlers(
            handler("acme.mail", "paid"),
            handler("acme.report", "pa*", lane="slow"),
            handler("acme.refund", "refunded"),
        )
    )
    assert world.deliver().handlers == ("acme.mail", "acme.report")
    assert [m["handler"] for m in world.messages("default")] == ["acme.mail"]
    assert [m["handler"] for m in world.messages("slow")] == ["acme.report"]


def test_the_accepted_status_is_the_providers(world: World) -> None:
    provider = replace(providers.load(ACME), accepted_status=204)
    assert world.new_ingest(lambda _: provider).receive(world.delivery()).status == 204


def test_the_secret_that_verified_is_recorded(world: World) -> None:
    world.vault.rotate("acme", "the-next-secret")
    receipt = world.deliver(secret=SECRET)
    row = world.event_row()
    assert receipt.secret == 1
    assert row is not None
    assert row["verified_with"] == 1


# -- ids


def test_an_id_of_512_bytes_is_kept_as_it_is(world: World) -> None:
    id_ = "é" * 256
    assert world.deliver(id_).event_id == id_


@pytest.mark.parametrize("id_", ["x" * 513, "é" * 257, "y" * 8000])
def test_a_longer_id_is_replaced_by_its_hash(world: World, id_: str) -> None:
    receipt = world.deliver(id_)
    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert receipt.event_id.startswith("sha256:")
    assert len(receipt.event_id) == 71
    assert world.deliver(id_).outcome is IngestOutcome.DUPLICATE


@pytest.mark.parametrize("id_", ["a#b", "event#acme#x", "run#y", "#", "ü/?&", "a" * 512])
def test_any_id_is_stored_found_and_handled(world: World, id_: str) -> None:
    assert world.deliver(id_).status == 202
    world.work()
    assert world.handled == [("acme.fulfil", id_, 1)]
    assert world.deliver(id_).outcome is IngestOutcome.DUPLICATE


# -- G5: duplicates


def test_a_duplicate_is_answered_200_and_runs_nothing(world: World) -> None:
    world.deliver()
    world.work()
    receipt = world.deliver()
    assert (receipt.outcome, receipt.status) == (IngestOutcome.DUPLICATE, 200)
    assert world.work() == []
    assert len(world.handled) == 1


def test_a_duplicate_changes_nothing_of_the_event(world: World) -> None:
    world.deliver()
    before = world.event_row()
    world.clock.advance(minutes=1)
    world.deliver(headers={"user-agent": "another"})
    assert world.event_row() == before


def test_a_young_duplicate_costs_a_put_and_a_query(world: World) -> None:
    world.deliver()
    world.work()
    world.plan.operations()
    world.deliver()
    assert world.plan.operations() == ["PutItem", "Query"]


def test_a_young_duplicate_sends_the_run_that_has_no_row(world: World) -> None:
    world.deliver()
    world.clock.advance(minutes=14, seconds=59)
    assert world.deliver().outcome is IngestOutcome.DUPLICATE
    assert len(world.messages()) == 2


def test_a_young_duplicate_sends_only_what_has_no_row() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.deliver()
    world.work_once("default")
    world.deliver()
    assert world.messages("default") == []
    assert [m["handler"] for m in world.messages("slow")] == ["acme.b", "acme.b"]


def test_an_older_duplicate_costs_one_call_and_sends_nothing(world: World) -> None:
    world.deliver()
    world.clock.advance(minutes=15, seconds=1)
    world.deliver("warms-the-secret-cache")
    world.plan.operations()
    assert world.deliver().outcome is IngestOutcome.DUPLICATE
    assert world.plan.operations() == ["PutItem"]
    assert [m["event_id"] for m in world.messages()].count("evt-1") == 1


def test_an_event_sent_twice_by_a_duplicate_is_handled_once(world: World) -> None:
    world.deliver()
    world.deliver()
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_two_deliveries_in_one_millisecond_are_one_event(world: World) -> None:
    delivery = world.delivery()
    assert world.ingest.receive(delivery).status == 202
    assert world.ingest.receive(delivery).status in {200, 202}
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_a_duplicate_runs_what_the_event_was_accepted_with_not_what_is_deployed_now(
    world: World,
) -> None:
    world.deliver()
    world.drop_messages()
    world.deploy(with_handlers(handler("acme.fulfil"), handler("acme.newcomer")))
    world.deliver()
    assert [m["handler"] for m in world.messages()] == ["acme.fulfil"]


def test_an_expired_event_counts_as_absent(world: World) -> None:
    world.deliver()
    world.clock.advance(days=35, seconds=1)
    assert world.deliver().outcome is IngestOutcome.ACCEPTED


def test_an_event_is_a_duplicate_until_its_very_end(world: World) -> None:
    world.deliver()
    world.clock.advance(days=35, seconds=-2)
    assert world.deliver().outcome is IngestOutcome.DUPLICATE


# -- G7: the same id with other content


def test_another_content_under_a_known_id_is_refused(world: World) -> None:
    world.deliver()
    receipt = world.deliver(body=OTHER)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.CONFLICT, 409)


def test_a_conflict_is_kept_with_both_fingerprints_and_its_body(world: World) -> None:
    world.deliver()
    world.deliver(body=OTHER)
    event = world.event_row()
    (conflict,) = world.rows("conflict#acme#evt-1")
    assert event is not None
    assert conflict["stored_fingerprint"] == event["fingerprint"].hex()
    assert conflict["fingerprint"] == conflict["sk"] != event["fingerprint"].hex()
    assert conflict["body"] == OTHER


def test_a_conflict_leaves_the_event_and_its_run_alone(world: World) -> None:
    world.deliver()
    before = world.event_row()
    world.deliver(body=OTHER)
    world.run_until_quiet()
    assert world.event_row() == before
    assert len(world.handled) == 1


def test_each_other_content_is_kept_once(world: World) -> None:
    world.deliver()
    for amount in (1, 2, 2, 2):
        world.deliver(body=b'{"amount": %d}' % amount)
    assert len(world.rows("conflict#")) == 2


def test_the_status_of_a_conflict_is_the_providers(world: World) -> None:
    provider = replace(providers.load(ACME), conflict_status=200)
    ingest = world.new_ingest(lambda _: provider)
    ingest.receive(world.delivery())
    receipt = ingest.receive(world.delivery(body=OTHER))
    assert (receipt.outcome, receipt.status) == (IngestOutcome.CONFLICT, 200)


def test_a_large_conflict_is_kept_in_the_bucket(world: World) -> None:
    world.deliver()
    noise = b"".join(world.randomness.token().encode() for _ in range(1000))
    world.deliver(body=noise)
    (conflict,) = world.rows("conflict#")
    assert conflict["body_ref"] in world.blobs.objects


def test_a_retry_that_changes_a_volatile_field_is_a_duplicate() -> None:
    world = World(with_source(replace(ACME, volatile=("pending_webhooks",))))
    world.deliver(body=b'{"pending_webhooks": 3, "amount": 1}')
    receipt = world.deliver(body=b'{"amount": 1, "pending_webhooks": 2}')
    assert receipt.outcome is IngestOutcome.DUPLICATE


def test_any_other_field_is_not_volatile() -> None:
    world = World(with_source(replace(ACME, volatile=("pending_webhooks",))))
    world.deliver(body=b'{"pending_webhooks": 3, "amount": 1}')
    receipt = world.deliver(body=b'{"pending_webhooks": 3, "amount": 2}')
    assert receipt.outcome is IngestOutcome.CONFLICT


# -- answered without an event


def test_an_unknown_source_is_404_and_costs_no_call(world: World) -> None:
    receipt = world.ingest.receive(replace(world.delivery(), source="nobody"))
    assert (receipt.outcome, receipt.status) == (IngestOutcome.UNKNOWN_SOURCE, 404)
    assert receipt.source == ""
    assert world.plan.calls == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"])
def test_another_method_is_405(world: World, method: str) -> None:
    receipt = world.ingest.receive(replace(world.delivery(), method=method))
    assert (receipt.outcome, receipt.status) == (IngestOutcome.WRONG_METHOD, 405)
    assert world.plan.calls == []


def test_a_type_that_the_source_does_not_store_is_acknowledged_and_only_counted(
    world: World,
) -> None:
    world.deploy(with_source(replace(ACME, types=("paid",))))
    receipt = world.deliver(type_="star")
    assert (receipt.outcome, receipt.status) == (IngestOutcome.IGNORED, 200)
    assert receipt.type == "star"
    assert {row["pk"] for row in world.table} == {"ignored#acme"}
    assert world.messages() == []


def test_a_forged_delivery_of_an_ignored_type_is_still_refused(world: World) -> None:
    receipt = world.deliver(source="github", type_="star", secret="guessed")
    assert receipt.outcome is IngestOutcome.REJECTED


def test_a_challenge_is_answered_after_verification_and_stored_nowhere(world: World) -> None:
    slack = SourceSpec("slack", "slack", "acme")
    world.deploy(with_source(slack))
    body = json.dumps({"type": "url_verification", "challenge": "c-42"}).encode()
    receipt = world.deliver(source="slack", body=body)
    assert receipt.outcome is IngestOutcome.HANDSHAKE
    assert receipt.answer is not None
    assert receipt.answer.body == b"c-42"
    assert list(world.table) == []


def test_a_handshake_carries_its_own_status(world: World) -> None:
    provider = replace(providers.load(ACME), handshake=lambda *_: Answer(201, b"hello"))
    receipt = world.new_ingest(lambda _: provider).receive(world.delivery())
    assert (receipt.outcome, receipt.status) == (IngestOutcome.HANDSHAKE, 201)


# -- G6: refused


def unkept(world: World) -> list[Item]:
    """Returns the rows but those of rejected deliveries, which are never events."""
    return [row for row in world.table if not row["pk"].startswith("rejected")]


def test_a_forged_delivery_of_a_new_event_makes_no_event(world: World) -> None:
    receipt = world.deliver(secret="guessed-by-somebody")
    assert (receipt.outcome, receipt.status) == (IngestOutcome.REJECTED, 401)
    assert receipt.reason == "invalid-signature"
    assert unkept(world) == []
    assert world.messages() == []


def test_a_forged_delivery_with_a_real_id_changes_nothing(world: World) -> None:
    world.deliver()
    before = list(world.table)
    world.deliver(body=OTHER, secret="guessed-by-somebody")
    assert unkept(world) == before
    assert len(world.messages()) == 1


@pytest.mark.parametrize(
    ("shift", "reason"),
    [(timedelta(minutes=5, seconds=1), "stale"), (-timedelta(minutes=5, seconds=1), "future")],
)
def test_a_signature_out_of_its_window_is_400(world: World, shift: timedelta, reason: str) -> None:
    sent = world.delivery()
    receipt = world.ingest.receive(replace(sent, received_at=sent.received_at + shift))
    assert (receipt.outcome, receipt.status, receipt.reason) == (
        IngestOutcome.REJECTED,
        400,
        reason,
    )
    assert unkept(world) == []


def test_a_delivery_without_an_id_is_400(world: World) -> None:
    sent = world.delivery(source="github")
    headers = {k: v for k, v in sent.headers.items() if k != "x-github-delivery"}
    receipt = world.ingest.receive(replace(sent, headers=headers))
    assert (receipt.status, receipt.reason) == (400, "missing-event-id")


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.NO_SECRET])
def test_each_reason_is_answered_as_the_provider_wants(world: World, reason: Reason) -> None:
    def refuse(*_: object) -> object:
        raise Rejected(reason, "because")

    provider = providers.load(ACME)
    wanted = {r: 400 + place for place, r in enumerate(Reason)}
    picky = replace(provider, verify=refuse, statuses=wanted)  # type: ignore[arg-type]
    receipt = world.new_ingest(lambda _: picky).receive(world.delivery())
    assert receipt.status == wanted[reason]
    assert receipt.reason == str(reason)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", b"not json", b"[" * 5000, b"null", b"{}", b'"\\ud800"', b"0" * 100_000],
)
def test_any_signed_body_is_stored_as_it_came(world: World, body: bytes) -> None:
    assert world.deliver(body=body).outcome is IngestOutcome.ACCEPTED
    assert world.body() == body
    assert BODY  # the default is none of these


# -- header names and values


@pytest.mark.parametrize("value", ["x" * 5000, "caf\u00e9", "\ud800", "", "\u0000"])
def test_no_header_value_keeps_an_event_out(world: World, value: str) -> None:
    assert world.deliver(headers={"user-agent": value}).outcome is IngestOutcome.ACCEPTED


def test_a_long_header_is_cut(world: World) -> None:
    world.deliver(headers={"user-agent": "x" * 5000})
    row = world.event_row()
    assert row is not None
    assert len(row["headers"]["user-agent"]) == 1024
