from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.providers.deliveries import name_of, provider_of, signed, verdict, with_header
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Identity

PROVIDER = provider_of("cycles")
SENT = signed("cycles")


def test_it_is_named_and_timed_by_its_signed_body() -> None:
    moment = datetime(2026, 11, 21, 7, 59, 58, tzinfo=UTC)

    assert name_of(PROVIDER, SENT) == Identity("evt_1", "budget.exhausted", moment)


@pytest.mark.parametrize("name", ["x-cycles-event-id", "x-cycles-event-type"])
def test_a_header_that_contradicts_the_signed_body_is_refused(name: str) -> None:
    value = {"x-cycles-event-id": "evt_1", "x-cycles-event-type": "budget.exhausted"}[name]

    assert name_of(PROVIDER, with_header(SENT, name, "other")) is Reason.MALFORMED
    assert name_of(PROVIDER, with_header(SENT, name, "")) is Reason.MALFORMED
    for same in (value, None):
        assert name_of(PROVIDER, with_header(SENT, name, same)) == name_of(PROVIDER, SENT)


def test_a_missing_id_is_rejected_and_a_missing_type_is_unknown() -> None:
    assert name_of(PROVIDER, replace(SENT, body=b"{}")) is Reason.MISSING_EVENT_ID
    assert name_of(PROVIDER, replace(SENT, body=b'{"event_id":"e"')) is Reason.MALFORMED
    untyped = name_of(PROVIDER, replace(SENT, body=b'{"event_id":"e"}'))
    assert untyped == Identity("e", "unknown")


@pytest.mark.parametrize("prefix", ["", "sha1=", "sha256:", "SHA256="])
def test_another_prefix_is_malformed(prefix: str) -> None:
    digest = SENT.headers["x-cycles-signature"].removeprefix("sha256=")

    assert verdict(PROVIDER, with_header(SENT, "x-cycles-signature", prefix + digest)) is (
        Reason.MALFORMED
    )


def test_the_signed_body_has_the_id_so_nothing_is_guarded() -> None:
    assert PROVIDER.guard is None
    assert not PROVIDER.guards_ignored
