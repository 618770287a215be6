from dataclasses import replace

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import delivery
from webhook_inbox.domain.provider import Offer
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.providers.notion import PROVIDER


def offered(body: bytes) -> Offer | None:
    assert PROVIDER.offer is not None
    return PROVIDER.offer(delivery({}, body))


def test_the_first_request_offers_the_secret_and_is_answered_with_nothing() -> None:
    offer = offered(b'{"verification_token":"secret_example"}')

    assert offer is not None
    assert offer.secret == "secret_example"
    assert (offer.answer.status, offer.answer.body) == (200, b"")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"verification_token"',
        b"{}",
        b'{"verification_token":""}',
        b'{"verification_token":7}',
        b'{"id":"1","type":"page.created","verification_token":"secret_example"}',
    ],
)
def test_nothing_else_offers_a_secret(body: bytes) -> None:
    assert offered(body) is None


def test_a_second_attempt_is_the_same_event() -> None:
    second = signed("notion").delivery
    first = replace(second, body=second.body.replace(b'_number": 2', b'_number": 1'))

    assert (PROVIDER.identify(first).retry, PROVIDER.identify(second).retry) == (0, 1)
    assert PROVIDER.identify(first).event_id == PROVIDER.identify(second).event_id
    prints = {fingerprint(sent.body, PROVIDER.volatile) for sent in (first, second)}
    assert len(prints) == 1
