"""WooCommerce sends an unsigned ping, and times without an offset."""

from datetime import UTC, datetime

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, name_of
from webhook_inbox.domain.provider import Identity, Sample
from webhook_inbox.providers.woocommerce import PROVIDER

FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_the_ping_is_answered_with_nothing() -> None:
    assert PROVIDER.greet is not None

    answer = PROVIDER.greet(delivery(FORM, b"webhook_id=5"), ())

    assert answer is not None
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("body", [b"", b"webhook_id=", b"webhook_id=5&a=1", b'{"webhook_id":5}'])
def test_what_says_more_or_less_is_no_ping(body: bytes) -> None:
    assert PROVIDER.greet is not None
    assert PROVIDER.greet(delivery(FORM, body), ()) is None
    assert PROVIDER.greet(delivery(FORM, b"webhook_id=5", method="GET"), ()) is None
    assert PROVIDER.greet(delivery({"x-wc-webhook-signature": "x"}, b"webhook_id=5"), ()) is None


def test_a_time_in_the_body_is_utc() -> None:
    body = b'{"id":727,"date_modified_gmt":"2023-11-14T22:13:20"}'
    named = name_of(PROVIDER, delivery(PROVIDER.sign(Sample("1", "t", body), SECRET, NOW), body))
    assert isinstance(named, Identity)
    assert named.occurred_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
