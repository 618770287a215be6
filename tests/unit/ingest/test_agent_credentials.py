"""Agents with credentials of their own: who sent an event is kept, told, and proved."""

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import pytest

from tests.unit.providers import tokens
from tests.unit.providers.tokens import pem, private, secret, token
from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.adapters.memory import MemorySecrets
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Identity, Verified
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.ingest.events import batch_event, item_event
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ingest.verification import PAUSE
from webhook_inbox.providers import load

NAMED: Final = {"event_id": {"header": "X-Event-Id"}, "event_type": {"json": "type"}}
SOURCES: Final = {
    "tokens": SourceSpec("tokens", "jwt", "tokens", settings=dict(tokens.SETTINGS)),
    "bound": SourceSpec("bound", "jwt", "tokens", settings={**tokens.SETTINGS, "body_claim": "bh"}),
    "partners": SourceSpec(
        "partners", "jwt", "none", settings={**tokens.SETTINGS, "jwks": "https://p.example/jwks"}
    ),
    "keys": SourceSpec("keys", "api-key", "keys", settings=NAMED),
    "passwords": SourceSpec("passwords", "basic", "passwords", settings=NAMED),
}
KEYS: Final = {
    "tokens": secret(planner=pem(private("planner")), buyer=pem(private("buyer"))),
    "keys": secret(planner="planner-key", buyer="buyer-key"),
    "passwords": secret(planner="p:planner-key", buyer="b:buyer-key"),
}
BODY: Final = b'{"type":"task.completed"}'


class Agents(World):
    """An inbox whose sources are called by agents."""

    def __init__(self) -> None:
        handlers = {f"{name}.act": handler(f"{name}.act", source=name) for name in SOURCES}
        super().__init__(replace(MANIFEST, sources=dict(SOURCES), handlers=handlers))
        self.seen: list[str] = []
        for name, value in KEYS.items():
            self.vault.rotate(name, value)
        for name in handlers:
            self.behaviours[name] = self._see

    def _see(self, event: Event, context: Context) -> None:
        self.seen.append(event.agent)

    def call(
        self, source: str, credential: str, event_id: str = "evt-1", body: bytes = BODY
    ) -> Receipt:
        """Lets an agent send an event."""
        header = "x-api-key" if source == "keys" else "authorization"
        headers = {header: credential, "x-event-id": event_id, "content-type": "application/json"}
        receipt = self.ingest.receive(
            Delivery(source, "POST", f"/webhooks/{source}", "", headers, body, self.now)
        )
        self.clock.advance(seconds=0.001)
        return receipt


@pytest.fixture
def inbox() -> Agents:
    return Agents()


def credential_of(inbox: World, agent: str, source: str, **claims: object) -> str:
    """Returns what an agent sends now."""
    if source == "keys":
        return f"{agent}-key"
    if source == "passwords":
        provider = load(SOURCES["passwords"])
        assert provider.tokens is not None
        return provider.tokens(secret(**{agent: json.loads(KEYS["passwords"])[agent]}))[0]
    now = int(inbox.now.timestamp())
    return f"Bearer {token(private(agent), iat=now, exp=now + 300, **claims)}"


every_source = pytest.mark.parametrize("source", ["tokens", "keys", "passwords"])


@every_source
def test_who_sent_an_event_is_kept_with_it_and_told_to_its_handler(
    inbox: Agents, source: str
) -> None:
    for number, agent in enumerate(("planner", "buyer")):
        sent = inbox.call(source, credential_of(inbox, agent, source), f"evt-{number}")
        assert sent.outcome is IngestOutcome.ACCEPTED
        row = inbox.event_row(f"evt-{number}", source)
        assert row is not None
        assert row["agent"] == agent
    inbox.run_until_quiet()

    assert inbox.seen == ["planner", "buyer"]


def test_an_event_of_a_source_without_agents_names_no_agent(inbox: Agents) -> None:
    inbox.vault.rotate("keys", "one-key-for-all")
    inbox.call("keys", "one-key-for-all")
    inbox.run_until_quiet()

    assert inbox.seen == [""]
    assert "agent" not in (inbox.event_row("evt-1", "keys") or {})


@every_source
def test_no_credential_is_kept_nor_a_plain_hash_of_one(inbox: Agents, source: str) -> None:
    credential = credential_of(inbox, "planner", source)
    shown = repr(inbox.call(source, credential))
    shown += repr(inbox.call(source, "Bearer of-somebody", "evt-2"))
    kept = repr(list(inbox.table))
    row = inbox.event_row("evt-1", source)

    for hidden in (credential, credential.split(" ")[-1], "planner-key", "of-somebody"):
        assert hidden not in kept + shown
    assert row is not None
    assert "signature_hash" not in row


@every_source
def test_another_agents_credential_under_a_known_id_changes_nothing(
    inbox: Agents, source: str
) -> None:
    inbox.call(source, credential_of(inbox, "planner", source))
    before = inbox.event_row("evt-1", source)
    same = inbox.call(source, credential_of(inbox, "buyer", source))
    other = inbox.call(source, credential_of(inbox, "buyer", source), body=b'{"type":"x"}')

    assert (same.outcome, other.outcome) == (IngestOutcome.DUPLICATE, IngestOutcome.CONFLICT)
    assert inbox.event_row("evt-1", source) == before


def test_an_item_of_a_batch_is_of_who_sent_the_batch(inbox: Agents) -> None:
    provider = load(SOURCES["keys"])
    came = Delivery("keys", "POST", "/webhooks/keys", "", {"x-event-id": "b"}, BODY, inbox.now)
    batch = batch_event(came, provider, Verified(0, "", came.body, agent="planner"))

    item = item_event(came, provider, Identity("i-1", "t"), (), batch=batch)

    assert (batch.agent, item.agent) == ("planner", "planner")


# -- a captured delivery (G6)


@every_source
def test_a_captured_body_under_a_fresh_id_is_not_run(inbox: Agents, source: str) -> None:
    captured = credential_of(inbox, "planner", source)
    assert inbox.call(source, captured).outcome is IngestOutcome.ACCEPTED

    assert inbox.call(source, captured, "evt-2").outcome is IngestOutcome.HELD
    assert inbox.call(source, captured, "evt-1").outcome is IngestOutcome.DUPLICATE
    inbox.run_until_quiet()
    assert len(inbox.seen) == 1


@every_source
def test_what_two_agents_say_alike_are_two_events(inbox: Agents, source: str) -> None:
    inbox.call(source, credential_of(inbox, "planner", source))

    again = inbox.call(source, credential_of(inbox, "buyer", source), "evt-2")
    assert again.outcome is IngestOutcome.ACCEPTED


def test_of_tokens_that_are_of_one_body_it_is_the_token_that_is_known_again(inbox: Agents) -> None:
    bound = {"bh": sha256(BODY).hexdigest()}
    first, second = (
        credential_of(inbox, "planner", "bound", jti=jti, **bound) for jti in ("one", "two")
    )
    assert inbox.call("bound", first).outcome is IngestOutcome.ACCEPTED

    assert inbox.call("bound", first, "evt-2").outcome is IngestOutcome.HELD
    assert inbox.call("bound", second, "evt-3").outcome is IngestOutcome.ACCEPTED
    assert inbox.call("bound", second, "evt-4", b"{}").outcome is IngestOutcome.REJECTED


# -- refusals


@pytest.mark.parametrize(
    ("claims", "status", "reason"),
    [
        ({"aud": "elsewhere"}, 401, "invalid-signature"),
        ({"iss": "elsewhere"}, 401, "invalid-signature"),
        ({"exp": 1}, 400, "stale"),
        ({"nbf": 99_999_999_999}, 400, "future"),
    ],
)
def test_a_token_that_is_not_good_is_refused_for_what_it_is(
    inbox: Agents, claims: dict[str, Any], status: int, reason: str
) -> None:
    now = int(inbox.now.timestamp())
    made = token(private("planner"), **{"iat": now, "exp": now + 300, **claims})
    receipt = inbox.call("tokens", f"Bearer {made}")

    assert (receipt.outcome, receipt.status, receipt.reason) == (
        IngestOutcome.REJECTED,
        status,
        reason,
    )
    assert inbox.rows("event#") == []


@every_source
def test_without_a_secret_the_provider_is_asked_to_come_again(inbox: Agents, source: str) -> None:
    inbox.vault.replace(source, "{}")
    receipt = inbox.call(source, credential_of(inbox, "planner", source))

    assert (receipt.outcome, receipt.status) == (IngestOutcome.NO_SECRET, 503)
    assert f"webhookctl secrets set {source}" in receipt.detail


def test_a_new_agents_key_counts_as_soon_as_it_is_set(inbox: Agents) -> None:
    newcomer = private("newcomer")
    now = int(inbox.now.timestamp())
    sent = f"Bearer {token(newcomer, iat=now, exp=now + 300)}"
    assert inbox.call("tokens", sent).reason == "invalid-signature"
    held = {**json.loads(KEYS["tokens"]), "newcomer": pem(newcomer)}
    inbox.vault.rotate("tokens", json.dumps(held))
    inbox.clock.advance(seconds=11)

    assert inbox.call("tokens", sent).outcome is IngestOutcome.ACCEPTED
    row = inbox.event_row("evt-1", "tokens")
    assert row is not None
    assert (row["agent"], "verified_with" in row) == ("newcomer", False)


# -- keys that the issuer publishes


class Issuer:
    """Publishes keys, and counts who asks."""

    def __init__(self, *agents: str) -> None:
        self.agents = agents
        self.asked: list[str] = []

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port `Fetcher`."""
        self.asked.append(wanted.url)
        keys = [tokens.jwk(private(agent), kid=f"key-of-{agent}") for agent in self.agents]
        return json.dumps({"keys": keys}).encode()


def partnered(inbox: Agents, issuer: Issuer) -> None:
    inbox.ingest = Ingest(
        inbox.manifest,
        replace(inbox.ports, secret_store=MemorySecrets({}), fetcher=issuer),
        providers=load,
    )


def test_of_an_issuers_key_the_claim_is_kept_as_the_agent(inbox: Agents) -> None:
    issuer = Issuer("issuer")
    partnered(inbox, issuer)
    now = int(inbox.now.timestamp())
    for number in range(3):
        head = {"kid": "key-of-issuer"}
        made = token(private("issuer"), head=head, iat=now, exp=now + 300, sub=f"a-{number}")
        sent = inbox.call("partners", f"Bearer {made}", f"evt-{number}", b'{"n": %d}' % number)
        assert sent.outcome is IngestOutcome.ACCEPTED
        row = inbox.event_row(f"evt-{number}", "partners")
        assert row is not None
        assert row["agent"] == f"a-{number}"

    assert issuer.asked == ["https://p.example/jwks"]


def test_a_key_that_the_issuer_has_made_since_is_fetched(inbox: Agents) -> None:
    issuer = Issuer("old")
    partnered(inbox, issuer)
    now = int(inbox.now.timestamp())
    made = token(private("new"), head={"kid": "key-of-new"}, iat=now, exp=now + 300)
    assert inbox.call("partners", f"Bearer {made}").reason == "invalid-signature"
    issuer.agents = ("old", "new")
    inbox.clock.advance(seconds=PAUSE.total_seconds())

    assert inbox.call("partners", f"Bearer {made}").outcome is IngestOutcome.ACCEPTED


def test_a_flood_of_junk_asks_the_issuer_for_nothing(inbox: Agents) -> None:
    issuer = Issuer("issuer")
    partnered(inbox, issuer)
    for junk in ("", "Bearer x", "Bearer a.b.c", "Basic eA=="):
        assert inbox.call("partners", junk).outcome is IngestOutcome.REJECTED

    assert issuer.asked == []
