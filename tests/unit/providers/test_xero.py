"""Only Xero: intent to receive."""

import pytest

from tests.unit.providers.deliveries import NOW, delivery
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample
from webhook_inbox.providers.xero import PROVIDER

KEY = "not a real key=="
INTENT = b'{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3"}'


def intent(body: bytes = INTENT) -> Delivery:
    sample = Sample("", "", body)
    return delivery(PROVIDER.sign(sample, KEY, NOW), body)


def test_the_intent_to_receive_is_answered_with_nothing() -> None:
    sent = intent()
    assert PROVIDER.verify(sent, (KEY,)).secret == 0
    assert PROVIDER.handshake is not None

    answer = PROVIDER.handshake(sent, KEY)

    assert answer is not None
    assert (answer.status, answer.body, dict(answer.headers)) == (200, b"", {})


@pytest.mark.parametrize("body", [b'{"events":[{}]}', b"{}", b"[]", b'{"events":0}', b"x"])
def test_anything_else_is_no_handshake(body: bytes) -> None:
    assert PROVIDER.handshake is not None
    assert PROVIDER.handshake(intent(body), KEY) is None


@pytest.mark.parametrize(
    "reason", [Reason.INVALID_SIGNATURE, Reason.MISSING_SIGNATURE, Reason.MALFORMED]
)
def test_what_is_wrongly_signed_is_answered_with_401_and_nothing(reason: Reason) -> None:
    assert PROVIDER.statuses[reason] == 401
    assert PROVIDER.refusal is not None
    assert PROVIDER.refusal.body == b""
