from datetime import timedelta

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import NOW, provider_of
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer

PROVIDER = provider_of("dropbox")


def asked(query: str, method: str = "GET") -> Answer | None:
    assert PROVIDER.greet is not None
    return PROVIDER.greet(Delivery("it", method, "/webhooks/it", query, {}, b"", NOW), ())


def test_a_challenge_is_echoed_as_text_that_is_never_sniffed() -> None:
    answer = asked("challenge=abc123")

    assert answer is not None
    assert (answer.status, answer.body) == (200, b"abc123")
    assert answer.content_type.startswith("text/plain")
    assert answer.headers == {"x-content-type-options": "nosniff"}


@pytest.mark.parametrize("query", ["", "challenge=", "challenge=%0a", "challenge=" + "a" * 5000])
def test_what_is_no_challenge_is_not_answered(query: str) -> None:
    assert asked(query) is None


def test_a_challenge_by_another_method_is_not_answered() -> None:
    assert asked("challenge=abc123", "POST") is None


def test_the_next_notification_of_the_same_words_is_another_event() -> None:
    case = signed("dropbox")
    later = case.at(timedelta(milliseconds=1))

    assert case.provider.identify(later).event_id != case.provider.identify(case.delivery).event_id
    assert case.provider.guard is None
