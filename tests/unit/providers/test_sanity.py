from datetime import timedelta

from tests.unit.providers.cases import Case, sample_of, signed
from tests.unit.providers.deliveries import NOW, delivery
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified


def guarded(case: Case, sent: Delivery) -> bytes:
    verified = case.verdict(sent)
    assert isinstance(verified, Verified)
    assert case.provider.guard is not None
    return case.provider.guard(verified, ())


def test_a_captured_delivery_under_a_fresh_id_has_the_same_guard() -> None:
    case = signed("sanity")
    again = case.with_header("idempotency-key", "another")

    assert isinstance(case.verdict(again), Verified)
    assert guarded(case, again) == guarded(case, case.delivery)


def test_a_projection_that_comes_out_the_same_again_is_not_taken_for_a_captured_one() -> None:
    case, sample = signed("sanity"), sample_of("sanity")
    headers = case.provider.sign(sample, case.secrets[0], NOW + timedelta(minutes=1))
    later = delivery(headers, sample.body)

    assert isinstance(case.verdict(later), Verified)
    assert guarded(case, later) != guarded(case, case.delivery)
