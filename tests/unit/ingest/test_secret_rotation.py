"""Sources whose secret is not set, or has just been rotated."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from tests.unit.support.world import ACME, SECRET, World, with_source
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import PER_MINUTE
from webhook_inbox.ledger.payloads import REJECTED_PREFIX


def fetches(world: World) -> int:
    return world.plan.operations().count("GetSecretValue")


# -- not set


def test_a_source_without_a_secret_answers_503_and_keeps_the_delivery(world: World) -> None:
    world.vault.remove("acme")
    receipt = world.deliver(body=b'{"amount": 1}')
    assert (receipt.outcome, receipt.status) == (IngestOutcome.NO_SECRET, 503)
    (kept,) = world.rows("rejected#acme")
    assert kept["reason"] == "no-secret"
    assert kept["body"] == b'{"amount": 1}'
    assert (kept["method"], kept["path"]) == ("POST", "/webhooks/acme")


def test_what_is_kept_can_be_verified_again(world: World) -> None:
    world.vault.remove("acme")
    world.deliver()
    (kept,) = world.rows("rejected#acme")
    assert kept["headers"]["x-acme-signature"]
    assert kept["headers"]["x-acme-timestamp"]


def test_what_is_kept_is_no_event_and_is_not_run(world: World) -> None:
    world.vault.remove("acme")
    world.deliver()
    assert world.event_row() is None
    assert world.messages() == []


def test_what_is_kept_ends_after_a_week(world: World) -> None:
    world.vault.remove("acme")
    world.deliver()
    (kept,) = world.rows("rejected#acme")
    week = (world.now + timedelta(days=7)).timestamp()
    assert week - 1 <= kept["expires_at"] <= week + 1


def test_two_seconds_after_the_secret_is_set_deliveries_are_accepted(world: World) -> None:
    world.vault.remove("acme")
    world.deliver()
    world.vault.rotate("acme", SECRET)
    assert world.deliver().outcome is IngestOutcome.NO_SECRET
    world.clock.advance(seconds=2)
    assert world.deliver().outcome is IngestOutcome.ACCEPTED


def test_only_so_many_a_minute_are_kept(world: World) -> None:
    world.vault.remove("acme")
    receipts = [world.deliver(f"evt-{n}") for n in range(PER_MINUTE + 5)]
    assert len(world.rows("rejected#acme")) == PER_MINUTE
    assert {receipt.status for receipt in receipts} == {503}
    assert receipts[0].detail != receipts[-1].detail


def test_the_next_minute_has_its_own_share(world: World) -> None:
    world.vault.remove("acme")
    for n in range(PER_MINUTE + 1):
        world.deliver(f"evt-{n}")
    world.clock.advance(minutes=1)
    world.deliver("later")
    assert len(world.rows("rejected#acme")) == PER_MINUTE + 1


def test_one_sources_flood_takes_no_other_sources_share(world: World) -> None:
    world.vault.remove("acme")
    world.vault.remove("github")
    for n in range(PER_MINUTE + 1):
        world.deliver(f"evt-{n}")
    world.deliver("g", source="github")
    assert len(world.rows("rejected#github")) == 1


def test_a_large_delivery_is_kept_in_the_bucket(world: World) -> None:
    world.vault.remove("acme")
    world.deliver(body=b"".join(world.randomness.token().encode() for _ in range(1000)))
    (kept,) = world.rows("rejected#acme")
    assert kept["body_ref"] in world.blobs.objects


@pytest.mark.parametrize("name", ["authorization", "proxy-authorization", "cookie", "x-api-key"])
def test_credentials_of_an_unverified_delivery_are_not_kept(world: World, name: str) -> None:
    world.vault.remove("acme")
    world.deliver(headers={name: "Bearer of-a-secret"})
    assert "of-a-secret" not in repr(list(world.table))


@pytest.mark.parametrize("value", ["\ud800", "caf\u00e9", "x" * 9000, ""])
def test_no_header_value_keeps_a_delivery_from_being_kept(world: World, value: str) -> None:
    world.vault.remove("acme")
    assert world.deliver(headers={"x-odd": value}).outcome is IngestOutcome.NO_SECRET
    assert len(world.rows("rejected#acme")) == 1


@pytest.mark.parametrize("operation", ["UpdateItem", "PutItem"])
@pytest.mark.parametrize("fault", list(Fault))
def test_a_delivery_that_cannot_be_kept_is_a_503_all_the_same(
    world: World, operation: str, fault: Fault
) -> None:
    world.vault.remove("acme")
    world.plan.fail(operation, fault)
    assert world.deliver().status == 503


def test_a_secret_of_a_form_the_provider_never_gives_counts_as_not_set() -> None:
    world = World(with_source(SourceSpec("hooks", "standard-webhooks", "hooks")))
    world.vault.rotate("hooks", "whsec_c2lnbmluZy1zZWNyZXQtb2YtaG9va3M=")
    delivery = world.delivery(source="hooks", secret="whsec_c2lnbmluZy1zZWNyZXQtb2YtaG9va3M=")
    world.vault.remove("hooks")
    world.vault.rotate("hooks", "whsec_%%%")
    receipt = world.ingest.receive(delivery)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.NO_SECRET, 503)
    assert receipt.reason == "no-secret"
    assert len(world.rows("rejected#hooks")) == 1


# -- rotated


def test_both_live_secrets_are_accepted(world: World) -> None:
    world.vault.rotate("acme", "the-next-secret")
    assert world.deliver("old", secret=SECRET).secret == 1
    assert world.deliver("new", secret="the-next-secret").secret == 0


def test_a_secret_from_before_the_overlap_is_refused(world: World) -> None:
    world.vault.rotate("acme", "the-next-secret")
    world.vault.rotate("acme", "the-one-after")
    assert world.deliver(secret=SECRET).outcome is IngestOutcome.REJECTED


def test_a_rotation_within_the_caches_life_is_found_by_one_refresh(world: World) -> None:
    world.deliver("before")
    world.vault.rotate("acme", "the-next-secret")
    world.clock.advance(seconds=11)
    world.plan.operations()
    assert world.deliver("after", secret="the-next-secret").outcome is IngestOutcome.ACCEPTED
    assert fetches(world) == 1


def test_a_flood_of_forgeries_fetches_once_in_ten_seconds(world: World) -> None:
    world.deliver("before")
    world.clock.advance(seconds=11)
    world.plan.operations()
    for n in range(50):
        assert world.deliver(f"forged-{n}", secret="guessed").outcome is IngestOutcome.REJECTED
    assert fetches(world) == 1


def test_a_forgery_right_after_a_fetch_fetches_nothing(world: World) -> None:
    world.deliver("before")
    world.plan.operations()
    world.deliver("forged", secret="guessed")
    assert fetches(world) == 0


def test_a_stale_signature_is_no_reason_to_refresh(world: World) -> None:
    world.deliver("before")
    delivery = world.delivery()
    world.clock.advance(minutes=6)
    world.deliver("fresh-cache")
    world.clock.advance(seconds=11)
    world.plan.operations()
    stale = replace(delivery, received_at=world.now)
    assert world.ingest.receive(stale).reason == "stale"
    assert fetches(world) == 0


def test_a_refresh_that_fails_leaves_the_refusal(world: World) -> None:
    world.deliver("before")
    world.clock.advance(seconds=11)
    world.plan.fail("GetSecretValue")
    assert world.deliver("forged", secret="guessed").outcome is IngestOutcome.REJECTED


def test_secrets_are_cached_for_a_minute(world: World) -> None:
    world.plan.operations()
    world.deliver("one")
    world.clock.advance(seconds=59)
    world.deliver("two")
    assert fetches(world) == 1
    world.clock.advance(seconds=2)
    world.deliver("three")
    assert fetches(world) == 1


def test_while_the_store_is_down_known_secrets_go_on_for_an_hour(world: World) -> None:
    world.deliver("one")
    world.plan.fail("GetSecretValue", times=10_000)
    world.clock.advance(minutes=59)
    assert world.deliver("two").outcome is IngestOutcome.ACCEPTED
    world.clock.advance(minutes=2)
    assert world.deliver("three").status == 503


def test_two_sources_may_share_a_secret() -> None:
    world = World(with_source(replace(ACME, name="twin")))
    assert world.deliver(source="twin").outcome is IngestOutcome.ACCEPTED


def test_a_large_body_that_is_kept_goes_where_it_ends_after_a_week(world: World) -> None:
    world.vault.remove("acme")
    world.deliver(body=b"".join(sha256(bytes([n % 256, n // 256])).digest() for n in range(600)))
    (kept,) = world.rows("rejected#acme")
    assert kept["body_ref"].startswith(REJECTED_PREFIX)
    assert list(world.blobs.objects) == [kept["body_ref"]]
