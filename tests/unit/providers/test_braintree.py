from dataclasses import replace
from urllib.parse import urlencode

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import delivery, name_of, provider_of, verdict
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Answer, Provider

SECRET = "integration_private_key"
CHALLENGE = "20f9f8ed05f77439fe955c977e4c8a53"
ANSWER = b"integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"
PROVIDER = provider_of("braintree", {"public_id": "integration_public_key"})


def challenged(challenge: str, provider: Provider = PROVIDER) -> Answer | None:
    if provider.greet is None:
        return None
    sent = delivery({}, b"", method="GET")
    return provider.greet(replace(sent, query=urlencode({"bt_challenge": challenge})), (SECRET,))


def test_a_challenge_is_answered_as_the_library_does() -> None:
    answer = challenged(CHALLENGE)

    assert answer is not None
    assert (answer.status, answer.body) == (200, ANSWER)
    assert answer.content_type.startswith("text/plain")


@pytest.mark.parametrize(
    "challenge",
    ["", "0" * 19, "0" * 33, CHALLENGE.upper(), CHALLENGE + "\n", CHALLENGE[:-1] + "=", "PG5vdGk"],
)
def test_nothing_but_short_hex_is_signed(challenge: str) -> None:
    assert challenged(challenge) is None


def test_without_the_public_key_no_challenge_is_answered() -> None:
    assert challenged(CHALLENGE, provider_of("braintree", {})) is None


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_answer_to_a_challenge_signs_no_payload(end: str) -> None:
    form = urlencode({"bt_signature": ANSWER.decode(), "bt_payload": CHALLENGE + end})

    sent = delivery({}, form.encode())

    assert verdict(PROVIDER, sent, (SECRET,)) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "AAA",  # no base64
        "\ud83d\ude00",
        "PG5vdGlmaWNhdGlvbi8+\n",  # a notification of no kind
    ],
)
def test_what_is_no_notification_has_no_name(payload: str) -> None:
    form = urlencode({"bt_payload": payload}, errors="surrogatepass")

    assert name_of(PROVIDER, delivery({}, form.encode())) in {
        Reason.MALFORMED,
        Reason.MISSING_EVENT_ID,
    }


def test_a_payload_has_one_name_with_its_last_newline_and_without() -> None:
    sent = signed("braintree").delivery
    stripped = replace(sent, body=sent.body.removesuffix(b"%0A"))

    assert stripped != sent
    assert PROVIDER.identify(stripped) == PROVIDER.identify(sent)
