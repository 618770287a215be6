import base64
import hmac
import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tests.unit.providers.cases import Case, sample_of, signed
from tests.unit.providers.deliveries import NOW, delivery, name_of, provider_of
from tests.unit.support.world import SECRET, World, handler
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.manifest import SPLIT, SPLITTER, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, TypeDoubt
from webhook_inbox.domain.provider import Identity, Sample
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt


def split(case: Case, sent: Delivery) -> list[Delivery]:
    assert case.provider.batch is not None
    return list(case.provider.batch(sent) or ())


def test_each_event_of_a_batch_has_a_name_of_its_own() -> None:
    case = signed("hubspot")

    names = [case.provider.identify(part) for part in split(case, case.delivery)]

    assert [identity.event_id for identity in names] == ["3181526809", "3181526810"]
    assert [identity.type for identity in names] == ["contact.creation", "contact.propertyChange"]
    assert [identity.retry for identity in names] == [0, 0]


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


def workflow_id(correlation: str, body: bytes = DEAL) -> str:
    """Returns the id of what a workflow posts."""
    return f"{correlation}.{sha256(body).hexdigest()}"


def sent_by_workflow(body: bytes, **headers: str | None) -> Identity | Reason:
    """Returns the name of what the action "Send a webhook" posts."""
    case = signed("hubspot")
    given = {CORRELATION: "c-1", **{k.replace("_", "-"): v for k, v in headers.items()}}
    kept = {k: v for k, v in {**case.delivery.headers, **given}.items() if v is not None}
    sent = replace(case.delivery, headers=kept, body=body)
    assert case.provider.batch is not None
    assert case.provider.batch(sent) is None
    return name_of(case.provider, sent)


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (DEAL, "workflow.DEAL"),
        (b'{"vid":251,"portal-id":62515,"is-contact":true}', "workflow.CONTACT"),
        (b'{"firstname":"Ann"}', "workflow.custom"),
        (b'{"eventId":"chosen by the user"}', "workflow.custom"),
        (b'{"objectType":{"chosen":"by the user"}}', "workflow.custom"),
        (b'{"objectType":" "}', "workflow.custom"),
        (b'{"subscriptionType":"chosen by the user"}', "workflow.custom"),
        (b"{}", "workflow.custom"),
    ],
)
def test_the_object_of_a_workflow_is_one_event(body: bytes, type_: str) -> None:
    assert sent_by_workflow(body) == Identity(workflow_id("c-1", body), type_)


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
    unreadable = Identity(workflow_id("c-1", body), "unknown", doubt=TypeDoubt.UNREADABLE)
    assert sent_by_workflow(body) == unreadable


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_older_signature_needs_neither_a_time_nor_a_correlation_id(version: str) -> None:
    provider = provider_of("hubspot", {**WORKFLOW.settings, "version": version})
    sent = delivery(provider.sign(Sample("1", "1", DEAL), SECRET, NOW), DEAL)
    assert name_of(provider, sent) == Identity(workflow_id("workflow"), "workflow.DEAL")


def test_the_correlation_id_names_a_delivery_and_no_item_of_a_batch() -> None:
    case = signed("hubspot")
    headers = {**case.delivery.headers, CORRELATION: "c-1"}
    for part in split(case, replace(case.delivery, headers=headers)):
        assert CORRELATION not in part.headers


WORKFLOW = SourceSpec(
    "hubspot", "hubspot", "acme", settings={"url": "https://inbox.example/webhooks/hubspot"}
)


def enrol(
    world: World, correlation: str, body: bytes = DEAL, query: str = "", method: str = "POST"
) -> Receipt:
    """Delivers what a workflow sends, signed by v3 at this moment."""
    stamp = str(int(world.now.timestamp() * 1000))
    url = "https://inbox.example/webhooks/hubspot" + (f"?{query}" if query else "")
    content = method.encode() + url.encode() + body + stamp.encode()
    mac = hmac.new(SECRET.encode(), content, "sha256").digest()
    headers = {
        "content-type": "application/json",
        CORRELATION: correlation,
        TIME: stamp,
        "x-hubspot-signature-v3": base64.b64encode(mac).decode(),
    }
    parts = ("hubspot", method, "/webhooks/hubspot", query, headers, body, world.now)
    return world.ingest.receive(Delivery(*parts, request_id=f"r{world.now}{correlation}"))


@pytest.fixture
def world() -> World:
    return World(manifest_of())


def manifest_of(*types: str) -> Manifest:
    """Returns a manifest with a source that stores these types, all by default."""
    source = replace(WORKFLOW, types=types or ("*",))
    specs = {SPLIT: SPLITTER, "hubspot.note": handler("hubspot.note", source="hubspot")}
    return Manifest("test", "1", {"hubspot": source}, specs)


def test_a_retry_of_a_workflow_is_a_duplicate_though_it_is_signed_anew(world: World) -> None:
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    world.clock.advance(seconds=60)
    assert enrol(world, "c-1").outcome is IngestOutcome.DUPLICATE


def test_an_object_that_is_enrolled_twice_is_held_and_not_dropped(world: World) -> None:
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    world.clock.advance(minutes=60)
    assert enrol(world, "c-2").outcome is IngestOutcome.HELD
    assert world.overview(workflow_id("c-2"), "hubspot").event.identical_to == workflow_id("c-1")
    world.run_until_quiet()
    assert world.handled == [("hubspot.note", workflow_id("c-1"), 1)]


def test_two_workflows_with_a_query_each_are_two_events(world: World) -> None:
    assert enrol(world, "c-1", query="workflow=a").outcome is IngestOutcome.ACCEPTED
    assert enrol(world, "c-2", query="workflow=b").outcome is IngestOutcome.ACCEPTED


def test_two_objects_with_one_correlation_id_are_two_events(world: World) -> None:
    """A conflict is answered 409, which HubSpot does not repeat."""
    assert enrol(world, "c-1").outcome is IngestOutcome.ACCEPTED
    assert enrol(world, "c-1", b'{"objectType":"DEAL"}').outcome is IngestOutcome.ACCEPTED


def test_a_batch_needs_no_guard_since_its_events_have_ids(world: World) -> None:
    events = json.dumps([{"eventId": 1, "subscriptionType": "contact.creation"}]).encode()
    assert enrol(world, "c-1", events).outcome is IngestOutcome.ACCEPTED
    assert world.rows("guard#") == []
    assert enrol(world, "c-2", events).outcome is IngestOutcome.DUPLICATE


def test_a_body_that_is_neither_list_nor_object_is_stored_and_held(world: World) -> None:
    assert enrol(world, "c-1", b'"text"').outcome is IngestOutcome.UNREADABLE
    assert world.body(workflow_id("c-1", b'"text"'), "hubspot") == b'"text"'


def test_an_event_without_an_id_is_named_by_its_content_and_costs_no_other_one(
    world: World,
) -> None:
    first = b'{"eventId":1,"subscriptionType":"contact.creation"}'
    assert enrol(world, "c-1", b"[" + first + b", " + DEAL + b"]").outcome is IngestOutcome.ACCEPTED
    world.run_until_quiet()
    expected = {"1", f"sha256:{sha256(DEAL).hexdigest()}"}
    assert {event_id for _, event_id, _ in world.handled} == expected


@pytest.mark.parametrize("body", [DEAL, b'{"vid":251}', b'{"firstname":"Ann"}'])
def test_one_pattern_stores_all_that_workflows_post(body: bytes) -> None:
    assert enrol(World(manifest_of("workflow.*")), "c-1", body).outcome is IngestOutcome.ACCEPTED
    assert enrol(World(manifest_of("contact.*")), "c-1", body).outcome is IngestOutcome.IGNORED


def test_a_get_of_a_workflow_asks_for_data_and_is_no_event(world: World) -> None:
    assert enrol(world, "c-1", b"", method="GET").outcome is IngestOutcome.WRONG_METHOD


@pytest.mark.parametrize("settings", [{"version": "v4"}, {"url": "inbox.example"}])
def test_another_version_or_no_address_is_an_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        provider_of("hubspot", settings)
