from dataclasses import replace

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import delivery
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Sample, Verified

CASE = signed("twitch")
KIND = "twitch-eventsub-message-type"
CHALLENGE = b'{"challenge":"pogchamp-kappa","subscription":{"type":"stream.online"}}'
REVOKED = b'{"subscription":{"type":"stream.online","status":"authorization_revoked"}}'


def answer(sent: Delivery) -> Answer | None:
    assert CASE.provider.handshake is not None
    return CASE.provider.handshake(sent, "s")


@pytest.mark.parametrize("kind", ["webhook_callback_verification", "notification", ""])
def test_a_verification_is_answered_with_its_challenge_whatever_its_unsigned_header_says(
    kind: str,
) -> None:
    case = signed("twitch", Sample("id-1", f"{kind}.stream.online", CHALLENGE))

    assert isinstance(case.verdict(), Verified)
    found = answer(case.delivery)

    assert found is not None
    assert (found.status, found.body) == (200, b"pogchamp-kappa")
    assert found.content_type.startswith("text/plain")


def test_an_event_is_no_verification_though_its_header_says_so() -> None:
    body = b'{"challenge":"x","subscription":{"type":"stream.online"},"event":{}}'
    sent = delivery(
        {KIND: "webhook_callback_verification", "twitch-eventsub-message-id": "1"}, body
    )

    assert answer(sent) is None
    assert CASE.provider.identify(sent).type == "notification.stream.online"


def test_a_revocation_is_an_event_of_its_own_type() -> None:
    case = signed("twitch", Sample("id-1", "revocation.stream.online", REVOKED))

    assert answer(case.delivery) is None
    assert case.provider.identify(case.delivery).type == "revocation.stream.online"


def test_a_retry_tells_its_number() -> None:
    again = CASE.with_header("twitch-eventsub-message-retry", "2")

    assert CASE.provider.identify(CASE.delivery).retry == 0
    assert CASE.provider.identify(again).retry == 2


def test_neither_id_nor_body_can_borrow_from_the_time_between_them() -> None:
    headers = dict(CASE.delivery.headers)
    stamp = headers["twitch-eventsub-message-timestamp"]
    for cut in (1, 4, 10, len(stamp)):
        longer = headers | {
            "twitch-eventsub-message-id": headers["twitch-eventsub-message-id"] + stamp[:cut],
            "twitch-eventsub-message-timestamp": stamp[cut:],
        }
        assert not isinstance(CASE.verdict(replace(CASE.delivery, headers=longer)), Verified)
        moved = headers | {"twitch-eventsub-message-timestamp": stamp[:-cut]}
        body = stamp[-cut:].encode() + CASE.delivery.body
        sent = replace(CASE.delivery, headers=moved, body=body)
        assert not isinstance(CASE.verdict(sent), Verified)
