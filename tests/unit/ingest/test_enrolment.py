"""A secret that a provider delivers is taken while an operator waits for it, and otherwise not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Vault
from webhook_inbox.ingest import enrolment
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

ASANA = SourceSpec("asana", "asana", "asana-key")
OFFERED = "b537207f20cbfa02357cf448134da559"


@pytest.fixture
def ingest(world: World) -> Ingest:
    return ingest_with(world, world.vault)


def ingest_with(world: World, vault: Vault) -> Ingest:
    """Returns an ingest container with this store of secrets."""
    return Ingest(with_source(ASANA), replace(world.ports, vault=vault), providers=providers.load)


def offer(world: World, ingest: Ingest, secret: str = OFFERED) -> Receipt:
    headers = {"x-hook-secret": secret, "content-type": "application/json"}
    path = "/webhooks/asana"
    return ingest.receive(Delivery("asana", "POST", path, "", headers, b"{}", world.now))


def wait_for_it(world: World, minutes: int = 15) -> None:
    until = world.now + timedelta(minutes=minutes)
    enrolment.begin(world.table, "asana", by="ops", now=world.now, until=until)


def test_an_offered_secret_is_stored_and_echoed_during_an_enrolment(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    receipt = offer(world, ingest)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.ENROLLED, 200)
    assert receipt.answer is not None
    assert receipt.answer.headers == {"x-hook-secret": OFFERED}
    assert world.vault.live("asana-key") == (OFFERED,)


def test_a_secret_outside_an_enrolment_is_refused_and_not_stored(
    world: World, ingest: Ingest
) -> None:
    receipt = offer(world, ingest)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.REJECTED, 403)
    assert receipt.reason == "not-enrolling"
    assert "webhookctl secrets enrol asana" in receipt.detail
    assert world.vault.live("asana-key") == ()
    assert list(world.table) == []


def test_an_enrolment_ends_by_itself(world: World, ingest: Ingest) -> None:
    wait_for_it(world, minutes=15)
    world.clock.advance(minutes=15)
    assert offer(world, ingest).reason == "not-enrolling"


def test_an_enrolment_lasts_an_hour_at_most(world: World, ingest: Ingest) -> None:
    wait_for_it(world, minutes=600)
    world.clock.advance(minutes=60)
    assert offer(world, ingest).reason == "not-enrolling"


def test_of_two_secrets_in_one_enrolment_neither_is_accepted(world: World, ingest: Ingest) -> None:
    """One of them is not the provider's, and nothing tells which."""
    world.vault.rotate("asana-key", "old")
    wait_for_it(world)
    offer(world, ingest)
    receipt = offer(world, ingest, "another-one")
    assert (receipt.outcome, receipt.status) == (IngestOutcome.CONTESTED, 403)
    assert receipt.reason == "contested-enrolment"
    assert "webhookctl secrets enrol asana" in receipt.detail
    assert world.vault.live("asana-key") == ()


def test_a_contested_enrolment_accepts_nothing_more(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    offer(world, ingest)
    offer(world, ingest, "another-one")
    for secret in (OFFERED, "another-one", "a-third-one"):
        assert offer(world, ingest, secret).outcome is IngestOutcome.CONTESTED
    assert world.vault.live("asana-key") == ()


def test_a_stranger_who_offers_secrets_all_the_time_writes_few_versions(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    offer(world, ingest)
    offer(world, ingest, "another-one")
    world.plan.operations()
    for number in range(20):
        offer(world, ingest, f"another-{number}")
    assert "PutSecretValue" not in world.plan.operations()


def test_after_a_contest_the_next_enrolment_begins_anew(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    offer(world, ingest, "another-one")
    offer(world, ingest)
    world.clock.advance(minutes=1)
    wait_for_it(world)
    assert offer(world, ingest).outcome is IngestOutcome.ENROLLED
    assert world.vault.live("asana-key") == (OFFERED,)


def test_a_secret_after_the_end_contests_nothing(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    offer(world, ingest)
    world.clock.advance(minutes=15)
    assert offer(world, ingest, "another-one").reason == "not-enrolling"
    assert world.vault.live("asana-key") == (OFFERED,)


def test_without_a_live_secret_deliveries_wait_for_the_next_enrolment(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    offer(world, ingest)
    offer(world, ingest, "another-one")
    headers = {"x-hook-signature": "0" * 64}
    sent = Delivery("asana", "POST", "/webhooks/asana", "", headers, b'{"a": 1}', world.now)
    assert ingest.receive(sent).outcome is IngestOutcome.NO_SECRET


def test_what_is_offered_is_never_kept_as_a_rejected_delivery(world: World, ingest: Ingest) -> None:
    wait_for_it(world)
    for secret in (OFFERED, "another-one", "caf\u00e9"):
        offer(world, ingest, secret)
    assert world.rows("rejected") == []


class Interrupting:
    """Lets something happen before the vault's next write, as another worker's offer does."""

    def __init__(self, world: World, act: Callable[[], object]) -> None:
        self.world = world
        self.act: Callable[[], object] | None = act

    def replace(self, name: str, value: str) -> None:
        act, self.act = self.act, None
        if act is not None:
            act()
        self.world.vault.replace(name, value)

    def revoke(self, name: str) -> None:
        self.world.vault.revoke(name)


def test_a_contest_that_comes_before_the_write_of_the_first_is_no_race(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    slow = Interrupting(world, lambda: offer(world, ingest, "another-one"))
    ingest_that_is_slow = ingest_with(world, slow)
    assert offer(world, ingest_that_is_slow).outcome is IngestOutcome.CONTESTED
    assert world.vault.live("asana-key") == ()


def test_an_enrolment_that_is_replaced_meanwhile_leaves_no_secret_of_before(
    world: World, ingest: Ingest
) -> None:
    """The late write may have replaced the new enrolment's secret: neither stays."""
    wait_for_it(world)

    def again() -> None:
        world.clock.advance(seconds=1)
        wait_for_it(world)
        offer(world, ingest)

    slow = Interrupting(world, again)
    assert offer(world, ingest_with(world, slow), "attackers").outcome is IngestOutcome.CONTESTED
    assert world.vault.live("asana-key") == ()
    assert offer(world, ingest).outcome is IngestOutcome.CONTESTED


def test_the_same_secret_may_come_again_when_the_answer_was_lost(
    world: World, ingest: Ingest
) -> None:
    wait_for_it(world)
    offer(world, ingest)
    assert offer(world, ingest).outcome is IngestOutcome.ENROLLED


def test_no_secret_from_before_stays_live(world: World, ingest: Ingest) -> None:
    """The one before may be an attacker's, accepted by the enrolment that this one corrects."""
    wait_for_it(world)
    offer(world, ingest, "an-attackers")
    world.clock.advance(minutes=1)
    wait_for_it(world)
    offer(world, ingest)
    assert world.vault.live("asana-key") == (OFFERED,)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_replacement_that_was_interrupted_is_finished_by_the_same_offer(
    world: World, ingest: Ingest, fault: Fault
) -> None:
    world.vault.rotate("asana-key", "old")
    wait_for_it(world)
    world.plan.fail("PutSecretValue", fault)
    assert offer(world, ingest).status == 503
    # One write: either it took place or it did not, and no two secrets are live.
    assert world.vault.live("asana-key") == ("old" if fault is Fault.BEFORE else OFFERED,)
    world.plan.heal()
    assert offer(world, ingest).outcome is IngestOutcome.ENROLLED
    assert world.vault.live("asana-key") == (OFFERED,)


@pytest.mark.parametrize(("operation", "skip"), [("PutSecretValue", 1), ("UpdateItem", 2)])
def test_a_contest_that_could_not_be_finished_is_told_and_repeated_by_the_next_offer(
    world: World, ingest: Ingest, operation: str, skip: int
) -> None:
    wait_for_it(world)
    world.plan.fail(operation, skip=skip)
    offer(world, ingest)
    receipt = offer(world, ingest, "another-one")
    assert receipt.outcome is IngestOutcome.CONTESTED
    assert "did not answer" in receipt.detail
    world.plan.heal()
    assert offer(world, ingest, "another-one").outcome is IngestOutcome.CONTESTED
    assert world.vault.live("asana-key") == ()


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
    assert world.vault.live("asana-key") == ()
