"""Keys and certificates that providers publish, cached.

A delivery names its key before anything of it is proven, so anyone can name keys. Everything that
needs no key is checked before an unknown one is fetched; a source may name few unknown keys in a
minute; and no forgery displaces a key that has verified a delivery.

Where the delivery chose the key that was requested, the provider's answer that it publishes no such
key refuses the delivery for good. A key set whose URL is fixed says nothing about one delivery: any
answer without a key is then a failed fetch, and the provider retries.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import NotPublished, Reason, Rejected, Unavailable
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch, Fetcher
from webhook_inbox.domain.provider import Provider, Verified

LIFE: Final = timedelta(hours=1)
# Google and Plaid announce new keys in advance, so a cached key outlives an outage.
GRACE: Final = timedelta(hours=24)
# A request is not repeated earlier, whether it failed or its key did not verify a delivery.
PAUSE: Final = timedelta(seconds=30)
# Requests for unproven keys per source and minute.
MISSES: Final = 10
# A key that was fetched again may verify a delivery that was rejected so: it was rotated, or an
# error page was published in its place.
OUTDATED: Final = frozenset({Reason.INVALID_SIGNATURE, Reason.KEY_UNAVAILABLE, Reason.UNKNOWN_KEY})
# The number of proven keys, and that of all others.
CAPACITY: Final = 64
# Headers of clients, proxies and networks. No signature or token is searched in them.
TRANSPORT: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "cdn-loop",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "forwarded",
        "host",
        "traceparent",
        "tracestate",
        "transfer-encoding",
        "user-agent",
        "via",
        "x-amzn-trace-id",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
    }
)
# The length of a header's name, and the numbers of received names that are compared and listed.
NAME_LENGTH: Final = 64
NAMES_COMPARED: Final = 30
NAMES_SHOWN: Final = 10


@dataclass(slots=True)
class PublishedKey:
    """A key that was requested; `text` is None until it was answered, `fault` its last error.

    `is_missing` is True if the last answer was that it is not published.
    """

    tried_at: datetime
    text: str | None = None
    fetched_at: datetime | None = None
    fault: str = ""
    is_missing: bool = False


class PublishedKeys:
    """Caches published keys for an hour, or for a day while the provider does not answer.

    The time is that of the delivery that needs the key. A key is proven once it has verified a
    delivery.
    """

    def __init__(self, fetcher: Fetcher, *, misses: int = MISSES) -> None:
        self._fetcher = fetcher
        self._limit = misses
        self._proven: dict[Fetch, PublishedKey] = {}
        self._others: dict[Fetch, PublishedKey] = {}
        self._misses: dict[str, tuple[datetime, int]] = {}

    def known(self, wanted: Fetch, now: datetime) -> str | None:
        """Returns the cached text; None if there is none, or it is too old."""
        found = self._find(wanted)
        usable = found is not None and _age(found, now) <= GRACE
        return found.text if found is not None and usable else None

    def get(self, wanted: Fetch, source: str, now: datetime) -> str:
        """Returns the published text.

        Raises:
            Rejected: it cannot be fetched now (key-unavailable), or is not published (unknown-key).
        """
        found = self._find(wanted)
        if found is not None and found.text is not None and _age(found, now) < LIFE:
            return found.text
        try:
            return self._fetch(wanted, source, now)
        except (NotPublished, Unavailable) as error:
            known = self.known(wanted, now)
            if known is not None:
                return known
            if isinstance(error, NotPublished):
                raise _without_key(wanted, str(error)) from error
            raise Rejected(Reason.KEY_UNAVAILABLE, f"the provider's key: {error}") from error

    def refresh(self, wanted: Fetch, source: str, now: datetime) -> str | None:
        """Fetches again after a failed verification; None if it is too early or fails."""
        with suppress(NotPublished, Unavailable):
            return self._fetch(wanted, source, now)
        return None

    def prove(self, wanted: Fetch) -> None:
        """Keeps a key that has verified a delivery; only newer proven keys displace it."""
        if wanted in self._proven:
            return
        found = self._others.pop(wanted, None)
        if found is not None:
            _insert(self._proven, wanted, found)

    def _find(self, wanted: Fetch) -> PublishedKey | None:
        return self._proven.get(wanted) or self._others.get(wanted)

    def _fetch(self, wanted: Fetch, source: str, now: datetime) -> str:
        """Requests the key; raises as the fetcher does, the last error again if it is too early."""
        found = self._find(wanted)
        if found is not None and now - found.tried_at < PAUSE:
            if found.is_missing:
                raise NotPublished(found.fault)
            raise Unavailable("https", "GET", found.fault or "it was just fetched")
        if wanted not in self._proven:
            self._count_miss(source, now)
        if found is None:
            found = PublishedKey(now)
            _insert(self._others, wanted, found)
        found.tried_at = now
        try:
            found.text = self._fetcher.fetch(wanted).decode(errors="replace")
        except (NotPublished, Unavailable) as error:
            found.fault, found.is_missing = str(error), isinstance(error, NotPublished)
            raise
        found.fetched_at, found.fault, found.is_missing = now, "", False
        return found.text

    def _count_miss(self, source: str, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        began, count = self._misses.get(source, (minute, 0))
        count = count if began == minute else 0
        if count >= self._limit:
            raise Unavailable("https", "GET", f"{count} unknown keys were requested in this minute")
        self._misses[source] = (minute, count + 1)


def _without_key(wanted: Fetch, cause: str) -> Rejected:
    """Returns the rejection of a delivery whose key's server answered without a key."""
    reason = Reason.UNKNOWN_KEY if wanted.chosen_by_sender else Reason.KEY_UNAVAILABLE
    return Rejected(reason, f"the provider's key: {cause}")


def _age(key: PublishedKey, now: datetime) -> timedelta:
    return timedelta.max if key.fetched_at is None else now - key.fetched_at


def _insert(cache: dict[Fetch, PublishedKey], wanted: Fetch, key: PublishedKey) -> None:
    if len(cache) >= CAPACITY:
        cache.pop(next(iter(cache)))
    cache[wanted] = key


def verify(
    provider: Provider, delivery: Delivery, secrets: Sequence[str], keys: PublishedKeys
) -> Verified:
    """Verifies a delivery as of the time it was received.

    Raises:
        Rejected: the delivery fails verification; no input raises another error.
    """
    if provider.needs_secret and not secrets:
        raise Rejected(Reason.NO_SECRET, "the source's secret is not set")
    wanted = provider.fetches(delivery, secrets) if provider.fetches else None
    if wanted is None:
        return provider.verify(delivery, secrets)
    if keys.known(wanted, delivery.received_at) is None:
        provider.precheck(delivery, ())
    verified = _verify(provider, delivery, wanted, keys)
    keys.prove(wanted)
    return verified


def _verify(provider: Provider, delivery: Delivery, wanted: Fetch, keys: PublishedKeys) -> Verified:
    key = keys.get(wanted, delivery.source, delivery.received_at)
    try:
        return _verify_with(provider, delivery, wanted, key)
    except Rejected as error:
        if error.reason not in OUTDATED or _is_invalid(provider, delivery, ()):
            raise
        fresh = keys.refresh(wanted, delivery.source, delivery.received_at)
        if fresh is None:
            raise
    return _verify_with(provider, delivery, wanted, fresh)


def _verify_with(provider: Provider, delivery: Delivery, wanted: Fetch, text: str) -> Verified:
    try:
        return provider.verify(delivery, (text,))
    except Rejected as error:
        if error.reason is not Reason.NO_SECRET:
            raise
        # The fetched text takes the place of the secret.
        raise _without_key(wanted, "its server answered with a text that holds no key") from error


def is_well_formed(
    provider: Provider, delivery: Delivery, secrets: Sequence[str], keys: PublishedKeys
) -> bool:
    """Returns whether a rejected delivery may be genuine, as far as can be told without its key.

    Its signature has the right form, its signed time is fresh, and the key that it names is known.
    """
    material = secrets
    if provider.fetches is not None and (secrets or not provider.needs_secret):
        try:
            wanted = provider.fetches(delivery, secrets)
        except Rejected:
            return False
        known = None if wanted is None else keys.known(wanted, delivery.received_at)
        if wanted is not None and known is None:
            return False
        material = secrets if known is None else (known,)
    return not _is_invalid(provider, delivery, material)


def _is_invalid(provider: Provider, delivery: Delivery, keys: Sequence[str]) -> bool:
    try:
        provider.precheck(delivery, keys)
    except Rejected:
        return True
    return False


def unread(provider: Provider, headers: Mapping[str, str]) -> list[str]:
    """Returns the sorted names of the headers among which one that the scheme misses may be."""
    known = TRANSPORT | provider.signature_headers | provider.kept_headers
    return sorted(name for name in headers if name not in known and len(name) <= NAME_LENGTH)


def missing_headers(provider: Provider, error: Rejected, headers: Mapping[str, str]) -> list[str]:
    """Returns the sorted names of the absent headers that explain a rejection."""
    reads = provider.signature_headers | provider.kept_headers
    absent = sorted(name for name in reads if not headers.get(name))
    if error.reason is Reason.MISSING_EVENT_ID:
        return [name for name in absent if name in provider.kept_headers]
    return [name for name in absent if f"no {name} header" in error.detail]


def explained(provider: Provider, error: Rejected, headers: Mapping[str, str]) -> Rejected:
    """Returns the rejection; where a header is missing, with the names of the received ones.

    Most often the header was sent, under another name than in inbox.toml.
    """
    missing = missing_headers(provider, error, headers)
    if not missing:
        return error
    received = unread(provider, headers)
    # Anyone can send many names.
    # A cold start of ingest needs no suggestion.
    from webhook_inbox.domain.similar_names import did_you_mean  # noqa: PLC0415

    guess = did_you_mean(missing[0], received[:NAMES_COMPARED])
    listed = ", ".join(received[:NAMES_SHOWN]) or "no other header"
    more = ", …" if len(received) > NAMES_SHOWN else ""
    absent = "" if missing[0] in error.detail else f", and {' and '.join(missing)} are missing"
    told = f"{error.detail}{absent}{f': {guess}' if guess else ';'} received: {listed}{more}"
    return Rejected(error.reason, told)
