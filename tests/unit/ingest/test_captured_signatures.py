"""A captured signature that fits several bodies accepts no other content (G6).

Mailgun signs a time and a token, PayPal a CRC-32 of the body. Twilio, Plivo and declared sources
with `{form}` sign names and values without separators, so the border between them can be moved.
The attacker of these tests captured one valid delivery, and has no secret.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from zlib import crc32

import pytest

from tests.unit.providers.cases import NAMES, Case, example, provider_of, signed
from tests.unit.providers.deliveries import NOW, SECRET
from tests.unit.support.crc import with_crc
from tests.unit.support.world import ACME, GITHUB, MANIFEST, World, handler, with_source
from webhook_inbox import providers
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

DAY = timedelta(days=1)


class Captured(World):
    """A source that stores payments or failures only, and an attacker with one delivery of it.

    Attributes:
        captured: the delivery that the attacker has; its type is not stored.
        forged: a delivery of the attacker's, of a type that is stored, under another id.
    """

    def __init__(
        self,
        case: Case,
        forged: bytes,
        *,
        types: tuple[str, ...],
        settings: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        name = case.provider_name
        self.source = SourceSpec(name, name, name, types=types, settings=settings)
        super().__init__(
            replace(
                MANIFEST,
                sources={**MANIFEST.sources, name: self.source},
                handlers={"pay": handler("pay", source=name)},
            )
        )
        self.case = case
        self.clock.advance(seconds=(case.delivery.received_at - self.now).total_seconds())
        for secret in case.secrets:
            self.vault.rotate(name, secret)
        self.deploy(self.manifest)
        self.captured = replace(case.delivery, source=name)
        named = {**case.delivery.headers, **(headers or {})}
        self.forged = replace(self.captured, body=forged, headers=named)

    def deploy(self, manifest: Manifest) -> None:
        super().deploy(manifest)
        if hasattr(self, "case"):
            self.ingest = Ingest(
                manifest, replace(self.ports, fetcher=self.case), providers=providers.load
            )

    def arrives(self, delivery: Delivery, later: timedelta = timedelta(0)) -> Receipt:
        """Delivers, so much later."""
        self.clock.advance(seconds=later.total_seconds() + 0.001)
        return self.ingest.receive(replace(delivery, received_at=self.now))

    def nothing_ran(self) -> bool:
        """Returns True if no event was stored and no handler was called."""
        self.work()
        return not self.handled and not self.rows("event#")


def mailgun(types: tuple[str, ...] = ("failed",)) -> Captured:
    sample = Sample("evt-opened", "opened", b'{"id": "evt-opened", "event": "opened"}')
    case = signed("mailgun", sample)
    document = json.loads(case.delivery.body)
    document["event-data"] = {"id": "evt-forged", "event": "failed", "recipient": "ann@example"}
    return Captured(case, json.dumps(document).encode(), types=types, settings={})


def paypal(types: tuple[str, ...] = ("PAYMENT.*",)) -> Captured:
    body = b'{"id": "WH-1", "event_type": "CUSTOMER.DISPUTE.CREATED"}'
    case = signed("paypal", Sample("WH-1", "CUSTOMER.DISPUTE.CREATED", body))
    start = b'{"id": "WH-forged", "event_type": "PAYMENT.CAPTURE.COMPLETED", "note": "'
    forged = with_crc(start, b'"}', crc32(body))
    settings = {"webhook_id": "4JH86294D6297924G"}
    return Captured(case, forged, types=types, settings=settings)


def twilio(types: tuple[str, ...] = ("request",)) -> Captured:
    """Its fields have a status, or none if its border is moved; the id is an unsigned header."""
    body = b"Body=hi&MessageSid=SM1&MessageStatus=sent&SmsStatus=sent"
    forged = b"Body=hi&MessageSid=SM1&MessageStatussent=&SmsStatussent="
    settings = {"url": "https://inbox.example/webhooks/twilio"}
    headers = {"i-twilio-idempotency-token": "forged"}
    case = signed("twilio", Sample("captured", "sent", body))
    return Captured(case, forged, types=types, settings=settings, headers=headers)


def plivo(types: tuple[str, ...] = ("request",)) -> Captured:
    body, forged = b"MessageUUID=u1&Status=sent", b"MessageUUID=u1&Statussent="
    settings = {"url": "https://inbox.example/webhooks/plivo"}
    case = signed("plivo", Sample("captured", "sent", body))
    return Captured(case, forged, types=types, settings=settings)


FORM: Final = {
    "signature": {"header": "X-Sig", "signs": "{form}"},
    "event_id": {"form": "id"},
    "event_type": {"form": "kind"},
}


def declared_form(types: tuple[str, ...] = ("paid",)) -> Captured:
    provider = _declared(FORM)
    body, forged = b"id=1&kind=sent&note=kindpaid", b"id=1kindsentnote&kind=paid"
    sent = provider.send(Sample("1", "sent", body), SECRET, NOW)
    delivery = Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW)
    case = Case("hmac", provider, delivery, (SECRET,))
    return Captured(case, forged, types=types, settings=FORM)


every = pytest.mark.parametrize("made", [mailgun, paypal, twilio, plivo, declared_form])


@every
def test_the_forged_delivery_verifies(made: Any) -> None:
    """The exploit is one: without the guard it would be accepted."""
    world = made()
    world.arrives(world.captured)
    world.table.delete(Key(world.rows("guard#")[0]["pk"], "guard"))
    assert world.arrives(world.forged).outcome is IngestOutcome.ACCEPTED


@every
def test_a_captured_delivery_of_an_ignored_type_admits_no_forged_content(made: Any) -> None:
    world = made()
    assert world.arrives(world.captured).outcome is IngestOutcome.IGNORED
    assert world.arrives(world.forged).outcome is IngestOutcome.REPLAYED
    assert world.nothing_ran()


@every
def test_nor_does_it_a_minute_later(made: Any) -> None:
    """A guard without an event can be taken over after 30 s; this one waits for no event."""
    world = made()
    world.arrives(world.captured)
    assert world.arrives(world.forged, timedelta(minutes=1)).outcome is IngestOutcome.REPLAYED
    assert world.nothing_ran()


@every
def test_nor_under_the_id_of_the_captured_delivery(made: Any) -> None:
    world = made()
    world.arrives(world.captured)
    id_ = world.case.provider.identify(world.captured).event_id.encode()
    forged = world.forged.body.replace(b"WH-forged", id_).replace(b"evt-forged", id_)
    if made is paypal:
        start, _, _ = forged.partition(b'"note": "')
        forged = with_crc(start + b'"note": "', b'"}', crc32(world.captured.body))
    again = replace(world.forged, body=forged, headers=world.captured.headers)
    assert world.arrives(again, timedelta(minutes=1)).outcome is IngestOutcome.REPLAYED
    assert world.nothing_ran()


@every
def test_the_next_day_it_is_known_or_too_old(made: Any) -> None:
    world = made()
    world.arrives(world.captured)
    outcome = world.arrives(world.forged, DAY).outcome
    assert outcome in {IngestOutcome.REPLAYED, IngestOutcome.REJECTED}
    assert world.nothing_ran()


@pytest.mark.parametrize("days", [1, 3, 5, 36, 400])
def test_paypals_signature_outlives_no_guard(days: int) -> None:
    world = paypal()
    world.arrives(world.captured)
    receipt = world.arrives(world.forged, days * DAY)
    if days > 4:
        assert (receipt.outcome, receipt.reason) == (IngestOutcome.REJECTED, str(Reason.STALE))
    assert world.nothing_ran()


def test_paypals_last_retry_is_accepted() -> None:
    """It retries for three days."""
    world = paypal(types=("*",))
    assert world.arrives(world.captured, 3 * DAY).outcome is IngestOutcome.ACCEPTED


@every
def test_a_retry_of_an_ignored_delivery_is_ignored(made: Any) -> None:
    world = made()
    for _ in range(2):
        assert world.arrives(world.captured).outcome is IngestOutcome.IGNORED


@every
def test_a_retry_is_stored_once_its_type_is(made: Any) -> None:
    world = made()
    world.arrives(world.captured)
    source = replace(world.source, types=("*",))
    world.deploy(replace(world.manifest, sources={**world.manifest.sources, source.name: source}))
    assert world.arrives(world.captured).outcome is IngestOutcome.ACCEPTED
    assert world.arrives(world.forged).outcome is IngestOutcome.REPLAYED


@every
def test_an_ignored_delivery_whose_guard_cannot_be_written_is_sent_again(made: Any) -> None:
    world = made()
    world.plan.fail("PutItem")
    assert world.arrives(world.captured).status == 503
    assert world.arrives(world.captured).outcome is IngestOutcome.IGNORED


@every
def test_a_stored_delivery_admits_no_forged_content_either(made: Any) -> None:
    world = made(("*",))
    assert world.arrives(world.captured).outcome is IngestOutcome.ACCEPTED
    assert world.arrives(world.forged).outcome is IngestOutcome.REPLAYED


@pytest.mark.parametrize("rule", ["hold", "run"])
@every
def test_no_rule_about_identical_bodies_admits_it(made: Any, rule: str) -> None:
    world = made(("*",))
    source = replace(world.source, identical_body=rule)
    world.deploy(replace(world.manifest, sources={**world.manifest.sources, source.name: source}))
    world.arrives(world.captured)
    assert world.arrives(world.forged).outcome is IngestOutcome.REPLAYED


# The first of its type and day: its place and its count.
COUNTED = ["UpdateItem", "UpdateItem"]


def test_an_ignored_delivery_costs_a_guard_and_its_count_if_its_signature_fits_other_types() -> (
    None
):
    world = World()
    assert starred(world).outcome is IngestOutcome.IGNORED
    assert world.plan.operations() == ["GetSecretValue", "PutItem", *COUNTED]


def test_an_ignored_delivery_of_any_other_provider_costs_only_its_count() -> None:
    world = World(with_source(replace(ACME, types=("paid",))))
    assert world.deliver("1", type_="star").outcome is IngestOutcome.IGNORED
    assert world.plan.operations() == ["GetSecretValue", *COUNTED]


def starred(world: World, event_id: str = "gh-1", type_: str = "star") -> Receipt:
    """Delivers one body of GitHub, which signs neither id nor type; `star` is not stored."""
    return world.deliver(event_id, source="github", type_=type_, body=b'{"x": 1}')


@pytest.mark.parametrize("event_id", ["gh-1", "gh-2"])
@pytest.mark.parametrize("seconds", [0, 60])
def test_a_captured_delivery_of_an_ignored_type_is_held_under_another(
    event_id: str, seconds: int
) -> None:
    """It is a captured one, or a second event with one body; neither is lost, and none runs."""
    world = World()
    starred(world)
    world.clock.advance(seconds=seconds)
    assert starred(world, event_id, "issues").outcome is IngestOutcome.HELD
    world.work()
    assert world.handled == []
    assert world.overview(event_id, "github").event.identical_to == "gh-1"


@pytest.mark.parametrize(
    ("rule", "outcome"), [("run", IngestOutcome.ACCEPTED), ("drop", IngestOutcome.REPLAYED)]
)
def test_the_sources_rule_decides_about_it(rule: str, outcome: IngestOutcome) -> None:
    world = World(with_source(replace(GITHUB, identical_body=rule)))
    starred(world)
    assert starred(world, "gh-2", "issues").outcome is outcome


def test_a_retry_of_it_is_accepted_once_its_type_is_declared() -> None:
    world = World()
    starred(world)
    world.deploy(with_source(replace(GITHUB, types=("*",))))
    assert starred(world).outcome is IngestOutcome.ACCEPTED
    assert starred(world, "gh-2", "issues").outcome is IngestOutcome.HELD


def test_a_projection_without_a_type_is_held_under_another_operation() -> None:
    """Sanity's type is then in a header that is not signed."""
    case = signed("sanity", Sample("captured", "update", b'{"_id": "post-1"}'))
    case = replace(case, delivery=case.with_header("sanity-operation", "update"))
    headers = {"idempotency-key": "forged", "sanity-operation": "delete"}
    body = case.delivery.body
    world = Captured(case, body, types=("delete",), settings={}, headers=headers)
    assert world.arrives(world.captured).outcome is IngestOutcome.IGNORED
    assert world.arrives(world.forged).outcome is IngestOutcome.HELD
    world.work()
    assert world.handled == []


@pytest.mark.parametrize(
    ("signs", "event_type", "ignored"),
    [
        ("{timestamp}.{body}", {"header": "X-Type"}, True),
        ("{timestamp}.{body}", {"query": "type"}, True),
        ("{timestamp}.{body}", {"json": "type"}, False),
        ("{timestamp}.{header:X-Type}.{body}", {"header": "X-Type"}, False),
        ("{timestamp}{header:X-Type}{body}", {"header": "X-Type"}, True),
    ],
)
def test_a_declared_type_is_guarded_unless_it_is_signed(
    signs: str, event_type: Mapping[str, str], ignored: bool
) -> None:
    made = _declared(
        {
            "signature": {"header": "X-Sig", "signs": signs},
            "timestamp": {"header": "X-Time"},
            "event_id": {"header": "X-Id"},
            "event_type": event_type,
        }
    )
    assert made.guard is not None
    assert made.guards_ignored is ignored


@pytest.mark.parametrize(
    ("more", "ignored"),
    [
        ({"body_claim": "bh", "event_type": {"header": "X-Type"}}, True),
        ({"body_claim": "bh", "event_type": {"json": "type"}}, False),
        ({"event_type": {"header": "X-Type"}}, False),
    ],
)
def test_so_is_the_type_beside_a_token_that_covers_the_body(
    more: Mapping[str, Any], ignored: bool
) -> None:
    settings = {**example("jwt"), "event_id": {"header": "X-Id"}, **more}
    made = providers.load(SourceSpec("it", "jwt", "it", settings=settings))
    assert made.guards_ignored is ignored


def _altered(case: Case) -> Delivery:
    """Returns the delivery with a field added to its body, under the same signature."""
    body = case.delivery.body.strip()
    if body.startswith(b"{"):
        return replace(case.delivery, body=b'{"forged": "x", ' + body[1:].lstrip())
    return replace(case.delivery, body=body + b"&forged=x")


def guarded_cases() -> list[str]:
    return [name for name in NAMES if provider_of(name).guard is not None]


@pytest.mark.parametrize("name", guarded_cases())
def test_a_signature_that_fits_several_bodies_is_guarded_for_ignored_types(name: str) -> None:
    """A changed body that still verifies must have another guard, or ignored ones are guarded."""
    case = signed(name)
    provider, altered = case.provider, _altered(case)
    assert provider.guard is not None
    verdicts = [case.verdict(each) for each in (case.delivery, altered)]
    guards = {provider.guard(verdict, ()) for verdict in verdicts if isinstance(verdict, Verified)}
    if not isinstance(verdicts[1], Verified):
        return
    assert len(guards) > 1 or provider.guards_ignored


def test_a_declared_source_that_signs_a_part_says_so() -> None:
    spec = {
        "signature": {"header": "X-Sig", "signs": "{timestamp}", "partial": True},
        "timestamp": {"header": "X-Time"},
        "event_id": {"json": "id"},
    }
    whole = {**spec, "signature": {"header": "X-Sig", "signs": "{timestamp}{body}"}}
    made = [_declared(each) for each in (spec, whole)]
    assert [each.guards_ignored for each in made] == [True, False]


def _declared(settings: Mapping[str, Any]) -> Provider:
    return providers.load(SourceSpec("it", "hmac", "it", settings=settings))
