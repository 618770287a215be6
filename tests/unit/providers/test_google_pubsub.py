"""Only Pub/Sub: Google signs, so the account is pinned; messages come in two forms."""

from datetime import UTC, datetime

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import delivery, provider_of
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest.fingerprint import fingerprint

ACCOUNT = {"service_account": "push@proj.iam.gserviceaccount.com"}


def test_the_service_account_has_to_be_configured() -> None:
    with pytest.raises(ConfigurationError, match="service_account: missing"):
        provider_of("google-pubsub", {"audience": "https://inbox.example"})


def test_nothing_is_fetched_for_a_delivery_without_a_token() -> None:
    case = signed("google-pubsub")

    assert case.verdict(case.with_header("authorization", None)) is Reason.MISSING_SIGNATURE
    assert case.verdict(case.with_header("authorization", "Basic eA==")) is Reason.MALFORMED
    assert case.fetched == []


def test_keys_are_fetched_from_google_once() -> None:
    case = signed("google-pubsub")

    assert isinstance(case.verdict(), Verified)
    assert case.fetched == ["https://www.googleapis.com/oauth2/v3/certs"]


def test_a_bare_message_is_named_by_its_headers() -> None:
    sent = delivery(
        {
            "x-goog-pubsub-message-id": "7",
            "x-goog-pubsub-subscription-name": "projects/p/subscriptions/s",
            "x-goog-pubsub-publish-time": "2023-11-14T22:13:20.5Z",
        },
        b"no json",
    )

    identity = provider_of("google-pubsub", ACCOUNT).identify(sent)

    assert (identity.event_id, identity.type) == ("7", "projects/p/subscriptions/s")
    assert identity.occurred_at == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)


def test_a_retry_is_counted_and_is_the_same_event() -> None:
    provider = provider_of("google-pubsub", ACCOUNT)
    first = b'{"message":{"messageId":"1"},"deliveryAttempt":1}'
    third = first.replace(b":1}", b":3}")

    assert provider.identify(delivery({}, first)).retry == 0
    assert provider.identify(delivery({}, third)).retry == 2
    assert fingerprint(first, provider.volatile) == fingerprint(third, provider.volatile)
