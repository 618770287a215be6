"""Forgeries that name keys: few requests leave, the real key stays, and no forgery is a failure."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.providers.cases import Case, example, pair_of, sample_of, signed
from tests.unit.providers.deliveries import NOW
from tests.unit.support.world import World, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import NotPublished, Unavailable
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ingest.verification import MISSES
from webhook_inbox.providers.aws_sns import sealed

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
    """Answers with the real key at its own address alone, until it is down or has lost its keys.

    `instead` is its answer at any other address, or its error.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.real: Fetch | None = None
        self.asked: list[Fetch] = []
        self.down = False
        self.keyless = False
        self.instead: bytes | Exception = NotPublished("answered 404")

    def fetch(self, wanted: Fetch) -> bytes:
        self.asked.append(wanted)
        self.real = self.real or wanted
        if self.down:
            raise Unavailable("https", "GET", "answered 500")
        if wanted == self.real and not self.keyless:
            return self.case.published
        if isinstance(self.instead, bytes):
            return self.instead
        raise self.instead


class Site:
    """One source of a provider that publishes its keys."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.case = signed(name)
        self.internet = Internet(self.case)
        for secret in self.case.secrets:
            world.vault.rotate("it", secret)
        self.ingest = Ingest(
            with_source(SourceSpec("it", name, "it", settings=example(name))),
            replace(world.ports, fetcher=self.internet),
            providers=providers.load,
        )

    def another(self, number: int) -> Delivery:
        """Returns a genuine delivery of another event."""
        sample = sample_of(self.name)
        body: dict[str, Any] = json.loads(sample.body)
        body |= {"id": f"evt-{number}", "item_id": f"item-{number}"}
        changed = replace(sample, event_id=f"evt-{number}", body=json.dumps(body).encode())
        return signed(self.name, changed).delivery

    def receive(self, delivery: Delivery, seconds: float = 0) -> IngestOutcome:
        return self.receipt(delivery, seconds).outcome

    def receipt(self, delivery: Delivery, seconds: float = 0) -> Receipt:
        moment = NOW + timedelta(seconds=seconds)
        return self.ingest.receive(replace(delivery, received_at=moment))


@of_each
def test_a_forged_delivery_that_names_an_unknown_key_is_refused_for_good(
    name: str, forge: Forgery, world: World
) -> None:
    """Whether its server answers that there is none, or with a page that holds none."""
    site = Site(world, name)
    site.receive(site.another(1))
    keyless = (b"<html>not found</html>", b'{"error": "not found"}', b'{"keys": []}')
    for instead in (NotPublished("answered 404"), *keyless):
        site.internet.instead = instead
        for number, second in ((0, 0), (0, 10), (0, 40), (1, 40)):
            receipt = site.receipt(forge(site.case.delivery, number), second)
            assert (receipt.outcome, receipt.status) == (IngestOutcome.REJECTED, 401)
            assert receipt.reason == "unknown-key"


@of_each
def test_a_forgery_that_makes_a_request_fail_is_no_failure_of_ingest(
    name: str, forge: Forgery, world: World
) -> None:
    """A sender can name a URL that a provider's server answers with 500, or not in time."""
    site = Site(world, name)
    site.receive(site.another(1))
    site.internet.down = True
    for number in range(3):
        receipt = site.receipt(forge(site.case.delivery, number), number)
        assert (receipt.outcome, receipt.status) == (IngestOutcome.KEY_UNAVAILABLE, 503)
    assert site.receive(site.another(2), 40) is IngestOutcome.ACCEPTED


@of_each
def test_a_key_that_verified_a_delivery_is_used_for_a_day_after_its_server_lost_it(
    name: str, forge: Forgery, world: World
) -> None:
    """The answer may be an outage's, and some providers do not send again after a 401."""
    site = Site(world, name)
    site.receive(site.another(1))
    site.internet.keyless = True
    for hours, outcome in ((23, IngestOutcome.ACCEPTED), (25, IngestOutcome.REJECTED)):
        [proven] = site.ingest._keys._proven.values()
        proven.fetched_at = NOW - timedelta(hours=hours)
        assert site.receive(site.another(hours), hours * 2) is outcome


@pytest.mark.parametrize(
    "answer",
    [
        NotPublished("answered 404"),
        *(b"<html>", b"{}", b"[]", b'{"keys": []}', b'{"keys": [{"kid": "1"}]}'),
    ],
)
def test_a_fixed_key_set_without_keys_has_the_provider_send_again(
    answer: bytes | Exception, world: World
) -> None:
    """No delivery chose its URL, so the answer is an outage's or a wrong setting's."""
    site = Site(world, "google-pubsub")
    site.internet.keyless, site.internet.instead = True, answer
    for second in (0, 10):
        receipt = site.receipt(site.case.delivery, second)
        assert (receipt.outcome, receipt.status) == (IngestOutcome.KEY_UNAVAILABLE, 503)
        assert receipt.reason == "key-unavailable"
    site.internet.keyless = False
    assert site.receive(site.case.delivery, 40) is IngestOutcome.ACCEPTED


def test_a_key_that_plaid_refused_is_requested_with_the_credentials_that_replaced_them(
    world: World,
) -> None:
    """Plaid answers 400 to wrong credentials, as to an unknown key."""
    site = Site(world, "plaid")
    site.ingest._secrets.get("it")
    world.vault.replace("it", '{"client_id": "new", "secret": "also new"}')
    site.internet.real = Fetch("https://production.plaid.com/none")
    assert site.receipt(site.case.delivery).reason == "unknown-key"
    world.clock.advance(seconds=11)
    site.receive(site.case.delivery, 11)
    assert b"also new" in (site.internet.asked[-1].body or b"")


def test_a_confirmation_that_sns_refuses_is_no_failure_of_ingest(world: World) -> None:
    """A captured request, whose token has expired, may come again and again."""
    message = {
        "Type": "SubscriptionConfirmation",
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "Token": "2336412f37fb687f",
        "TopicArn": example("aws-sns")["topic_arn"],
        "Message": "You have chosen to subscribe to the topic.",
        "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
        "Timestamp": NOW.isoformat(),
        "SignatureVersion": "2",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/sample.pem",
    }
    sent = sealed(message, {"content-type": "text/plain"}, pair_of("aws-sns")[0], NOW)
    delivery = Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW)
    for error in (NotPublished("answered 400"), Unavailable("https", "GET", "TimeoutError")):
        site = Site(world, "aws-sns")
        site.internet.instead = error
        receipt = site.receipt(delivery)
        assert (receipt.outcome, receipt.status) == (IngestOutcome.UNCONFIRMED, 503)


@of_each
def test_a_flood_causes_few_requests_and_the_real_key_is_kept(
    name: str, forge: Forgery, world: World
) -> None:
    site = Site(world, name)
    assert site.receive(site.another(1)) is IngestOutcome.ACCEPTED
    for number in range(500):
        found = site.receive(forge(site.case.delivery, number), number / 10)
        assert found in {IngestOutcome.REJECTED, IngestOutcome.KEY_UNAVAILABLE}
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
        assert site.receive(site.case.delivery, number / 10) is IngestOutcome.KEY_UNAVAILABLE
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
