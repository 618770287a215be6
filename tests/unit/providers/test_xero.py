"""What only Xero does: intent to receive."""

import pytest

from tests.unit.providers.deliveries import NOW, delivery
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample
from webhook_inbox.providers.xero import RECIPE

KEY = "not a real key=="
INTENT = b'{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3"}'


def intent(body: bytes = INTENT) -> Delivery:
    sample = Sample("", "", body)
    return delivery(RECIPE.sign(sample, KEY, NOW), body)


def test_the_intent_to_receive_is_answered_with_nothing() -> None:
    sent = intent()
    assert RECIPE.verify(sent, (KEY,)).secret == 0
    assert RECIPE.handshake is not None

    answer = RECIPE.handshake(sent, KEY)

    assert answer is not None
    assert (answer.status, answer.body, dict(answer.headers)) == (200, b"", {})


@pytest.mark.parametrize("body", [b'{"events":[{}]}', b"{}", b"[]", b'{"events":0}', b"x"])
def test_anything_else_is_no_handshake(body: bytes) -> None:
    assert RECIPE.handshake is not None
    assert RECIPE.handshake(intent(body), KEY) is None


@pytest.mark.parametrize(
    "reason", [Reason.INVALID_SIGNATURE, Reason.MISSING_SIGNATURE, Reason.MALFORMED]
)
def test_what_is_wrongly_signed_is_answered_with_401_and_nothing(reason: Reason) -> None:
    assert RECIPE.statuses[reason] == 401
    assert RECIPE.refusal is not None
    assert RECIPE.refusal.body == b""
