"""Only Graph: the handshake and the tokens; its vectors name the accepted issuers."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.cases import recorded, vectors_of
from tests.unit.providers.deliveries import delivery, provider_of, verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified

PROVIDER = provider_of("microsoft-graph", {})
RICH = next(vector for vector in vectors_of("microsoft-graph") if "jwk" in vector)


def posted(*states: object) -> Delivery:
    value = [{"id": str(n), "clientState": state} for n, state in enumerate(states)]
    return delivery({}, json.dumps({"value": value}).encode())


def named(**notification: Any) -> tuple[str, str]:
    identity = PROVIDER.identify(delivery({}, json.dumps(notification).encode()))
    return identity.event_id, identity.type


def test_a_validation_token_is_answered_decoded_and_as_text() -> None:
    assert PROVIDER.greet is not None
    query = "validationToken=Validation%3a+Testing+client+%3Cb%3E"

    answer = PROVIDER.greet(replace(delivery({}, b""), query=query), ())

    assert answer is not None
    assert (answer.status, answer.body) == (200, b"Validation: Testing client <b>")
    assert answer.content_type.startswith("text/plain")
    assert answer.headers == {"x-content-type-options": "nosniff"}


def test_subscriptions_made_before_and_after_a_rotation_share_a_request() -> None:
    both = verdict(PROVIDER, posted("new", "old"), ("new", "old"))

    assert isinstance(both, Verified)
    assert both.secret == 1
    assert verdict(PROVIDER, posted("new", "older"), ("new", "old")) is Reason.INVALID_SIGNATURE


def test_a_notification_is_named_by_its_id_its_change_and_its_resource() -> None:
    assert named(id="n1", changeType="created", resource="me/messages") == (
        "n1",
        "created.me/messages",
    )
    assert named(id="n1", lifecycleEvent="missed")[1] == "missed"


def test_two_changes_without_an_id_are_two_events() -> None:
    change = {"subscriptionId": "s1", "changeType": "updated", "resource": "me/messages/1"}

    first = named(**change, resourceData={"@odata.etag": "1"})
    second = named(**change, resourceData={"@odata.etag": "2"})

    assert first[1] == second[1]
    assert first[0] != second[0]


def test_keys_are_fetched_from_entra_for_rich_notifications_alone() -> None:
    rich = recorded(RICH)
    assert rich.provider.fetches is not None
    plain = replace(rich.delivery, body=posted("secretClientValue").body)

    wanted = rich.provider.fetches(rich.delivery, rich.secrets)

    assert wanted is not None
    assert wanted.url == "https://login.microsoftonline.com/common/discovery/v2.0/keys"
    assert rich.provider.fetches(plain, rich.secrets) is None
    assert isinstance(rich.verdict(plain), Verified)
    assert rich.fetched == []


def test_nothing_is_fetched_for_a_stranger() -> None:
    rich = recorded(RICH)

    assert rich.verdict(secrets=("another",)) is Reason.INVALID_SIGNATURE
    assert rich.fetched == []


def test_tenants_without_an_audience_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="audience: missing"):
        provider_of("microsoft-graph", {"tenants": ["84bd8158-6d4d-4958-8b9f-9d6445542f95"]})
