from datetime import UTC, datetime

import pytest

from tests.unit.providers.deliveries import name_of, provider_of, signed, verdict, with_header
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Identity, Verified

PROVIDER = provider_of("cycles")
SENT = signed("cycles")


def test_it_is_named_by_its_headers_and_timed_by_its_body() -> None:
    moment = datetime(2026, 11, 21, 7, 59, 58, tzinfo=UTC)

    assert name_of(PROVIDER, SENT) == Identity("evt_1", "budget.exhausted", moment)


def test_a_missing_id_is_rejected_and_a_missing_type_is_unknown() -> None:
    assert (
        name_of(PROVIDER, with_header(SENT, "x-cycles-event-id", None)) is Reason.MISSING_EVENT_ID
    )
    assert PROVIDER.identify(with_header(SENT, "x-cycles-event-type", None)).type == "unknown"


@pytest.mark.parametrize("prefix", ["", "sha1=", "sha256:", "SHA256="])
def test_another_prefix_is_malformed(prefix: str) -> None:
    digest = SENT.headers["x-cycles-signature"].removeprefix("sha256=")

    assert verdict(PROVIDER, with_header(SENT, "x-cycles-signature", prefix + digest)) is (
        Reason.MALFORMED
    )


def test_a_captured_body_under_a_fresh_id_has_the_same_guard() -> None:
    again = with_header(SENT, "x-cycles-event-id", "evt_2")
    assert PROVIDER.guard is not None

    for sent in (again, SENT):
        verified = verdict(PROVIDER, sent)
        assert isinstance(verified, Verified)
        assert PROVIDER.guard(verified, ()) == SENT.body
