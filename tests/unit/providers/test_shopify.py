from base64 import b64decode
from dataclasses import replace

import pytest

from tests.unit.providers.deliveries import (
    SAMPLES,
    delivery,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Identity, Verified

PROVIDER = provider_of("shopify")
SENT = signed("shopify")
SIGNATURE = "x-shopify-hmac-sha256"


def test_an_empty_body_is_refused_even_when_signed() -> None:
    sent = signed("shopify", sample=replace(SAMPLES["shopify"], body=b""))

    assert verdict(PROVIDER, sent) is Reason.MALFORMED


def test_base64_that_only_decodes_to_the_digest_is_refused() -> None:
    """The last character before the padding has bits that a decoder drops."""
    value = SENT.headers[SIGNATURE]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    twin = value[:-2] + alphabet[alphabet.index(value[-2]) + 1] + "="
    assert b64decode(twin) == b64decode(value)

    assert verdict(PROVIDER, with_header(SENT, SIGNATURE, twin)) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.rstrip("="), id="unpadded"),
        pytest.param(lambda text: text + "=", id="padded-twice"),
        pytest.param(lambda text: text[:4] + "\n" + text[4:], id="folded"),
        pytest.param(lambda text: b64decode(text).hex(), id="hex"),
        pytest.param(lambda text: "sha256=" + text, id="prefixed"),
    ],
)
def test_another_spelling_of_the_digest_is_refused(change: object) -> None:
    assert callable(change)
    sent = with_header(SENT, SIGNATURE, change(SENT.headers[SIGNATURE]))

    assert verdict(PROVIDER, sent) is Reason.INVALID_SIGNATURE


def test_every_refused_signature_is_answered_401() -> None:
    reasons = (Reason.MISSING_SIGNATURE, Reason.INVALID_SIGNATURE, Reason.MALFORMED)

    assert [PROVIDER.statuses[reason] for reason in reasons] == [401, 401, 401]


def test_the_newer_header_names_are_read_too() -> None:
    headers = {
        name.removeprefix("x-"): value
        for name, value in SENT.headers.items()
        if name != "x-shopify-event-id"
    }
    sent = delivery(headers, SENT.body)

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert name_of(PROVIDER, sent) == Identity("98880550-7158-delivery", "orders/create")


def test_the_event_id_comes_before_the_deliverys() -> None:
    without = with_header(SENT, "x-shopify-event-id", None)
    with_neither = with_header(without, "x-shopify-webhook-id", None)

    assert PROVIDER.identify(SENT).event_id == "98880550-7158"
    assert PROVIDER.identify(without).event_id == "98880550-7158-delivery"
    assert name_of(PROVIDER, with_neither) is Reason.MISSING_EVENT_ID


def test_its_time_is_not_signed_and_ignored() -> None:
    assert SENT.headers["x-shopify-triggered-at"]
    assert PROVIDER.identify(SENT).occurred_at is None
