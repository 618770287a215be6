from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.providers.schemes.tokens import StaticToken

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)
MANY = StaticToken(find=lambda delivery: delivery.body.decode().split())


def verdict(tokens: str, secrets: Sequence[str]) -> int | Reason:
    """Returns the place of the secret that the tokens are, or why they are none."""
    sent = Delivery("it", "POST", "/webhooks/it", "", {}, tokens.encode(), NOW)
    try:
        return MANY.verify(sent, secrets).secret
    except Rejected as error:
        return error.reason


@pytest.mark.parametrize(
    ("tokens", "secrets", "place"),
    [
        ("new", ("new", "old"), 0),
        ("new new", ("new", "old"), 0),
        ("old", ("new", "old"), 1),
        ("new old", ("new", "old"), 1),
        ("old new", ("new", "old"), 1),
        ("same same", ("same", "same"), 0),
        ("new", ("", "new"), 1),
    ],
)
def test_of_several_tokens_each_is_a_live_secret_and_the_oldest_one_is_told(
    tokens: str, secrets: Sequence[str], place: int
) -> None:
    assert verdict(tokens, secrets) == place


@pytest.mark.parametrize(
    ("tokens", "secrets", "reason"),
    [
        ("new forged", ("new", "old"), Reason.INVALID_SIGNATURE),
        ("forged new", ("new", "old"), Reason.INVALID_SIGNATURE),
        ("", ("new",), Reason.MISSING_SIGNATURE),
        ("new", ("", ""), Reason.NO_SECRET),
        ("new", (), Reason.NO_SECRET),
    ],
)
def test_one_token_that_is_no_live_secret_is_enough_to_refuse_all(
    tokens: str, secrets: Sequence[str], reason: Reason
) -> None:
    assert verdict(tokens, secrets) is reason
