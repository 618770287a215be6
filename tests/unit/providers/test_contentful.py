"""Only Contentful: the path is signed, so it has to be known."""

from dataclasses import replace

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, provider_of, verdict
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified

SAMPLE = Sample("94516f9a", "ContentManagement.Entry.publish", b'{"sys":{"id":"a","revision":3}}')


def sent(url: str = "") -> Delivery:
    headers = provider_of("contentful", {"url": url} if url else {}).sign(SAMPLE, SECRET, NOW)
    return delivery(headers, SAMPLE.body)


def test_the_path_is_that_of_the_configured_url() -> None:
    behind = "https://hooks.example/contentful/prod"

    assert isinstance(verdict(provider_of("contentful", {"url": behind}), sent(behind)), Verified)
    assert verdict(provider_of("contentful"), sent(behind)) is Reason.INVALID_SIGNATURE
    assert isinstance(verdict(provider_of("contentful"), sent()), Verified)


@pytest.mark.parametrize("url", ["https://hooks.example", "https://hooks.example/"])
def test_a_url_without_a_path_is_the_root(url: str) -> None:
    at_root = replace(sent(url), path="/")

    assert isinstance(verdict(provider_of("contentful"), at_root), Verified)


@pytest.mark.parametrize("path", ["/\ud800", "/webhooks/it\x00", "/\u2603", ""])
def test_any_path_can_be_judged(path: str) -> None:
    strange = replace(sent(), path=path, query=path)

    assert verdict(provider_of("contentful"), strange) is Reason.INVALID_SIGNATURE


def test_without_a_key_of_its_own_an_event_is_topic_entry_and_revision() -> None:
    bare = sent()
    headers = {k: v for k, v in bare.headers.items() if k != "x-contentful-idempotency-key"}

    identity = provider_of("contentful").identify(replace(bare, headers=headers))

    assert identity.event_id == "ContentManagement.Entry.publish|a|3"


def test_every_header_that_it_signs_is_kept_for_another_verification() -> None:
    provider = provider_of("contentful")
    listed = sent().headers["x-contentful-signed-headers"].split(",")

    assert set(listed) - {"content-type"} <= provider.kept_headers | provider.signature_headers
