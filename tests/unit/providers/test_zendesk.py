from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.providers.cases import Case, sample_of, signed
from tests.unit.providers.deliveries import NOW
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified
from webhook_inbox.providers.zendesk import PROVIDER


def guarded(case: Case, sent: Delivery) -> bytes:
    verified = case.verdict(sent)
    assert isinstance(verified, Verified)
    assert case.provider.guard is not None
    return case.provider.guard(verified, ())


def test_a_captured_delivery_under_a_fresh_id_has_the_same_guard() -> None:
    case = signed("zendesk")
    again = case.with_header("x-zendesk-webhook-invocation-id", "another")

    assert isinstance(case.verdict(again), Verified)
    assert guarded(case, again) == guarded(case, case.delivery)


def test_a_trigger_that_says_the_same_again_is_not_taken_for_a_captured_one() -> None:
    case, sample = signed("zendesk"), sample_of("zendesk")
    sent = case.provider.send(sample, case.secrets[0], NOW + timedelta(minutes=1))
    later = replace(case.delivery, headers={"host": "inbox.example", **sent.headers})

    assert isinstance(case.verdict(later), Verified)
    assert guarded(case, later) != guarded(case, case.delivery)


def test_a_conflict_is_not_answered_with_what_zendesk_repeats() -> None:
    assert signed("zendesk").provider.conflict_status == 400


@pytest.mark.parametrize("body", [b"<ticket>1</ticket>", b"ticket=1&s=2", b"", b'{"ticket": 1}'])
def test_a_trigger_s_body_of_any_form_has_no_type_and_no_doubt(body: bytes) -> None:
    headers = {"x-zendesk-webhook-invocation-id": "inv-1"}
    sent = Delivery("it", "POST", "/webhooks/it", "", headers, body, NOW, verified=True)
    identity = PROVIDER.identify(sent)
    assert (identity.type, identity.doubt) == ("unknown", None)
