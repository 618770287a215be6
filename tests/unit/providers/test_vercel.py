"""Only Vercel: a log drain that is verified by a token in the answer."""

import json

from tests.unit.providers.deliveries import SECRET, delivery
from webhook_inbox.domain.provider import Answer
from webhook_inbox.providers.vercel import PROVIDER

PARTS = json.dumps({"secret": SECRET, "verify_token": "3f9a"})


def greeted(headers: dict[str, str], secret: str) -> Answer | None:
    assert PROVIDER.greet is not None
    return PROVIDER.greet(delivery(headers, b"[]"), (secret,))


def test_an_unsigned_request_is_shown_the_token() -> None:
    assert greeted({}, PARTS) == Answer(200, headers={"x-vercel-verify": "3f9a"})


def test_without_a_token_or_with_a_signature_nothing_is_shown() -> None:
    assert greeted({}, SECRET) is None
    assert greeted({"x-vercel-signature": "00"}, PARTS) is None
