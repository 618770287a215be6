"""No secret, signature or authorization in the ledger, a receipt or a result (G10)."""

import hashlib
from dataclasses import replace

import pytest

from tests.unit.providers.cases import NAMES, Case, example, provider_of, signed
from tests.unit.support.world import ACME, SECRET, World, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import Deferred, Permanent, Transient
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.payloads import unpack

SENSITIVE = {
    "authorization": "Basic dXNlcjpwYXNzd29yZA==",
    "cookie": "session=of-somebody",
    "x-api-key": "key-of-somebody",
    "proxy-authorization": "Bearer of-somebody",
    "x-forwarded-for": "203.0.113.9",
}


def everything(world: World) -> str:
    """Returns all that is kept anywhere, as text; bodies as they were before compression."""
    queued = [queue.bodies for queue in (*world.queues.values(), *world.dlqs.values())]
    rows = list(world.table)
    bodies = [unpack(row, world.blobs) for row in rows if "body_encoding" in row]
    return repr([rows, bodies, queued])


def receiving(case: Case, world: World) -> Ingest:
    """Returns an ingest with one source of the case's provider."""
    spec = SourceSpec("it", case.provider_name, "it", settings=example(case.provider_name))
    if case.secrets:
        world.vault.rotate("it", case.secrets[0])
    return Ingest(with_source(spec), replace(world.ports, fetcher=case), providers=providers.load)


@pytest.mark.parametrize("provider_name", NAMES)
def test_no_signature_of_an_accepted_event_is_stored(provider_name: str, world: World) -> None:
    case = signed(provider_name)
    # The text in the body is part of the event.
    sensitive = {k: v for k, v in SENSITIVE.items() if k not in case.delivery.headers}
    sent = replace(case.delivery, headers={**case.delivery.headers, **sensitive})
    receipt = receiving(case, world).receive(sent)
    assert receipt.outcome is IngestOutcome.ACCEPTED, receipt
    assert receipt.status in {200, 202}

    kept = everything(world)
    assert kept.count("received_at")  # something was stored
    for name in (case.provider.signature_headers & sent.headers.keys()) | sensitive.keys():
        # A signed header may be the event's id, under whatever name.
        if not sent.headers[name].isdecimal() and sent.headers[name] != receipt.event_id:
            assert sent.headers[name] not in kept, name
    assert not any(secret in kept for secret in case.secrets)


@pytest.mark.parametrize("provider_name", NAMES)
def test_no_provider_keeps_a_header_that_could_be_a_secret(provider_name: str) -> None:
    provider = provider_of(provider_name)
    assert provider.kept_headers.isdisjoint(provider.token_headers)
    for name in provider.kept_headers:
        bare = name.replace("idempotency-token", "")
        assert not any(word in bare for word in ("signature", "hmac-", "auth", "token", "cookie"))
        assert name == name.lower()


def test_of_a_signature_its_hash_is_kept(world: World) -> None:
    delivery = world.delivery()
    world.ingest.receive(delivery)
    row = world.event_row()
    assert row is not None
    signature = delivery.headers["x-acme-signature"]
    assert row["signature_hash"] == hashlib.sha256(signature.encode()).digest()


def test_only_listed_headers_are_kept(world: World) -> None:
    world.deliver(
        headers={
            "user-agent": "acme/1",
            "traceparent": "00-1-2-03",
            "x-unknown": "anything",
            **SENSITIVE,
        }
    )
    row = world.event_row()
    assert row is not None
    assert set(row["headers"]) == {
        "content-type",
        "user-agent",
        "traceparent",
        "x-acme-id",
        "x-acme-type",
    }


def test_what_agents_tell_of_their_calls_is_kept_and_cut(world: World) -> None:
    told = {
        "x-agent-call-chain": "planner,buyer",
        "x-agent-call-depth": "2",
        "x-agent-trace-id": "t" * 2000,
    }
    world.deliver(headers={**told, "x-agent-secret": "anything"})
    row = world.event_row()
    assert row is not None
    kept = {name: value for name, value in row["headers"].items() if name.startswith("x-agent")}
    assert kept == {**told, "x-agent-trace-id": "t" * 1024}


def test_a_conflict_keeps_no_more_headers_than_an_event(world: World) -> None:
    world.deliver()
    world.deliver(body=b"other", headers=SENSITIVE)
    (row,) = world.rows("conflict#")
    assert set(row["headers"]) == {"content-type", "x-acme-id", "x-acme-type"}


@pytest.mark.parametrize(
    "change",
    [
        {"secret": "guessed-by-somebody"},
        {"headers": {"x-acme-signature": "not-hex-but-very-secret"}},
        {"headers": {"x-acme-timestamp": "yesterday"}},
        {"headers": {"x-acme-id": ""}},
    ],
    ids=["forged", "malformed", "timestamp", "id"],
)
def test_no_refusal_repeats_a_signature_or_a_secret(
    world: World, change: dict[str, object]
) -> None:
    delivery = world.delivery(**change)  # type: ignore[arg-type]
    shown = repr(world.ingest.receive(delivery))
    assert delivery.headers["x-acme-signature"] not in shown
    assert SECRET not in shown
    assert world.rows("event#") == []


def test_no_receipt_holds_a_body(world: World) -> None:
    assert "4242" not in repr(world.deliver(body=b'{"card": "4242"}'))


@pytest.mark.parametrize("kind", [Transient, Permanent, ValueError, KeyError, SystemExit])
def test_no_error_of_a_handler_carries_a_secret_into_the_ledger(
    world: World, kind: type[BaseException]
) -> None:
    world.vault.rotate("crm", "a-very-secret-token")
    world.secrets.get("crm")
    world.script("acme.fulfil", kind("401 with Bearer a-very-secret-token"))
    world.deliver()
    result = world.process(world.taken())
    assert "a-very-secret-token" not in everything(world)
    assert "a-very-secret-token" not in result.detail


def test_no_deferral_does_either(world: World) -> None:
    world.vault.rotate("crm", "a-very-secret-token")
    world.secrets.get("crm")
    world.script("acme.fulfil", Deferred(world.now, "waits for a-very-secret-token"))
    world.deliver()
    world.work_once()
    assert "a-very-secret-token" not in everything(world)


def test_a_secret_cut_in_two_by_the_limit_is_redacted_before_it_is_cut(world: World) -> None:
    world.vault.rotate("crm", "a-very-secret-token")
    world.secrets.get("crm")
    world.script("acme.fulfil", Transient("x" * 1015 + "a-very-secret-token"))
    world.deliver()
    world.work_once()
    assert "a-very" not in everything(world)


def test_a_source_named_like_another_shares_nothing_with_it() -> None:
    world = World(with_source(replace(ACME, name="acme2", secret="other")))
    delivery = replace(world.delivery(), source="acme2", path="/webhooks/acme2")
    assert world.ingest.receive(delivery).status == 503
    world.vault.rotate("other", "the-others-secret")
    world.clock.advance(seconds=3)
    assert world.ingest.receive(delivery).status == 401
