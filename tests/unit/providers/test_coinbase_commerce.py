"""Only Coinbase Commerce: the event is inside of what changes from retry to retry."""

import json
from typing import Any

from tests.unit.providers.deliveries import delivery
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.providers.coinbase_commerce import PROVIDER

EVENT = {"id": "24934862", "type": "charge:confirmed", "created_at": "2017-01-31T20:49:02Z"}


def attempt(number: int, **event: Any) -> bytes:
    outer = {"id": f"delivery-{number}", "scheduled_for": f"2017-01-31T2{number}:50:02Z"}
    return json.dumps({**outer, "attempt_number": number, "event": {**EVENT, **event}}).encode()


def test_a_retry_is_counted_and_is_the_same_event() -> None:
    first, second = (PROVIDER.identify(delivery({}, attempt(n))) for n in (1, 2))

    assert first.event_id == second.event_id == "24934862"
    assert (first.retry, second.retry) == (0, 1)
    assert fingerprint(attempt(1), PROVIDER.volatile) == fingerprint(attempt(2), PROVIDER.volatile)


def test_another_event_under_the_same_id_is_told_apart() -> None:
    other = attempt(1, type="charge:failed")

    assert fingerprint(attempt(1), PROVIDER.volatile) != fingerprint(other, PROVIDER.volatile)
