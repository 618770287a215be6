"""The providers' own libraries and ours agree on what is valid."""

import time
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import standardwebhooks
import stripe
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import WebhookVerificationError

from tests.unit.providers.deliveries import (
    OTHER,
    SAMPLES,
    SECRET,
    delivery,
    provider_of,
    verdict,
    with_header,
)
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)


def now() -> datetime:
    """The libraries read the clock themselves, so these deliveries are of this very second."""
    return datetime.fromtimestamp(int(time.time()), UTC)


def stripe_takes(sent: Delivery, secret: str = SECRET) -> bool:
    header: Any = sent.headers.get("stripe-signature")
    try:
        return stripe.WebhookSignature.verify_header(sent.body, header, secret, 300)
    except stripe.SignatureVerificationError:
        return False


def standard_takes(sent: Delivery, secret: str = SECRET) -> bool:
    try:
        standardwebhooks.Webhook(secret).verify(sent.body, dict(sent.headers), json_parse=False)
    # It leaks ValueError for a signature that it cannot read.
    except (WebhookVerificationError, ValueError):
        return False
    return True


def we_take(provider_name: str, sent: Delivery) -> bool:
    return isinstance(verdict(provider_of(provider_name), sent), Verified)


@pytest.mark.parametrize(("provider_name", "takes"), [
    ("stripe", stripe_takes),
    ("standard-webhooks", standard_takes),
])  # fmt: skip
def test_what_we_sign_the_library_takes(provider_name: str, takes: Any) -> None:
    sample = SAMPLES[provider_name]

    sent = delivery(provider_of(provider_name).sign(sample, SECRET, now()), sample.body, at=now())

    assert takes(sent)
    assert not takes(sent, OTHER)


@given(body=st.text(st.characters(codec="utf-8")))
@settings(max_examples=50)
def test_what_stripes_library_signs_we_take(body: str) -> None:
    header = stripe.WebhookSignature.generate_signature_header(body, SECRET, int(now().timestamp()))

    assert we_take("stripe", delivery({"Stripe-Signature": header}, body.encode(), at=now()))


@given(body=st.text(st.characters(codec="utf-8")), id_=st.text("abcdef_0123456789", min_size=1))
@settings(max_examples=50)
def test_what_the_standard_library_signs_we_take(body: str, id_: str) -> None:
    signature = standardwebhooks.Webhook(SECRET).sign(id_, now().replace(tzinfo=UTC), body)
    headers = {
        "webhook-id": id_,
        "webhook-timestamp": str(int(now().timestamp())),
        "webhook-signature": signature,
    }

    assert we_take("standard-webhooks", delivery(headers, body.encode(), at=now()))


STRIPE_HEADERS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.one_of(
            st.just("{right}"),
            st.just("t={now}"),
            st.builds("v1={}".format, HEX),
            st.builds("v0={}".format, HEX),
            st.text("tv10=,", max_size=6),
        ),
        max_size=5,
    ).map(",".join),
)


@given(template=STRIPE_HEADERS)
@settings(max_examples=150)
def test_we_take_no_stripe_header_that_stripes_library_refuses(template: str) -> None:
    sample = SAMPLES["stripe"]
    headers = provider_of("stripe").sign(sample, SECRET, now())
    right = headers["stripe-signature"].partition(",")[2]
    value = template.replace("{right}", right).replace("{now}", str(int(now().timestamp())))
    sent = with_header(delivery(headers, sample.body, at=now()), "stripe-signature", value)

    if we_take("stripe", sent):
        assert stripe_takes(sent)


@pytest.mark.parametrize("beside", ["v1", "t", "v1,v0=a"])
def test_an_entry_without_a_value_beside_a_right_signature_is_refused_by_both(beside: str) -> None:
    sample = SAMPLES["stripe"]
    headers = provider_of("stripe").sign(sample, SECRET, now())
    right = delivery(headers, sample.body, at=now())
    spoilt = with_header(right, "stripe-signature", f"{headers['stripe-signature']},{beside}")

    assert (we_take("stripe", right), stripe_takes(right)) == (True, True)
    assert (we_take("stripe", spoilt), stripe_takes(spoilt)) == (False, False)


def is_readable_by_the_library(item: str) -> bool:
    version, comma, signature = item.partition(",")
    if not comma or "," in signature:
        return False
    try:
        return version != "v1" or b64decode(signature) is not None
    except ValueError:
        return False


STANDARD_HEADERS = st.lists(
    st.one_of(
        st.sampled_from(["{right}", "v1a,{bare}", "v2,{bare}", "v1{bare}", "v1,", "V1,{bare}"]),
        st.text("v1,=abAB", max_size=8),
    ),
    max_size=4,
).map(" ".join)


@given(template=STANDARD_HEADERS)
@settings(max_examples=150)
def test_we_and_the_standard_library_agree_on_lists_of_signatures(template: str) -> None:
    sample = SAMPLES["standard-webhooks"]
    headers = provider_of("standard-webhooks").sign(sample, SECRET, now())
    right = headers["webhook-signature"]
    value = template.replace("{right}", right).replace("{bare}", right.removeprefix("v1,"))
    sent = with_header(delivery(headers, sample.body, at=now()), "webhook-signature", value)

    # The library gives up where it cannot decode a signature, also beside a right one.
    if all(map(is_readable_by_the_library, value.split(" "))):
        assert we_take("standard-webhooks", sent) == standard_takes(sent)


@pytest.mark.parametrize("seconds", [-3600, -900, 0])
def test_we_agree_with_stripes_library_on_the_past(seconds: int) -> None:
    moment = datetime.fromtimestamp(now().timestamp() + seconds, UTC)
    sample = SAMPLES["stripe"]
    signed_then = delivery(
        provider_of("stripe").sign(sample, SECRET, moment), sample.body, at=now()
    )

    assert we_take("stripe", signed_then) == stripe_takes(signed_then)


@pytest.mark.parametrize("seconds", [-3600, -900, 0, 900, 3600])
def test_we_agree_with_the_standard_library_on_past_and_future(seconds: int) -> None:
    moment = datetime.fromtimestamp(now().timestamp() + seconds, UTC)
    sample = Sample("msg_2", "invoice.paid", b"{}")
    provider = provider_of("standard-webhooks")
    sent = replace(delivery(provider.sign(sample, SECRET, moment), sample.body), received_at=now())

    assert we_take("standard-webhooks", sent) == standard_takes(sent)
