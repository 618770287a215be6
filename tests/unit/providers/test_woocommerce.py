"""What only WooCommerce does: an unsigned ping, and one body under several topics."""

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


def test_one_body_may_come_under_two_topics_and_under_each_once() -> None:
    body = b'{"id":727,"date_modified_gmt":"2023-11-14T22:13:20"}'
    created, updated, again = (
        delivery(PROVIDER.sign(Sample(id_, topic, body), SECRET, NOW), body)
        for id_, topic in (("1", "order.created"), ("2", "order.updated"), ("3", "order.updated"))
    )
    assert PROVIDER.guard is not None

    guards = [
        PROVIDER.guard(PROVIDER.verify(sent, (SECRET,)), PROVIDER.identify(sent))
        for sent in (created, updated, again)
    ]

    assert guards[0] != guards[1] == guards[2]
    named = name_of(PROVIDER, created)
    assert isinstance(named, Identity)
    assert named.occurred_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
