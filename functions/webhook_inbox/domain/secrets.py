"""The live secrets of sources and handlers, cached."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Clock, SecretStore

LIFE: Final = timedelta(seconds=60)
# An operator sets a missing secret and then tries it.
ABSENCE_LIFE: Final = timedelta(seconds=2)
# A flood of forged deliveries must not become a flood of calls to the secret store.
REFRESH_PAUSE: Final = timedelta(seconds=10)
# Cached values are used for so long while the store is down.
GRACE: Final = timedelta(hours=1)
# A shorter value is a test's; redacting it would remove ordinary words from errors.
REDACTED_FROM: Final = 8
# More than one invocation creates.
CONCEALED: Final = 100
# The secret that signs completion tokens, and the one that hashes the tokens of rejected
# deliveries; a name in inbox.toml has no slash.
COMPLETION_KEY: Final = "inbox/completion-key"
TOKEN_KEY: Final = "inbox/token-key"  # noqa: S105 - a secret's name


class SecretCache:
    """Caches each secret's live values for 60 s, or for an hour while the store is down.

    A missing secret is cached for 2 s.
    """

    def __init__(self, *, store: SecretStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._values: dict[str, tuple[str, ...]] = {}
        self._fetched_at: dict[str, datetime] = {}
        self._concealed: deque[str] = deque(maxlen=CONCEALED)

    def get(self, name: str) -> tuple[str, ...]:
        """Returns the live values, the current one first; () when none is set.

        Raises:
            Unavailable: the store failed, and no cached value is recent enough.
        """
        age = self._age(name)
        if age is not None and age < (LIFE if self._values[name] else ABSENCE_LIFE):
            return self._values[name]
        try:
            return self._fetch(name)
        except Unavailable:
            if age is None or age > GRACE or not self._values[name]:
                raise
            return self._values[name]

    def refresh(self, name: str) -> tuple[str, ...] | None:
        """Fetches again after a failed verification; None if it is too early or fails."""
        age = self._age(name)
        if age is not None and age < REFRESH_PAUSE:
            return None
        try:
            return self._fetch(name)
        except Unavailable:
            return None

    def conceal(self, value: str) -> None:
        """Adds a secret that the library created, such as a token, for `redact`."""
        if value not in self._concealed:
            self._concealed.append(value)

    def redact(self, text: str) -> str:
        """Returns the text without any secret value that this cache has seen (G10)."""
        seen = {value for values in self._values.values() for value in values}
        seen.update(self._concealed)
        # The longest first, since one may be the prefix of another.
        for value in sorted(seen, key=len, reverse=True):
            text = text.replace(value, "[secret]") if len(value) >= REDACTED_FROM else text
        return text

    def _fetch(self, name: str) -> tuple[str, ...]:
        values = self._store.fetch(name)
        self._values[name] = values
        self._fetched_at[name] = self._clock.now()
        return values

    def _age(self, name: str) -> timedelta | None:
        fetched_at = self._fetched_at.get(name)
        return None if fetched_at is None else self._clock.now() - fetched_at


def redacted(data: Any, redact: Callable[[str], str]) -> Any:
    """Returns JSON data with each of its texts redacted."""
    match data:
        case str():
            return redact(data)
        case dict():
            return {redact(name): redacted(value, redact) for name, value in data.items()}
        case list():
            return [redacted(value, redact) for value in data]
        case _:
            return data
