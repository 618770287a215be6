from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.providers.cases import signed
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity

CASE = signed("telegram")
SENT_AT = datetime(2026, 11, 21, 7, 59, 58, tzinfo=UTC)


def update(body: bytes) -> Delivery:
    return replace(CASE.delivery, body=body)


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (b'{"update_id":7,"message":{"date":1795247998}}', Identity("7", "message", SENT_AT)),
        (b'{"callback_query":{"id":"4"},"update_id":8}', Identity("8", "callback_query")),
        (b'{"update_id":0,"poll":{}}', Identity("0", "poll")),
        (b'{"update_id":9}', Identity("9", "unknown")),
        (b'{"update_id":9,"message":"text"}', Identity("9", "unknown")),
    ],
)
def test_an_updates_type_is_the_name_of_the_object_in_it(body: bytes, identity: Identity) -> None:
    assert CASE.provider.identify(update(body)) == identity


def test_the_answer_says_nothing_that_could_be_taken_for_a_call() -> None:
    assert CASE.provider.acknowledgement is not None
    assert CASE.provider.acknowledgement.status == 200
    assert CASE.provider.acknowledgement.body == b""


def test_the_token_is_named_as_one_so_that_it_is_never_kept_in_clear() -> None:
    assert CASE.provider.token_headers == CASE.provider.signature_headers
