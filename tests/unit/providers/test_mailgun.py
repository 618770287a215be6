import json
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest

from tests.unit.providers.cases import sample_of, signed
from tests.unit.providers.deliveries import NOW, OTHER
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity, Verified

CASE = signed("mailgun")
SENT = json.loads(CASE.delivery.body)
GUARD = CASE.provider.guard
assert GUARD is not None


def with_body(document: object) -> Delivery:
    return replace(CASE.delivery, body=json.dumps(document).encode())


def guarded(delivery: Delivery) -> bytes | None:
    assert GUARD is not None
    verified = CASE.verdict(delivery)
    assert isinstance(verified, Verified)
    return GUARD(verified, ())


def test_another_event_under_a_captured_signature_is_verified_but_guarded() -> None:
    altered = with_body({**SENT, "event-data": {"id": "another", "event": "failed"}})

    assert isinstance(CASE.verdict(altered), Verified)
    assert CASE.provider.identify(altered).event_id == "another"
    assert guarded(altered) == guarded(CASE.delivery)


def test_another_token_is_another_content() -> None:
    other = signed("mailgun", replace(sample_of("mailgun"), event_id="another"))

    assert json.loads(other.delivery.body)["event-data"] == SENT["event-data"]
    assert guarded(other.delivery) != guarded(CASE.delivery)


def test_the_parents_key_verifies_a_subaccounts_event() -> None:
    """The subaccount signs `signature`, its parent `parent-signature`."""
    parent = SENT["signature"]["signature"]
    claim = {**SENT["signature"], "signature": "0" * 64, "parent-signature": parent}
    both = with_body({**SENT, "signature": claim})

    assert isinstance(CASE.verdict(both), Verified)
    assert CASE.verdict(both, secrets=(OTHER,)) is Reason.INVALID_SIGNATURE


def test_a_forms_token_is_its_id() -> None:
    form = urlencode({**SENT["signature"], "event": "bounced"}).encode()
    sent = replace(CASE.delivery, body=form)

    assert isinstance(CASE.verdict(sent), Verified)
    assert CASE.provider.identify(sent) == Identity(SENT["signature"]["token"], "bounced")


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (1795247998.25, datetime(2026, 11, 21, 7, 59, 58, 250_000, UTC)),
        (1795247998, datetime(2026, 11, 21, 7, 59, 58, tzinfo=UTC)),
        (float("inf"), None),
        (float("nan"), None),
        (-1.5, None),
        (None, None),
    ],
)
def test_the_time_of_the_event_has_a_fraction(stamp: float, expected: datetime | None) -> None:
    event = with_body({**SENT, "event-data": {**SENT["event-data"], "timestamp": stamp}})

    assert CASE.provider.identify(replace(event, verified=True)).occurred_at == expected


def test_the_signed_time_is_told() -> None:
    verdict = CASE.verdict()

    assert isinstance(verdict, Verified)
    assert verdict.signed_at == NOW
