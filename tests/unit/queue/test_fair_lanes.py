"""The tenant is the group of every message in a standard lane: SQS is fair between groups."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import ACME, MAX_RECEIVES, VISIBILITY, World, with_source
from webhook_inbox.adapters.memory import MemoryQueue
from webhook_inbox.domain.errors import Deferred, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.reconciler.received import FIRST_LOOK

NAME = "acme.fulfil"
TENANT = {"x-tenant": "acct_7"}


class Tenants:
    """An inbox whose source has tenants, and the groups of the messages that it has sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[str] = []
        self.world = World(with_source(replace(ACME, tenant=("header", "x-tenant"))))
        send = MemoryQueue.send

        def noted(queue: MemoryQueue, messages: Sequence[Outgoing], *, hops: int = 0) -> object:
            self.groups += [message.group for message in messages]
            return send(queue, messages, hops=hops)

        monkeypatch.setattr(MemoryQueue, "send", noted)

    def sent(self) -> list[str]:
        """Returns the groups of the messages since the last call."""
        groups, self.groups = self.groups, []
        return groups


@pytest.fixture
def tenants(monkeypatch: pytest.MonkeyPatch) -> Tenants:
    return Tenants(monkeypatch)


def test_ingest_sends_into_the_group_of_the_tenant(tenants: Tenants) -> None:
    tenants.world.deliver(headers=TENANT)
    tenants.world.deliver("evt-2")

    assert tenants.sent() == ["acct_7", ""]


def test_a_duplicate_whose_run_has_not_begun_is_sent_into_its_group(tenants: Tenants) -> None:
    tenants.world.plan.fail("SendMessageBatch")
    tenants.world.deliver(headers=TENANT)
    tenants.sent()
    tenants.world.deliver(headers=TENANT)

    assert tenants.sent() == ["acct_7"]


def test_the_copy_of_a_deferred_or_failed_run_is_in_its_group(tenants: Tenants) -> None:
    world, wait = tenants.world, timedelta(minutes=10)
    world.script(NAME, Deferred(world.now + wait, "not yet"), Transient("down", retry_after=wait))
    world.deliver(headers=TENANT)
    world.run_until_quiet()

    assert tenants.sent() == ["acct_7"] * 3
    assert world.run().status is Status.DONE


def test_a_message_at_its_last_receive_is_replaced_in_its_group(tenants: Tenants) -> None:
    world = tenants.world
    world.deliver(headers=TENANT)
    tenants.sent()
    for _ in range(MAX_RECEIVES):
        message = world.taken()
        world.clock.advance(seconds=VISIBILITY)
    world.process(message)

    assert tenants.sent() == ["acct_7"]


def test_a_lost_message_is_sent_again_into_its_group(tenants: Tenants) -> None:
    world = tenants.world
    world.deliver(headers=TENANT)
    world.drop_messages()
    tenants.sent()
    world.clock.advance(seconds=FIRST_LOOK.total_seconds() + 120)
    world.reconcile()  # adopts the run
    assert tenants.sent() == ["acct_7"]
    world.drop_messages()
    world.clock.advance(hours=1)
    world.reconcile()  # sends it again

    assert tenants.sent() == ["acct_7"]


def test_a_replayed_run_is_sent_into_its_group(tenants: Tenants) -> None:
    world = tenants.world
    world.deliver(headers=TENANT)
    world.script(NAME, *[Transient("down")] * 3)
    world.run_until_quiet()
    assert world.run().status is Status.DEAD_LETTER
    tenants.sent()
    world.replay()

    assert tenants.sent() == ["acct_7"]
