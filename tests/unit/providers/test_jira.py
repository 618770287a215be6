from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, name_of, provider_of, verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity, Sample, Verified

SAMPLE = Sample("sample-1", "jira:issue_created", b'{"webhookEvent":"jira:issue_created"}')
HOME = "https://inbox.example"


def sent_to(**settings: Any) -> Delivery:
    """Returns a Connect app's delivery, as Jira sends it to a source with these settings."""
    sent = provider_of("jira", {"proof": "connect", **settings}).send(SAMPLE, SECRET, NOW)
    return delivery(sent.headers, sent.body)


@pytest.mark.parametrize(
    ("signed_for", "configured"),
    [
        ({}, {"url": f"{HOME}/webhooks/it"}),
        ({}, {"base_url": HOME}),
        ({}, {"url": f"{HOME}/webhooks/it/", "base_url": f"{HOME}/"}),
        ({}, {"url": f"{HOME}/app/webhooks/it", "base_url": f"{HOME}/app"}),
        ({"url": f"{HOME}/app"}, {"url": f"{HOME}/app", "base_url": f"{HOME}/ap"}),
        ({"url": f"{HOME}/"}, {"base_url": f"{HOME}/webhooks/it"}),
    ],
)
def test_the_path_that_a_connect_token_names_begins_after_the_base_url(
    signed_for: dict[str, str], configured: dict[str, str]
) -> None:
    provider = provider_of("jira", {"proof": "connect", **configured})

    assert isinstance(verdict(provider, sent_to(**signed_for)), Verified)


@pytest.mark.parametrize(
    "change", [{"path": "/webhooks/other"}, {"query": "a=1"}, {"method": "PUT"}]
)
def test_a_connect_token_of_another_request_is_refused(change: dict[str, str]) -> None:
    provider = provider_of("jira", {"proof": "connect"})

    assert verdict(provider, replace(sent_to(), **change)) is Reason.INVALID_SIGNATURE  # type: ignore[arg-type]


@pytest.mark.parametrize("proof", ["signature", "connect"])
def test_an_event_is_named_by_the_header_that_retries_keep(proof: str) -> None:
    provider = provider_of("jira", {"proof": proof})
    sent = provider.send(SAMPLE, SECRET, NOW)
    headers = {**sent.headers, "x-atlassian-webhook-retry": "2"}

    found = name_of(provider, delivery(headers, sent.body))

    assert found == Identity("sample-1", "jira:issue_created", retry=2)


def test_what_a_signature_leaves_open_is_guarded() -> None:
    assert provider_of("jira").guard is not None


def test_a_base_url_that_is_no_address_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="base_url"):
        provider_of("jira", {"proof": "connect", "base_url": "/app"})
