"""Only Plivo: an old signature that covers no body, and a nonce."""

from dataclasses import replace

import pytest

from tests.unit.providers.cases import sample_of
from tests.unit.providers.deliveries import NOW, SECRET, delivery, provider_of, verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Verified

URL = "https://inbox.example/webhooks/plivo"


def provider(version: str) -> Provider:
    return provider_of("plivo", {"url": URL, "version": version})


def sent_by(made: Provider) -> Delivery:
    sample = sample_of("plivo")
    return delivery(made.sign(sample, SECRET, NOW), sample.body)


def test_a_nonce_of_the_old_signature_is_good_for_one_event() -> None:
    made = provider("v2")
    sent = sent_by(made)
    changed = replace(sent, body=sent.body + b"0")

    assert guarded(made, changed) == guarded(made, sent)


def test_a_border_that_is_moved_under_the_new_signature_has_the_same_guard() -> None:
    made = provider("v3")
    sent = sent_by(made)
    moved = replace(sent, body=sent.body.replace(b"MessageUUID=", b"MessageUUI=D"))

    assert moved.body != sent.body
    assert made.identify(moved).event_id != made.identify(sent).event_id
    assert guarded(made, moved) == guarded(made, sent)


def guarded(made: Provider, sent: Delivery) -> bytes:
    verified = verdict(made, sent)
    assert isinstance(verified, Verified)
    assert made.guard is not None
    return made.guard(verified, ())


@pytest.mark.parametrize("body", [b"=", b"&", b"&&=", b"{}", b"\xff"])
def test_a_body_without_fields_is_not_let_in_beside_a_signature_of_none(body: bytes) -> None:
    made = provider("v3")
    sample = sample_of("plivo")
    empty = delivery(made.sign(replace(sample, body=b""), SECRET, NOW), b"")

    assert isinstance(verdict(made, empty), Verified)
    assert verdict(made, replace(empty, body=body)) in {
        Reason.MALFORMED,
        Reason.INVALID_SIGNATURE,
    }


def test_a_version_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='version: "v1" is not known'):
        provider("v1")
