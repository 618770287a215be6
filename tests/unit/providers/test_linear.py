"""Only Linear: the time stands in the body, and is new in every retry."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, name_of
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.provider import Identity, Sample
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.providers.linear import PROVIDER

SAMPLE = Sample("9b2f2a52", "Issue.create", b'{"type":"Issue","action":"create"}')


def test_a_sample_is_stamped_when_it_is_sent() -> None:
    sent = PROVIDER.send(SAMPLE, SECRET, NOW)

    assert json.loads(sent.body)["webhookTimestamp"] == 1795248000000
    assert sent.headers["linear-event"] == "Issue"
    verified = PROVIDER.verify(delivery(sent.headers, sent.body), (SECRET,))
    assert verified.signed_at == NOW


def test_a_retry_is_the_same_event_though_it_is_stamped_anew() -> None:
    first = PROVIDER.send(SAMPLE, SECRET, NOW)
    again = PROVIDER.send(SAMPLE, SECRET, NOW + timedelta(hours=1))

    assert first.body != again.body
    assert fingerprint(first.body, PROVIDER.volatile) == fingerprint(again.body, PROVIDER.volatile)


@pytest.mark.parametrize("body", [b"", b"[]", b"no json", b"\xff"])
def test_a_sample_that_cannot_be_stamped_is_refused(body: bytes) -> None:
    with pytest.raises(ConfigurationError, match="JSON objects"):
        PROVIDER.send(replace(SAMPLE, body=body), SECRET, NOW)


def test_the_type_is_that_of_the_signed_body() -> None:
    body = b'{"type": "IssueSLA"}'
    sent = delivery({"linear-delivery": "1", "linear-event": "IssueSLA"}, body)
    assert name_of(PROVIDER, sent) == Identity("1", "IssueSLA")
    assert name_of(PROVIDER, delivery({"linear-delivery": "1"}, body)) == Identity("1", "IssueSLA")


@pytest.mark.parametrize("body", [b'{"type": "Issue"}', b'{"action": "create"}', b"{}"])
def test_a_header_that_contradicts_the_signed_type_is_refused(body: bytes) -> None:
    sent = delivery({"linear-delivery": "1", "linear-event": "Comment"}, body)
    assert name_of(PROVIDER, sent) is Reason.MALFORMED
