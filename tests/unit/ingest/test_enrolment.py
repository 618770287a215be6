"""A secret that a provider delivers is taken while an operator waits for it, and otherwise not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.ingest import enrolment
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

ASANA = SourceSpec("asana", "asana", "asana-key")
OFFERED = "b537207f20cbfa02357cf448134da559"


@pytest.fixture
def ingest(world: World) -> Ingest:
    return Ingest(
        manifest=with_source(ASANA),
        providers=providers.load,
        table=world.table,
        lanes=world.lanes,
        blobs=world.blobs,
        secrets=SecretCache(store=world.vault, clock=world.clock),
        vault=world.vault,
    )


def offer(world: World, ingest: Ingest, secret: str = OFFERED) -> Receipt:
    headers = {"x-hook-secret": secret, "content-type": "application/json"}
    path = "/webhooks/asana"
    return ingest.receive(Delivery("asana", "POST", path, "", headers, b"{}", world.now))


def wait_for_it(world: World, minutes: int = 15) -> None:
    until = world.now + timedelta(minutes=minutes)
    enrolment.begin(world.table, "asana", by="ops", now=world.now, until=until)


def test_an_offered_secret_is_stored_and_echoed_while_somebody_waits(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    receipt = offer(world, ingest)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.ENROLLED, 200)
    assert receipt.answer is not None
    assert receipt.answer.headers == {"x-hook-secret": OFFERED}
    assert world.vault.fetch("asana-key") == (OFFERED,)


def test_a_secret_that_nobody_waits_for_is_refused_and_kept_nowhere(
    world: World, ingest: Ingest
) -> None:
    receipt = offer(world, ingest)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.REJECTED, 403)
    assert receipt.reason == "not-enrolling"
    assert "webhookctl secrets enrol asana" in receipt.detail
    assert world.vault.fetch("asana-key") == ()
    assert list(world.table) == []


def test_an_enrolment_ends_by_itself(world: World, ingest: Ingest) -> None:
    wait_for_it(world, minutes=15)
    world.clock.advance(minutes=15)
    assert offer(world, ingest).reason == "not-enrolling"


def test_an_enrolment_lasts_an_hour_at_most(world: World, ingest: Ingest) -> None:
    wait_for_it(world, minutes=600)
    world.clock.advance(minutes=60)
    assert offer(world, ingest).reason == "not-enrolling"


def test_the_first_secret_is_taken_and_no_second(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    offer(world, ingest)
    assert offer(world, ingest, "another-one").reason == "not-enrolling"
    assert world.vault.fetch("asana-key") == (OFFERED,)


def test_the_same_secret_may_come_again_when_the_answer_was_lost(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    offer(world, ingest)
    assert offer(world, ingest).outcome is IngestOutcome.ENROLLED


def test_the_secret_before_stays_live(world: World, ingest: Ingest) -> None:
    world.vault.rotate("asana-key", "old")
    wait_for_it(world)
    offer(world, ingest)
    assert world.vault.fetch("asana-key") == (OFFERED, "old")


def test_the_ledger_never_holds_the_secret(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    offer(world, ingest)
    offer(world, ingest, "another-one")
    assert OFFERED not in repr(list(world.table))
    assert "another-one" not in repr(list(world.table))


def test_when_storage_fails_the_provider_has_to_offer_it_again(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    world.plan.fail("UpdateItem", fault=Fault.BEFORE)
    assert offer(world, ingest).status == 503
    world.plan.heal()
    assert offer(world, ingest).outcome is IngestOutcome.ENROLLED


@pytest.mark.parametrize("secret", ["x" * 1025, "caf\u00e9", "a\x00b"])
def test_what_is_no_secret_is_malformed(world: World, ingest: Ingest, secret: str) -> None:
    wait_for_it(world)
    assert offer(world, ingest, secret).reason == "malformed"


def test_a_signed_delivery_is_no_offer(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    headers = {"x-hook-secret": OFFERED, "x-hook-signature": "0" * 64}
    sent = Delivery("asana", "POST", "/webhooks/asana", "", headers, b"{}", world.now)
    assert ingest.receive(replace(sent, headers=headers)).reason == "no-secret"
    assert world.vault.fetch("asana-key") == ()
