"""Keys and certificates that providers publish, cached."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected, Unavailable
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch, Fetcher
from webhook_inbox.domain.provider import Provider, Verified

LIFE: Final = timedelta(hours=1)
# Google and Plaid announce new keys in advance, so a cached key outlives an outage.
GRACE: Final = timedelta(hours=24)
# A flood of forged deliveries must not become a flood of requests to a provider.
REFRESH_PAUSE: Final = timedelta(seconds=30)
# The URL may be part of the delivery, so an attacker can choose among the provider's URLs.
CAPACITY: Final = 64


class PublishedKeys:
    """Caches published keys for an hour, or for a day while the provider does not answer.

    The time is that of the delivery that needs the key.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._known: dict[Fetch, tuple[str, datetime]] = {}
        self._tried_at: dict[Fetch, datetime] = {}

    def get(self, wanted: Fetch, now: datetime) -> str:
        """Returns the published text.

        Raises:
            Rejected: it cannot be fetched now (key-unavailable).
        """
        known = self._known.get(wanted)
        age = None if known is None else now - known[1]
        if known is not None and age is not None and age < LIFE:
            return known[0]
        try:
            return self._fetch(wanted, now)
        except Unavailable as error:
            if known is None or age is None or age > GRACE:
                raise Rejected(Reason.KEY_UNAVAILABLE, f"the provider's key: {error}") from error
            return known[0]

    def refresh(self, wanted: Fetch, now: datetime) -> str | None:
        """Fetches again after a failed verification; None if it is too early or fails."""
        tried_at = self._tried_at.get(wanted)
        if tried_at is not None and now - tried_at < REFRESH_PAUSE:
            return None
        try:
            return self._fetch(wanted, now)
        except Unavailable:
            return None

    def _fetch(self, wanted: Fetch, now: datetime) -> str:
        for cache in (self._known, self._tried_at):
            if wanted not in cache and len(cache) >= CAPACITY:
                cache.pop(next(iter(cache)))
        self._tried_at[wanted] = now
        text = self._fetcher.fetch(wanted).decode(errors="replace")
        self._known[wanted] = (text, now)
        return text


def verify(
    provider: Provider, delivery: Delivery, secrets: Sequence[str], keys: PublishedKeys
) -> Verified:
    """Verifies a delivery as of the time it was received.

    Raises:
        Rejected: the delivery fails verification; no input raises another error.
    """
    if provider.needs_secret and not secrets:
        raise Rejected(Reason.NO_SECRET, "the source's secret is not set")
    if provider.fetches is None:
        return provider.verify(delivery, secrets)
    wanted = provider.fetches(delivery, secrets)
    if wanted is None:
        return provider.verify(delivery, secrets)
    try:
        return provider.verify(delivery, (keys.get(wanted, delivery.received_at),))
    except Rejected as error:
        # The provider may have rotated its key.
        if error.reason is not Reason.INVALID_SIGNATURE:
            raise
        fresh = keys.refresh(wanted, delivery.received_at)
        if fresh is None:
            raise
    return provider.verify(delivery, (fresh,))
