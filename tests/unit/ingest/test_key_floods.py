"""A flood of forgeries that name keys: few requests leave, and the real key stays."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.providers.cases import Case, example, sample_of, signed
from tests.unit.providers.deliveries import NOW
from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.verification import MISSES

Forgery = Callable[[Delivery, int], Delivery]


def naming_a_certificate(sent: Delivery, number: int) -> Delivery:
    """Forges a message of SNS."""
    message = json.loads(sent.body)
    message["SigningCertURL"] = f"https://sns.eu-west-1.amazonaws.com/forged-{number}.pem"
    return replace(sent, body=json.dumps(message).encode())


def naming_a_path(sent: Delivery, number: int) -> Delivery:
    """Forges a delivery of PayPal."""
    url = f"https://api.paypal.com/v1/notifications/certs/CERT-{number}"
    return replace(sent, headers={**sent.headers, "paypal-cert-url": url})


def naming_a_kid(sent: Delivery, number: int) -> Delivery:
    """Forges a token of Plaid."""
    _, claims, signature = sent.headers["plaid-verification"].split(".")
    head = json.dumps({"alg": "ES256", "kid": f"forged-{number}"}).encode()
    token = ".".join((urlsafe_b64encode(head).decode().rstrip("="), claims, signature))
    return replace(sent, headers={**sent.headers, "plaid-verification": token})


FORGERIES = {"aws-sns": naming_a_certificate, "paypal": naming_a_path, "plaid": naming_a_kid}
of_each = pytest.mark.parametrize(("name", "forge"), FORGERIES.items())


class Internet:
    """Answers with the real key at its own address alone, until it is down."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.real: Fetch | None = None
        self.asked: list[Fetch] = []
        self.down = False

    def fetch(self, wanted: Fetch) -> bytes:
        self.asked.append(wanted)
        self.real = self.real or wanted
        if self.down or wanted != self.real:
            raise Unavailable("https", "GET", "answered 404")
        return self.case.published


class Site:
    """One source of a provider that publishes its keys."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.case = signed(name)
        self.internet = Internet(self.case)
        for secret in self.case.secrets:
            world.vault.rotate("it", secret)
        self.ingest = Ingest(
            manifest=with_source(SourceSpec("it", name, "it", settings=example(name))),
            providers=providers.load,
            table=world.table,
            lanes=world.lanes,
            blobs=world.blobs,
            secrets=SecretCache(store=world.vault, clock=world.clock),
            fetcher=self.internet,
        )

    def another(self, number: int) -> Delivery:
        """Returns a genuine delivery of another event."""
        sample = sample_of(self.name)
        body: dict[str, Any] = json.loads(sample.body)
        body |= {"id": f"evt-{number}", "item_id": f"item-{number}"}
        changed = replace(sample, event_id=f"evt-{number}", body=json.dumps(body).encode())
        return signed(self.name, changed).delivery

    def receive(self, delivery: Delivery, seconds: float = 0) -> IngestOutcome:
        moment = NOW + timedelta(seconds=seconds)
        return self.ingest.receive(replace(delivery, received_at=moment)).outcome


@of_each
def test_a_flood_causes_few_requests_and_the_real_key_is_kept(
    name: str, forge: Forgery, world: World
) -> None:
    site = Site(world, name)
    assert site.receive(site.another(1)) is IngestOutcome.ACCEPTED
    for number in range(500):
        sent = forge(site.case.delivery, number)
        assert site.receive(sent, number / 10) is IngestOutcome.REJECTED
    assert len(site.internet.asked) <= 1 + MISSES
    before = len(site.internet.asked)
    assert site.receive(site.another(2), 51) is IngestOutcome.ACCEPTED
    assert len(site.internet.asked) == before


@of_each
def test_a_flood_of_one_unknown_key_is_one_request_in_half_a_minute(
    name: str, forge: Forgery, world: World
) -> None:
    site = Site(world, name)
    site.receive(site.another(1))
    for number in range(100):
        site.receive(forge(site.case.delivery, 0), number / 10)
    assert len(site.internet.asked) == 2


@of_each
def test_a_real_key_that_is_due_is_fetched_during_a_flood(
    name: str, forge: Forgery, world: World
) -> None:
    """Forgeries do not use up the requests for a key that has verified a delivery."""
    site = Site(world, name)
    site.receive(site.another(1))
    late = timedelta(hours=1).total_seconds()
    shifted = replace(site.case.delivery, received_at=NOW + timedelta(seconds=late))
    for number in range(MISSES * 3):
        site.receive(forge(shifted, number), late)
    site.internet.asked.clear()
    site.receive(site.another(2), late)
    assert site.internet.asked == [site.internet.real]


@of_each
def test_one_sources_flood_uses_up_no_other_sources_requests(
    name: str, forge: Forgery, world: World
) -> None:
    site = Site(world, name)
    site.receive(site.another(1))
    spec = SourceSpec("it", name, "it", settings=example(name))
    both = {"it": spec, "twin": replace(spec, name="twin")}
    site.ingest._manifest = replace(site.ingest._manifest, sources=both)
    for number in range(MISSES * 3):
        site.receive(forge(site.case.delivery, number))
    site.internet.asked.clear()
    site.receive(replace(forge(site.case.delivery, 999), source="twin"))
    assert len(site.internet.asked) == 1


def test_while_the_provider_is_down_few_deliveries_wait_for_it(world: World) -> None:
    site = Site(world, "google-pubsub")
    site.internet.down = True
    for number in range(100):
        assert site.receive(site.case.delivery, number / 10) is IngestOutcome.REJECTED
    assert len(site.internet.asked) == 1


def test_a_token_that_is_invalid_in_itself_asks_for_no_key(world: World) -> None:
    for name in ("google-pubsub", "plaid"):
        site = Site(world, name)
        late = timedelta(days=1).total_seconds()
        assert site.receive(site.case.delivery, late) is IngestOutcome.REJECTED
        changed = replace(site.case.delivery, body=b"{}")
        if name == "plaid":  # whose token has the body's hash
            site.receive(changed)
        assert site.internet.asked == []
