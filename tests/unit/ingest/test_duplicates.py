"""The kind of a duplicate: a retry, a requested resend, an attack, or caused by the inbox."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import ACME, World
from webhook_inbox import providers
from webhook_inbox.domain.metrics import Duplicate
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.deduplication import PROMPT
from webhook_inbox.ingest.receipt import Receipt


def counting(retry: int | None) -> Callable[..., Provider]:
    """Returns a provider that counts its retries, at this one."""
    provider = providers.load(ACME)
    named = replace(
        provider,
        identify=lambda delivery, **how: replace(provider.identify(delivery, **how), retry=retry),
    )
    return lambda _: named


def again(world: World, *, retry: int | None = None) -> Receipt:
    return world.new_ingest(counting(retry)).receive(world.delivery())


def test_a_new_event_is_no_duplicate(world: World) -> None:
    assert world.deliver().duplicate is None


def test_a_conflict_is_no_duplicate(world: World) -> None:
    world.deliver()

    assert world.deliver(body=b'{"id": "evt-1", "type": "paid"}').duplicate is None


@pytest.mark.parametrize("age", [timedelta(0), timedelta(hours=1)], ids=str)
@pytest.mark.parametrize("retry", [None, 1, 7])
def test_a_known_event_is_a_retry(world: World, age: timedelta, retry: int | None) -> None:
    world.deliver()
    world.work()
    world.clock.advance(seconds=age.total_seconds())

    assert again(world, retry=retry).duplicate is Duplicate.RETRY


def test_a_delivery_whose_provider_says_that_it_is_no_retry_was_requested(world: World) -> None:
    world.deliver()
    world.work()

    assert again(world, retry=0).duplicate is Duplicate.RESEND


def test_a_duplicate_of_a_provider_that_never_retries_was_requested(world: World) -> None:
    world.deliver("e1", source="github")
    world.work()

    assert world.deliver("e1", source="github").duplicate is Duplicate.RESEND


@pytest.mark.parametrize("source", ["acme", "github"])
def test_a_delivery_that_was_not_finished_is_repeated_because_of_the_inbox(
    world: World, source: str
) -> None:
    world.plan.fail("SendMessageBatch")
    assert world.deliver("e1", source=source).status == 503
    world.clock.advance(seconds=PROMPT.total_seconds())

    assert world.deliver("e1", source=source).duplicate is Duplicate.SELF


def test_runs_that_could_not_begin_yet_are_no_fault_of_the_inbox(world: World) -> None:
    """Two deliveries at once: the queue has had no time."""
    world.deliver()
    world.clock.advance(seconds=PROMPT.total_seconds() - 0.01)

    assert world.deliver().duplicate is Duplicate.RETRY


def test_known_signed_content_that_may_not_run_is_a_suspected_attack(world: World) -> None:
    source = replace(world.manifest.sources["github"], identical_body="drop")
    world.deploy(replace(world.manifest, sources={**world.manifest.sources, "github": source}))
    world.deliver("first", source="github")
    world.work()

    assert world.deliver("captured", source="github").duplicate is Duplicate.ATTACK
