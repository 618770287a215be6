import base64
import hmac
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.cases import Case, sample_of, signed
from tests.unit.providers.deliveries import name_of, provider_of
from tests.unit.support.world import SECRET, World, handler
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, TypeDoubt
from webhook_inbox.domain.provider import Identity
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt


def split(case: Case, sent: Delivery) -> list[Delivery]:
    assert case.provider.batch is not None
    return list(case.provider.batch(sent) or ())


def test_each_event_of_a_batch_has_a_name_of_its_own() -> None:
    case = signed("hubspot")

    named = [case.provider.identify(part) for part in split(case, case.delivery)]

    assert [identity.event_id for identity in named] == ["3181526809", "3181526810"]
    assert [identity.type for identity in named] == ["contact.creation", "contact.propertyChange"]
    assert [identity.retry for identity in named] == [0, 0]


def test_an_event_that_is_tried_again_is_the_same() -> None:
    case, events = signed("hubspot"), json.loads(sample_of("hubspot").body)
    again = json.dumps([{**event, "attemptNumber": 1} for event in events]).encode()

    before, after = split(case, case.delivery), split(case, replace(case.delivery, body=again))

    assert [case.provider.identify(part).retry for part in after] == [1, 1]
    for first, second in zip(before, after, strict=True):
        volatile = case.provider.volatile
        assert case.provider.identify(second).event_id == case.provider.identify(first).event_id
        assert fingerprint(second.body, volatile) == fingerprint(first.body, volatile)


CORRELATION = "x-hubspot-correlation-id"
TIME = "x-hubspot-request-timestamp"
DEAL = b'{"portalId":62515,"objectType":"DEAL","objectTypeId":"0-3","objectId":7}'


def sent_by_workflow(body: bytes, **headers: str | None) -> Identity | Reason:
    """Returns the name of what the action "Send a webhook" posts."""
    case = signed("hubspot")
    named = {CORRELATION: "c-1", **{k.replace("_", "-"): v for k, v in headers.items()}}
    kept = {k: v for k, v in {**case.delivery.headers, **named}.items() if v is not None}
    sent = replace(case.delivery, headers=kept, body=body)
    assert case.provider.batch is not None
    assert case.provider.batch(sent) is None
    return name_of(case.provider, sent)


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (DEAL, "workflow.DEAL"),
        (b'{"vid":251,"portal-id":62515,"is-contact":true}', "workflow.CONTACT"),
        (b'{"firstname":"Ann"}', "workflow"),
        (b'{"eventId":"chosen by the user"}', "workflow"),
        (b"{}", "workflow"),
    ],
)
def test_the_object_of_a_workflow_is_one_event(body: bytes, type_: str) -> None:
    assert sent_by_workflow(body) == Identity("c-1", type_)


def test_without_a_correlation_id_it_is_named_by_its_time_and_content() -> None:
    first, second, later = (
        sent_by_workflow(body, x_hubspot_correlation_id=None, x_hubspot_request_timestamp=time)
        for body, time in ((DEAL, "1"), (b"{}", "1"), (DEAL, "2"))
    )
    assert isinstance(first, Identity)
    assert isinstance(second, Identity)
    assert isinstance(later, Identity)
    assert len({first.event_id, second.event_id, later.event_id}) == 3


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[1]", b"42", b'"text"', b"null", b"\xff"])
def test_any_other_body_is_one_event_whose_type_cannot_be_read(body: bytes) -> None:
    """HubSpot repeats no delivery that was answered with 4xx."""
    assert sent_by_workflow(body) == Identity("c-1", "unknown", doubt=TypeDoubt.UNREADABLE)


def test_the_correlation_id_names_a_delivery_and_no_item_of_a_batch() -> None:
    case = signed("hubspot")
    headers = {**case.delivery.headers, CORRELATION: "c-1"}
    for part in split(case, replace(case.delivery, headers=headers)):
        assert CORRELATION not in part.headers


WORKFLOW = SourceSpec(
    "hubspot", "hubspot", "acme", settings={"url": "https://inbox.example/webhooks/hubspot"}
)


def enrol(world: World, correlation: str, body: bytes = DEAL, query: str = "") -> Receipt:
    """Delivers what a workflow posts, signed by v3 at this moment."""
    stamp = str(int(world.now.timestamp() * 1000))
    url = "https://inbox.example/webhooks/hubspot" + (f"?{query}" if query else "")
    content = b"POST" + url.encode() + body + stamp.encode()
    mac = hmac.new(SECRET.encode(), content, "sha256").digest()
    headers = {
        "content-type": "application/json",
        CORRELATION: correlation,
        TIME: stamp,
        "x-hubspot-signature-v3": base64.b64encode(mac).decode(),
    }
    parts = ("hubspot", "POST", "/webhooks/hubspot", query, headers, body, world.now)
    return world.ingest.receive(Delivery(*parts, request_id=f"r{world.now}{correlation}"))


@pytest.fixture
def world() -> World:
    specs = {"hubspot.note": handler("hubspot.note", source="hubspot")}
    return World(Manifest("test", "1", {"hubspot": WORKFLOW}, specs))


def test_a_retry_of_a_workflow_is_a_duplicate_though_it_is_signed_anew(world: World) -> None:
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    world.clock.advance(seconds=60)
    assert enrol(world, "c-1").outcome is IngestOutcome.DUPLICATE


def test_an_object_that_is_enrolled_twice_is_held_and_not_dropped(world: World) -> None:
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    world.clock.advance(minutes=60)
    assert enrol(world, "c-2").outcome is IngestOutcome.HELD
    assert world.overview("c-2", "hubspot").event.identical_to == "c-1"
    world.run_until_quiet()
    assert world.handled == [("hubspot.note", "c-1", 1)]


def test_two_workflows_with_a_query_each_are_two_events(world: World) -> None:
    assert enrol(world, "c-1", query="workflow=a").outcome is IngestOutcome.ACCEPTED
    assert enrol(world, "c-2", query="workflow=b").outcome is IngestOutcome.ACCEPTED


def test_a_changed_object_under_a_known_id_is_a_conflict(world: World) -> None:
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    assert enrol(world, "c-1", b'{"objectType":"DEAL"}').outcome is IngestOutcome.CONFLICT


def test_a_batch_needs_no_guard_since_its_events_have_ids(world: World) -> None:
    events = json.dumps([{"eventId": 1, "subscriptionType": "contact.creation"}]).encode()
    assert enrol(world, "c-1", events).outcome is IngestOutcome.ACCEPTED
    assert world.rows("guard#") == []
    assert enrol(world, "c-2", events).outcome is IngestOutcome.DUPLICATE


def test_a_body_that_is_neither_list_nor_object_is_stored_and_held(world: World) -> None:
    assert enrol(world, "c-1", b'"text"').outcome is IngestOutcome.UNREADABLE
    assert world.body("c-1", "hubspot") == b'"text"'


def test_an_event_without_an_id_is_refused() -> None:
    case = signed("hubspot")

    part = split(case, replace(case.delivery, body=b'[{"subscriptionType":"x"}]'))[0]

    assert name_of(case.provider, part) is Reason.MISSING_EVENT_ID


@pytest.mark.parametrize("settings", [{"version": "v4"}, {"url": "inbox.example"}])
def test_another_version_or_no_address_is_an_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        provider_of("hubspot", settings)
