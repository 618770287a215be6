"""A signed body may have any number of values; one that is not verified may not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.cases import recorded, sample_of, signed, vectors_of
from tests.unit.providers.inbox import CaseInbox
from webhook_inbox.domain import bounded_json
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.providers.schemes.signatures.asymmetric import SIGNATURES
from webhookctl import conformance

MANY = [[], 1.5] * 150_000
# Signed as they are sent.
WHOLE = ("github", "linear", "paypal", "pusher", "shopify", "slack", "stripe", "svix")
# Signed in a member, so the member is read first.
INSIDE = ("adyen", "mailgun")


def with_more(provider_name: str, more: object) -> bytes:
    document: dict[str, Any] = json.loads(sample_of(provider_name).body)
    return json.dumps({**document, "more": more}).encode()


@pytest.mark.parametrize("provider_name", WHOLE)
def test_a_signed_body_of_many_values_is_accepted(provider_name: str) -> None:
    case = signed(provider_name)
    large = case.signed_again(with_more(provider_name, MANY))
    assert not bounded_json.is_bounded(large.body)

    assert CaseInbox(case).receive(large).outcome is IngestOutcome.ACCEPTED


@pytest.mark.parametrize("provider_name", [name for name in WHOLE if name != "paypal"])
def test_an_unsigned_body_is_not_parsed(
    provider_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = signed(provider_name)
    changed = replace(case.delivery, body=with_more(provider_name, 1))

    def refused(*_: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(json, "loads", refused)
    monkeypatch.setattr(json.JSONDecoder, "decode", refused)

    receipt = CaseInbox(case).receive(changed)
    assert (receipt.outcome, receipt.reason) == (IngestOutcome.REJECTED, Reason.INVALID_SIGNATURE)


@pytest.mark.parametrize("provider_name", INSIDE)
def test_a_body_with_its_signature_inside_has_a_bound(provider_name: str) -> None:
    case = signed(provider_name)
    typical = [{"name": f"n{n}", "text": "a text, as it is", "price": 1.5} for n in range(1_000)]

    document = json.loads(case.delivery.body)

    def verdict(more: object) -> Verified | Reason:
        body = json.dumps({**document, "more": more}).encode()
        return case.verdict(replace(case.delivery, body=body))

    assert isinstance(verdict(typical), Verified)
    assert verdict(MANY) is Reason.MALFORMED


def test_a_delivery_of_many_asymmetric_signatures_is_refused_before_they_are_verified() -> None:
    vector = next(
        each
        for each in vectors_of("standard-webhooks")
        if each["expect"] == conformance.VALID and "whpk_" in json.dumps(each)
    )
    case = recorded(vector)
    name, value = next((k, v) for k, v in case.delivery.headers.items() if "v1a," in v)
    own = value.split()[-1]
    others = [own.replace(own[10:14], f"{n:04d}") for n in range(SIGNATURES)]

    assert not isinstance(
        case.verdict(case.with_header(name, " ".join([*others[1:], own]))), Reason
    )
    with pytest.raises(Rejected, match=f"more than {SIGNATURES} signatures"):
        case.provider.verify(case.with_header(name, " ".join([*others, own])), case.secrets)
