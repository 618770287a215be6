from dataclasses import replace
from datetime import timedelta

from tests.unit.providers.cases import signed
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest.fingerprint import fingerprint

CASE = signed("paddle")


def test_five_seconds_are_the_window_to_the_millisecond() -> None:
    for way, reason in ((1, Reason.STALE), (-1, Reason.FUTURE)):
        edge = CASE.at(way * timedelta(seconds=5))
        assert isinstance(CASE.verdict(edge), Verified)
        assert CASE.verdict(CASE.at(way * timedelta(milliseconds=5001))) is reason


def test_a_replay_under_another_notification_is_the_same_event() -> None:
    body = CASE.delivery.body.replace(b'"ntf_', b'"ntf_another_')
    again = replace(CASE.delivery, body=body)

    assert body != CASE.delivery.body
    assert CASE.provider.identify(again).event_id == CASE.provider.identify(CASE.delivery).event_id
    prints = {fingerprint(each, CASE.provider.volatile) for each in (body, CASE.delivery.body)}
    assert len(prints) == 1
