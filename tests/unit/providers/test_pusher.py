"""Only Pusher: a key beside the signature, and batches of events without ids."""

import json
from dataclasses import replace

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import SECRET, delivery
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Verified
from webhook_inbox.providers.pusher import PROVIDER

OCCUPIED = {"name": "channel_occupied", "channel": "room"}
VACATED = {"name": "channel_vacated", "channel": "room"}


def posted(*events: object) -> Delivery:
    return delivery({}, json.dumps({"time_ms": 1700000000000, "events": list(events)}).encode())


def ids_of(sent: Delivery) -> list[str]:
    assert PROVIDER.batch is not None
    parts = PROVIDER.batch(sent)
    return [PROVIDER.identify(part).event_id for part in parts or (sent,)]


def of_app(key: str) -> str:
    return json.dumps({"key": key, "secret": SECRET})


def test_one_event_is_no_batch() -> None:
    assert PROVIDER.batch is not None
    assert PROVIDER.batch(posted(OCCUPIED)) is None


def test_an_event_of_a_batch_is_named_as_if_it_had_come_alone() -> None:
    assert PROVIDER.batch is not None
    first, second = PROVIDER.batch(posted(OCCUPIED, VACATED)) or ()

    assert json.loads(second.body) == {"time_ms": 1700000000000, "events": [VACATED]}
    assert PROVIDER.identify(first).type == "channel_occupied"
    assert PROVIDER.identify(first).occurred_at == PROVIDER.identify(posted(VACATED)).occurred_at


def test_events_of_a_batch_that_are_alike_stay_apart_and_keep_their_names() -> None:
    sent = posted(OCCUPIED, VACATED, OCCUPIED, OCCUPIED)

    assert len(set(ids_of(sent))) == 4
    assert ids_of(sent) == ids_of(sent)


def test_the_same_events_at_another_time_are_others() -> None:
    again = replace(posted(OCCUPIED), body=posted(OCCUPIED).body.replace(b"1700", b"1701"))

    assert ids_of(again) != ids_of(posted(OCCUPIED))


def test_a_secret_counts_for_its_own_apps_key_alone() -> None:
    case = signed("pusher")
    sent = case.with_header("x-pusher-key", "ours")

    assert case.verdict(sent, (of_app("theirs"),)) is Reason.INVALID_SIGNATURE
    verified = case.verdict(sent, (of_app("theirs"), of_app("ours")))
    assert isinstance(verified, Verified)
    assert verified.secret == 1


def test_who_does_not_name_a_key_is_refused() -> None:
    case = signed("pusher")

    assert case.verdict(case.with_header("x-pusher-key", None)) is Reason.MALFORMED
