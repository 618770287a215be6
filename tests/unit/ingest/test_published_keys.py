"""Published keys are fetched once an hour, and outlive outages of their provider for a day."""

from datetime import UTC, datetime, timedelta

import pytest

from webhook_inbox.domain.errors import Reason, Rejected, Unavailable
from webhook_inbox.domain.ports import UNAVAILABLE_FETCHER, Fetch
from webhook_inbox.ingest.verification import CAPACITY, MISSES, PublishedKeys

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


def key(number: int) -> Fetch:
    return Fetch(f"https://keys.example/forged/{number}")


def reason(keys: PublishedKeys, wanted: Fetch, now: datetime = NOW) -> Reason | None:
    """Returns why a key cannot be had; None if it can."""
    try:
        keys.get(wanted, "it", now)
    except Rejected as error:
        return error.reason
    return None


def test_it_is_fetched_once_an_hour(keys: PublishedKeys) -> None:
    assert keys.get(KEY, "it", NOW) == "1"
    assert keys.get(KEY, "it", NOW + timedelta(minutes=59)) == "1"
    assert keys.get(KEY, "it", NOW + timedelta(minutes=60)) == "2"


def test_what_is_known_outlives_an_outage_for_a_day(
    keys: PublishedKeys, provider: Provider
) -> None:
    keys.get(KEY, "it", NOW)
    provider.down = True
    assert keys.get(KEY, "it", NOW + timedelta(hours=24)) == "1"
    assert reason(keys, KEY, NOW + timedelta(hours=25)) is Reason.KEY_UNAVAILABLE


def test_what_was_never_had_is_unavailable() -> None:
    assert reason(PublishedKeys(UNAVAILABLE_FETCHER), KEY) is Reason.KEY_UNAVAILABLE


def test_a_failed_verification_fetches_again_but_not_for_every_forgery(
    keys: PublishedKeys, provider: Provider
) -> None:
    keys.get(KEY, "it", NOW)
    assert keys.refresh(KEY, "it", NOW + timedelta(seconds=29)) is None
    assert keys.refresh(KEY, "it", NOW + timedelta(seconds=30)) == "2"
    assert keys.get(KEY, "it", NOW + timedelta(seconds=31)) == "2"
    provider.down = True
    assert keys.refresh(KEY, "it", NOW + timedelta(seconds=90)) is None


def test_a_failure_is_kept_for_half_a_minute(keys: PublishedKeys, provider: Provider) -> None:
    provider.down = True
    assert reason(keys, KEY) is Reason.KEY_UNAVAILABLE
    provider.down = False
    assert reason(keys, KEY, NOW + timedelta(seconds=29)) is Reason.KEY_UNAVAILABLE
    assert len(provider.asked) == 1
    assert reason(keys, KEY, NOW + timedelta(seconds=30)) is None


def test_in_an_outage_a_known_key_is_asked_for_twice_a_minute(
    keys: PublishedKeys, provider: Provider
) -> None:
    keys.get(KEY, "it", NOW)
    provider.down = True
    for second in range(60):
        assert keys.get(KEY, "it", NOW + timedelta(hours=2, seconds=second)) == "1"
    assert len(provider.asked) == 1 + 2


def test_a_source_asks_for_few_unknown_keys_in_a_minute(
    keys: PublishedKeys, provider: Provider
) -> None:
    found = [reason(keys, key(n)) for n in range(MISSES + 5)]
    assert found == [None] * MISSES + [Reason.KEY_UNAVAILABLE] * 5
    assert len(provider.asked) == MISSES
    keys.get(key(999), "another source", NOW)
    keys.get(key(1000), "it", NOW + timedelta(minutes=1))


def test_of_a_key_that_has_verified_a_delivery_no_request_is_counted(
    keys: PublishedKeys,
) -> None:
    keys.get(KEY, "it", NOW)
    keys.prove(KEY)
    later = NOW + timedelta(hours=1)
    for number in range(MISSES):
        keys.get(key(number), "it", later)
    assert keys.get(KEY, "it", later) == str(1 + MISSES + 1)


def test_a_stranger_cannot_fill_the_memory(keys: PublishedKeys) -> None:
    for number in range(CAPACITY * 3):
        keys.get(key(number), "it", NOW + timedelta(minutes=number))
    assert len(keys._others) == CAPACITY


def test_no_unproven_key_displaces_a_proven_one(keys: PublishedKeys, provider: Provider) -> None:
    keys.get(KEY, "it", NOW)
    keys.prove(KEY)
    for number in range(CAPACITY * 2):
        keys.get(key(number), f"source {number}", NOW)
    provider.asked.clear()
    assert keys.get(KEY, "it", NOW) == "1"
    assert provider.asked == []


def test_only_proven_keys_displace_a_proven_one(keys: PublishedKeys) -> None:
    for number in range(CAPACITY + 1):
        keys.get(key(number), f"source {number}", NOW)
        keys.prove(key(number))
    assert len(keys._proven) == CAPACITY
    assert keys.known(key(0), NOW) is None
    assert keys.known(key(1), NOW) == "2"


def test_a_key_that_was_displaced_before_its_proof_is_not_proven(keys: PublishedKeys) -> None:
    keys.prove(KEY)
    assert keys.known(KEY, NOW) is None


def test_the_text_that_is_known_is_at_most_a_day_old(keys: PublishedKeys) -> None:
    keys.get(KEY, "it", NOW)
    assert keys.known(KEY, NOW + timedelta(hours=24)) == "1"
    assert keys.known(KEY, NOW + timedelta(hours=25)) is None
