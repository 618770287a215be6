from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.providers.deliveries import (
    NOW,
    OTHER,
    SAMPLES,
    SECRET,
    delivery,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.provider import Identity, Sample, Verified

PROVIDER = provider_of("standard-webhooks")
SENT = signed("standard-webhooks")
RIGHT = SENT.headers["webhook-signature"]
BARE = RIGHT.removeprefix("v1,")
WRONG = signed("standard-webhooks", secret=OTHER).headers["webhook-signature"]


def judged(value: str) -> Verified | Reason:
    return verdict(PROVIDER, with_header(SENT, "webhook-signature", value))


@pytest.mark.parametrize("value", [
    f"{WRONG} {RIGHT}",
    f"{RIGHT} {WRONG}",
    f"v2,{BARE} {RIGHT}",
    f"v1a,{BARE}  {RIGHT} ",
    f"v1, {RIGHT}",
])  # fmt: skip
def test_one_right_v1_entry_of_a_list_is_enough(value: str) -> None:
    assert isinstance(judged(value), Verified)


@pytest.mark.parametrize("value", [
    f"v2,{BARE}", f"v1a,{BARE}", f"V1,{BARE}", BARE, f"v1{BARE}", f"v1={BARE}", "v1,", "v1", " ",
])  # fmt: skip
def test_no_v1_entry_is_malformed(value: str) -> None:
    assert judged(value) is Reason.MALFORMED


@pytest.mark.parametrize("value", [f"v1,{BARE.rstrip('=')}", f"{RIGHT},{RIGHT}", f"{RIGHT}="])
def test_the_digest_in_another_spelling_is_refused(value: str) -> None:
    assert judged(value) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "secret",
    [SECRET, "whsec_" + SECRET, SECRET.rstrip("="), "whsec_" + SECRET.rstrip("=")],
)
def test_the_secret_is_base64_with_or_without_prefix_and_padding(secret: str) -> None:
    assert isinstance(verdict(PROVIDER, SENT, (secret,)), Verified)


@pytest.mark.parametrize("secret", ["not base64!", "whsec_", "whsec_=", "\u00e9", "a", "\ud800"])
def test_a_secret_that_is_no_base64_is_no_secret(secret: str) -> None:
    assert verdict(PROVIDER, SENT, (secret,)) is Reason.NO_SECRET
    assert PROVIDER.verify(SENT, (secret, SECRET)).secret == 1
    with pytest.raises(ConfigurationError, match="this provider; give it exactly as"):
        PROVIDER.sign(SAMPLES["standard-webhooks"], secret, NOW)


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp"])
def test_a_signed_header_that_is_missing_is_malformed(header: str) -> None:
    assert verdict(PROVIDER, with_header(SENT, header, None)) is Reason.MALFORMED
    assert verdict(PROVIDER, with_header(SENT, header, "")) is Reason.MALFORMED


def test_another_id_is_refused() -> None:
    sent = with_header(SENT, "webhook-id", "msg_2")

    assert verdict(PROVIDER, sent) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize("id_", ["msg.1", ".", "\ud800"])
def test_an_id_that_holds_the_separator_or_is_no_text_is_malformed(id_: str) -> None:
    assert verdict(PROVIDER, with_header(SENT, "webhook-id", id_)) is Reason.MALFORMED


def test_bytes_cannot_move_between_id_time_and_body() -> None:
    """Of `msg.<t>.1.{}`, all but the last part could be called the id."""
    stamp = str(int(NOW.timestamp()))
    sample = Sample("msg", "", f"{stamp}.{{}}".encode())
    sent = signed("standard-webhooks", sample=sample)

    moved = replace(with_header(sent, "webhook-id", f"msg.{stamp}"), body=b"{}")

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert verdict(PROVIDER, moved) is Reason.MALFORMED
    with pytest.raises(Rejected):
        PROVIDER.sign(replace(sample, event_id="a.b"), SECRET, NOW)


def test_svix_uses_its_own_names_for_the_same_headers() -> None:
    headers = {name.replace("webhook-", "svix-"): value for name, value in SENT.headers.items()}
    sent = delivery(headers, SENT.body)

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert name_of(PROVIDER, sent) == Identity("msg_1", "invoice.paid")
    assert verdict(PROVIDER, with_header(sent, "svix-id", "msg_2")) is Reason.INVALID_SIGNATURE


def test_what_is_named_is_what_was_signed_when_both_names_are_sent() -> None:
    sent = with_header(SENT, "svix-id", "msg_2")

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert PROVIDER.identify(sent).event_id == "msg_1"


def test_a_raw_key_is_not_the_base64_of_it() -> None:
    raw = "raw-key-of-plain-text"
    sent = signed("standard-webhooks", secret=b64encode(raw.encode()).decode())

    assert isinstance(verdict(PROVIDER, sent, (raw,)), Reason)


def test_the_time_in_the_body_is_when_it_happened() -> None:
    sent = replace(SENT, body=b'{"type":"a","timestamp":"2023-11-14T22:13:20Z"}')

    identity = PROVIDER.identify(sent)

    assert identity.occurred_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert PROVIDER.guard is None
