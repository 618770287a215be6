"""Only Linear: the time stands in the body, and is new in every retry."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.provider import Sample
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.providers.linear import PROVIDER

SAMPLE = Sample("9b2f2a52", "Issue.create", b'{"action":"create","webhookTimestamp":1}')


def test_a_sample_is_stamped_when_it_is_sent() -> None:
    sent = PROVIDER.send(SAMPLE, SECRET, NOW)

    assert json.loads(sent.body) == {"action": "create", "webhookTimestamp": 1795248000000}
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


def test_an_event_without_an_action_has_the_type_of_its_header() -> None:
    sent = delivery({"linear-delivery": "1", "linear-event": "IssueSLA"}, b"{}")

    assert PROVIDER.identify(sent).type == "IssueSLA"
