"""The tenant of an event: read after verification, stored with event and runs."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.support.batches import MAIL, NOTE, Batches, mail, with_mail
from tests.unit.support.world import ACME, World, with_source
from webhook_inbox.handlers.event import Event
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.schema import BY_RECEIVED, received_bucket

BODY = b'{"id": "evt-1", "account": {"id": "acct_7", "number": 12, "name": "a b"}}'


def tenant(world: World, event_id: str = "evt-1", source: str = "acme") -> str:
    found = world.ledger.overview(source, event_id, now=world.now)
    assert found is not None
    return found.event.tenant


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (("json", "account.id"), "acct_7"),
        (("json", "account.number"), "12"),
        (("json", "account.none"), ""),
        (("json", "account"), ""),
        (("header", "x-tenant"), "t-1"),
        (("header", "x-none"), ""),
        ((), ""),
    ],
)
def test_the_tenant_is_read_from_its_location(location: tuple[str, ...], expected: str) -> None:
    world = World(with_source(replace(ACME, tenant=location)))

    world.deliver(body=BODY, headers={"x-tenant": "t-1"})

    assert tenant(world) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/webhooks/acme/t-1", "t-1"),
        ("/webhooks/acme/acct/7", "acct/7"),
        ("/webhooks/acme", ""),
        ("/webhooks/acme/", ""),
    ],
)
def test_the_tenant_is_read_from_the_path(path: str, expected: str) -> None:
    world = World(with_source(replace(ACME, tenant=("path", ""))))

    world.ingest.receive(replace(world.delivery(), path=path))

    assert tenant(world) == expected


@pytest.mark.parametrize("name", ["a b", "ü", "x" * 129, "\ud800"])
def test_a_name_that_sqs_does_not_take_as_a_group_is_hashed(name: str) -> None:
    world = World(with_source(replace(ACME, tenant=("header", "x-tenant"))))

    receipt = world.deliver(headers={"x-tenant": name})

    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert tenant(world).startswith("sha256:")
    assert len(tenant(world)) == len("sha256:") + 64


def test_a_delivery_that_is_not_verified_stores_no_tenant() -> None:
    world = World(with_source(replace(ACME, tenant=("json", "account.id"))))

    assert world.deliver(body=BODY, secret="another").outcome is IngestOutcome.REJECTED

    assert "tenant" not in repr([row.get("tenant") and "tenant" for row in world.table])


def test_the_handler_the_run_and_the_index_have_it() -> None:
    world = World(with_source(replace(ACME, tenant=("json", "account.id"))))
    seen: list[str] = []

    def act(event: Event, context: Any) -> None:
        seen.append(event.tenant)

    world.behaviours["acme.fulfil"] = act
    received_at = world.now
    world.deliver(body=BODY)
    world.run_until_quiet()

    run = world.run()
    assert run is not None
    assert (seen, run.tenant) == (["acct_7"], "acct_7")
    bucket = received_bucket(received_at, "evt-1")
    [entry] = world.table.query_index(BY_RECEIVED, bucket, low=0, high=1 << 50).items
    assert entry["tenant"] == "acct_7"


def test_each_item_of_a_batch_has_its_own() -> None:
    world = Batches(with_mail(NOTE, source=replace(MAIL, tenant=("json", "account"))))
    world.sent(mail("a", account="t-1"), mail("b", account="t-2"), mail("c"))
    world.run_until_quiet()

    rows = [row for row in world.table if row["sk"] == "event"]
    assert sorted(row.get("tenant", "") for row in rows) == ["", "", "t-1", "t-2"]
