from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import OTHER
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Verified

CASE = signed("pagerduty")
HEADER = "x-pagerduty-signature"


def test_a_signature_for_each_live_secret_comes_and_any_of_them_counts() -> None:
    both = CASE.with_header(HEADER, f"v1={'0' * 64},{CASE.delivery.headers[HEADER]}")
    verified = CASE.verdict(both, secrets=(OTHER, *CASE.secrets))

    assert isinstance(verified, Verified)
    assert verified.secret == 1


def test_an_empty_body_is_malformed_even_if_it_is_signed() -> None:
    sent = CASE.signed_again(b" ")
    assert isinstance(CASE.verdict(sent), Verified)

    assert CASE.verdict(CASE.signed_again(b"")) is Reason.MALFORMED


def test_the_statuses_keep_pagerduty_from_sending_again() -> None:
    statuses = CASE.provider.statuses

    assert statuses[Reason.INVALID_SIGNATURE] == 403
    assert statuses[Reason.MISSING_SIGNATURE] == statuses[Reason.MALFORMED] == 400
