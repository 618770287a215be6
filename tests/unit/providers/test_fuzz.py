"""Whatever comes in, the answer is a verdict or a rejection, never another exception."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.providers.deliveries import (
    NAMES,
    NOW,
    SAMPLES,
    SECRET,
    SIGNATURES,
    TIMED,
    delivery,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Answer, Identity, Verified

PROVIDERS = {name: provider_of(name) for name in NAMES}
# Lone surrogates included: they cannot be written as UTF-8.
TEXT = st.text(st.characters(codec=None), max_size=60)
HEADER_NAMES = sorted(
    {name for provider in NAMES for name in signed(provider).headers}
    | {"svix-id", "svix-timestamp", "svix-signature", "shopify-topic", "shopify-event-id"}
)
HEADERS = st.dictionaries(st.sampled_from(HEADER_NAMES), TEXT, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["id", "type", "event", "event_id", "event_time", "created", "timestamp", "action",
          "challenge"]  # fmt: skip
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6)


def as_json(document: object) -> bytes:

    return json.dumps(document).encode()


BODIES = st.binary(max_size=100) | DOCUMENTS.map(as_json)


@given(provider_name=st.sampled_from(NAMES), headers=HEADERS, body=BODIES)
@settings(max_examples=300)
def test_any_request_is_verified_or_rejected(
    provider_name: str, headers: dict[str, str], body: bytes
) -> None:
    sent = delivery(headers, body)

    assert isinstance(verdict(PROVIDERS[provider_name], sent), Reason)


@given(provider_name=st.sampled_from(NAMES), headers=HEADERS, body=BODIES)
@settings(max_examples=300)
def test_any_verified_request_is_named_or_rejected(
    provider_name: str, headers: dict[str, str], body: bytes
) -> None:
    provider, sent = PROVIDERS[provider_name], delivery(headers, body)

    named = name_of(provider, sent)
    answer = provider.handshake(sent, SECRET) if provider.handshake else None

    assert answer is None or isinstance(answer, Answer)
    if isinstance(named, Identity):
        assert named.event_id.encode()
        assert 0 < len(named.type.encode()) <= 4 * 256
        assert named.occurred_at is None or named.occurred_at.utcoffset() is not None
    else:
        assert named in {Reason.MALFORMED, Reason.MISSING_EVENT_ID}


@given(provider_name=st.sampled_from(NAMES), value=TEXT)
@settings(max_examples=200)
def test_no_other_signature_than_the_right_one_passes(provider_name: str, value: str) -> None:
    sent = with_header(signed(provider_name), SIGNATURES[provider_name], value)

    assert isinstance(verdict(PROVIDERS[provider_name], sent), Reason)


@given(provider_name=st.sampled_from(NAMES), body=st.binary(max_size=200))
@settings(max_examples=150)
def test_only_the_signed_body_passes(provider_name: str, body: bytes) -> None:
    sent = delivery(signed(provider_name).headers, body)

    passes = isinstance(verdict(PROVIDERS[provider_name], sent), Verified)

    assert passes == (body == SAMPLES[provider_name].body)


@given(provider_name=st.sampled_from(NAMES), secrets=st.lists(TEXT, max_size=3))
@settings(max_examples=150)
def test_any_text_may_stand_where_a_secret_should(provider_name: str, secrets: list[str]) -> None:
    provider, sent = PROVIDERS[provider_name], signed(provider_name)

    judged = verdict(provider, sent, (*secrets, SECRET))

    assert isinstance(judged, Verified)
    assert judged.secret == len(secrets)
    assert judged.signed_at == (NOW if provider_name in TIMED else None)
