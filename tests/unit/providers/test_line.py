import json
from dataclasses import replace

import pytest

from tests.unit.providers.cases import signed
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Verified
from webhook_inbox.ingest.fingerprint import fingerprint

CASE = signed("line")
PROVIDER = CASE.provider
assert PROVIDER.batch is not None
assert PROVIDER.handshake is not None
SENT = json.loads(CASE.delivery.body)


def redelivered() -> Delivery:
    document = json.loads(CASE.delivery.body)
    for event in document["events"]:
        event["deliveryContext"]["isRedelivery"] = True
    return CASE.signed_again(json.dumps(document).encode())


def parts(delivery: Delivery) -> list[Delivery]:
    assert PROVIDER.batch is not None
    return list(PROVIDER.batch(delivery) or ())


def test_the_consoles_verification_is_answered_once_it_is_verified() -> None:
    assert PROVIDER.handshake is not None
    sent = CASE.signed_again(b'{"destination":"U0","events":[]}')

    assert isinstance(CASE.verdict(sent), Verified)
    assert PROVIDER.handshake(sent, CASE.secrets[0]) == Answer(200)


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"events":{}}', b'{"events":null}', b"null"])
def test_nothing_else_is_a_verification_and_no_empty_batch_passes(body: bytes) -> None:
    assert PROVIDER.handshake is not None
    sent = replace(CASE.delivery, body=body)

    assert PROVIDER.handshake(sent, "") is None
    with pytest.raises(Rejected) as raised:
        parts(sent)
    assert raised.value.reason is Reason.MALFORMED


def test_a_redelivery_is_the_same_batch_and_the_same_events() -> None:
    again = redelivered()

    assert again.body != CASE.delivery.body
    pairs = [(CASE.delivery, again), *zip(parts(CASE.delivery), parts(again), strict=True)]
    for first, second in pairs:
        assert fingerprint(first.body, PROVIDER.volatile) == fingerprint(
            second.body, PROVIDER.volatile
        )


def test_each_event_says_whether_it_comes_again() -> None:
    first = [PROVIDER.identify(part) for part in parts(CASE.delivery)]
    again = [PROVIDER.identify(part) for part in parts(redelivered())]

    assert [each.event_id for each in first] == [each.event_id for each in again]
    assert {each.retry for each in first} == {0}
    assert {each.retry for each in again} == {1}
