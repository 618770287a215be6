"""Only monday.com: a challenge that is answered when it comes alone."""

import json

import pytest

from tests.unit.providers.deliveries import delivery, provider_of
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer


def greeted(sent: Delivery) -> Answer | None:
    greet = provider_of("monday").greet
    assert greet is not None
    return greet(sent, ())


def test_a_challenge_is_sent_back_as_json() -> None:
    answer = greeted(delivery({}, b'{"challenge":"3eZbrw1aBm2r"}'))

    assert answer is not None
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert json.loads(answer.body) == {"challenge": "3eZbrw1aBm2r"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"challenge":"x","event":{"triggerUuid":"1"}}',
        b'{"challenge":1}',
        b'{"challenge":""}',
        b'{"challenge":"\\u0000"}',
        b'["challenge"]',
        b"{}",
        b"",
    ],
)
def test_nothing_else_is_answered(body: bytes) -> None:
    assert greeted(delivery({}, body)) is None


def test_a_challenge_is_posted() -> None:
    assert greeted(delivery({}, b'{"challenge":"x"}', method="GET")) is None
