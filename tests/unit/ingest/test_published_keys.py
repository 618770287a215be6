"""What providers publish is fetched once an hour, and outlives their outages for a day."""

from datetime import UTC, datetime, timedelta

import pytest

from webhook_inbox.domain.errors import Reason, Rejected, Unavailable
from webhook_inbox.domain.ports import NOWHERE, Fetch
from webhook_inbox.ingest.verification import CAPACITY, PublishedKeys

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
KEY = Fetch("https://keys.example/1")


class Provider:
    """Publishes a number that grows with each request, until it is down."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.down = False

    def fetch(self, wanted: Fetch) -> bytes:
        self.asked.append(wanted.url)
        if self.down:
            raise Unavailable("https", "GET", "down")
        return str(len(self.asked)).encode()


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def keys(provider: Provider) -> PublishedKeys:
    return PublishedKeys(provider)


def test_it_is_fetched_once_an_hour(keys: PublishedKeys) -> None:
    assert keys.get(KEY, NOW) == "1"
    assert keys.get(KEY, NOW + timedelta(minutes=59)) == "1"
    assert keys.get(KEY, NOW + timedelta(minutes=60)) == "2"


def test_what_is_known_outlives_an_outage_for_a_day(
    keys: PublishedKeys, provider: Provider
) -> None:
    keys.get(KEY, NOW)
    provider.down = True
    assert keys.get(KEY, NOW + timedelta(hours=24)) == "1"
    with pytest.raises(Rejected) as raised:
        keys.get(KEY, NOW + timedelta(hours=25))
    assert raised.value.reason is Reason.KEY_UNAVAILABLE


def test_what_was_never_had_is_unavailable() -> None:
    with pytest.raises(Rejected) as raised:
        PublishedKeys(NOWHERE).get(KEY, NOW)
    assert raised.value.reason is Reason.KEY_UNAVAILABLE


def test_a_failed_verification_fetches_again_but_not_for_every_forgery(
    keys: PublishedKeys, provider: Provider
) -> None:
    keys.get(KEY, NOW)
    assert keys.refresh(KEY, NOW + timedelta(seconds=29)) is None
    assert keys.refresh(KEY, NOW + timedelta(seconds=30)) == "2"
    assert keys.get(KEY, NOW + timedelta(seconds=31)) == "2"
    provider.down = True
    assert keys.refresh(KEY, NOW + timedelta(seconds=90)) is None


def test_a_stranger_cannot_fill_the_memory(keys: PublishedKeys, provider: Provider) -> None:
    for number in range(CAPACITY * 3):
        keys.get(Fetch(f"https://keys.example/{number}"), NOW)
    assert len(keys._known) == len(keys._tried_at) == CAPACITY
