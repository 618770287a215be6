import json
from dataclasses import replace

import pytest

from tests.unit.providers.cases import sample_of, signed
from webhook_inbox.domain.provider import Answer
from webhook_inbox.ingest.fingerprint import fingerprint


@pytest.mark.parametrize("id_", [None, "notif_ping"])
def test_a_ping_is_answered_and_no_event(id_: str | None) -> None:
    case = signed("intercom")
    body = json.dumps({"type": "notification_event", "topic": "ping", "id": id_}).encode()
    assert case.provider.handshake is not None

    assert case.provider.handshake(case.signed_again(body), "") == Answer(200)
    assert case.provider.handshake(case.delivery, "") is None


def test_the_probe_of_the_url_is_answered() -> None:
    case = signed("intercom")
    assert case.provider.greet is not None

    assert case.provider.greet(replace(case.delivery, method="HEAD"), ()) == Answer(200)
    assert case.provider.greet(case.delivery, ()) is None


def test_a_retry_counts_itself_and_is_the_same_event() -> None:
    case, first = signed("intercom"), json.loads(sample_of("intercom").body)
    again = {**first, "delivery_attempts": 3, "delivered_at": 1795248300, "delivery_status": "x"}
    bodies = [json.dumps(body).encode() for body in (first, again)]

    named = [case.provider.identify(case.signed_again(body)) for body in bodies]

    assert [identity.retry for identity in named] == [0, 2]
    assert len({identity.event_id for identity in named}) == 1
    assert len({fingerprint(body, case.provider.volatile) for body in bodies}) == 1
