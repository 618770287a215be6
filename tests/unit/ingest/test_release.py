"""A delivery rejected for a wrong or missing secret is valid once the secret is right."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.cases import NAMES, Case, example, signed
from tests.unit.support.people import person
from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import RejectedDelivery, RejectedFilter, find
from webhook_inbox.ingest.release import ReleaseVerdict, Reverification

KEY = "a-key-that-the-stack-made"
# A token verifies them; it is new each time, and only its hash is kept.
NOT_AGAIN = {"jwt", "monday"}
SHARED = [name for name in NAMES if signed(name).provider.needs_secret]


class Stage:
    """One source of a provider, its secret missing."""

    def __init__(self, world: World, provider_name: str, *, key: str = KEY) -> None:
        self.world = world
        self.case: Case = signed(provider_name)
        spec = SourceSpec("it", provider_name, "it", settings=example(provider_name))
        self.manifest: Manifest = with_source(spec)
        if key:
            world.vault.rotate(TOKEN_KEY, key)
        delivery = self.case.delivery
        self.receipt = self._ingest().receive(delivery)

    def _ingest(self) -> Ingest:
        return Ingest(
            self.manifest, replace(self.world.ports, fetcher=self.case), providers=providers.load
        )

    @property
    def judge(self) -> Reverification:
        return Reverification(
            self.manifest, replace(self.world.ports, fetcher=self.case), providers=providers.load
        )

    @property
    def kept(self) -> RejectedDelivery:
        (one,) = find(self.world.table, "it", RejectedFilter(), now=self.case.delivery.received_at)
        return one

    def release(self) -> ReleaseVerdict | IngestOutcome:
        world = self.world
        done = self.judge.release(self.kept, by=person("me"), reason="why", now=world.now)
        return done.verdict


@pytest.mark.parametrize("provider_name", SHARED)
def test_of_every_provider_what_came_without_a_secret_is_let_in_once(
    provider_name: str, world: World
) -> None:
    stage = Stage(world, provider_name)
    assert stage.receipt.outcome is IngestOutcome.NO_SECRET
    world.vault.rotate("it", stage.case.secrets[0])
    before = list(world.table)
    verdict = stage.judge.check(stage.kept).verdict
    assert list(world.table) == before
    if provider_name in NOT_AGAIN:
        assert verdict is ReleaseVerdict.INVALID
        return
    assert verdict is ReleaseVerdict.VALID
    assert [stage.release(), stage.release()] == [IngestOutcome.ACCEPTED, ReleaseVerdict.RELEASED]
    assert len([row for row in world.rows("event#it#") if row["sk"] == "event"]) == 1


@pytest.mark.parametrize("provider_name", ["stripe", "slack", "telegram", "docker-hub", "discord"])
def test_another_secret_than_the_right_one_lets_nothing_in(
    provider_name: str, world: World
) -> None:
    stage = Stage(world, provider_name)
    world.vault.rotate("it", "00" * 32)
    assert stage.release() is ReleaseVerdict.INVALID
    assert world.rows("event#") == []


BEARING = [name for name in SHARED if signed(name).provider.bears_tokens]


@pytest.mark.parametrize("provider_name", BEARING)
@pytest.mark.parametrize("key", [KEY, ""])
def test_no_token_of_a_rejected_delivery_is_stored(
    provider_name: str, key: str, world: World
) -> None:
    stage = Stage(world, provider_name, key=key)
    provider, delivery = stage.case.provider, stage.case.delivery
    tokens = [v for k, v in delivery.headers.items() if k in provider.token_headers]
    kept = repr(stage.kept.row)
    assert not any(token in kept for token in (*tokens, *stage.case.secrets))


@pytest.mark.parametrize("provider_name", sorted({*BEARING} - NOT_AGAIN))
def test_a_key_that_was_rotated_still_tells_the_token(provider_name: str, world: World) -> None:
    stage = Stage(world, provider_name)
    world.vault.rotate("it", stage.case.secrets[0])
    world.vault.rotate(TOKEN_KEY, "another-key")
    assert stage.judge.check(stage.kept).verdict is ReleaseVerdict.VALID


def test_a_token_that_came_while_the_key_could_not_be_read_is_lost_alone(world: World) -> None:
    world.plan.fail("GetSecretValue", skip=1, times=10)  # the source's own is asked for first
    stage = Stage(world, "telegram")
    world.plan.heal()
    world.vault.rotate("it", stage.case.secrets[0])
    checked = stage.judge.check(stage.kept)
    assert checked.verdict is ReleaseVerdict.INVALID
    assert checked.detail.endswith("its token was not stored")


def test_hashes_of_one_token_differ_between_sources(world: World) -> None:
    stage = Stage(world, "telegram")
    header = "x-telegram-bot-api-secret-token"
    first = stage.kept.row["headers"][header]
    moved = replace(stage.case.delivery, source="twin")
    spec = replace(stage.manifest.sources["it"], name="twin")
    stage.manifest = replace(stage.manifest, sources={"twin": spec})
    stage._ingest().receive(moved)
    (second,) = world.rows("rejected#twin")
    assert first != second["headers"][header]


def test_what_expired_is_not_found(world: World) -> None:
    stage = Stage(world, "stripe")
    later = stage.case.delivery.received_at + timedelta(days=7)
    assert list(find(world.table, "it", RejectedFilter(), now=later)) == []
