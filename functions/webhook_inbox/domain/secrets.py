"""The live secrets of sources and handlers, cached."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Clock, SecretStore

LIFE: Final = timedelta(seconds=60)
# A secret that is not set will be, by a person who then tries it.
ABSENCE_LIFE: Final = timedelta(seconds=2)
# A flood of forged deliveries must not become a flood of calls to the secret store.
REFRESH_PAUSE: Final = timedelta(seconds=10)
# How long values outlive the store: a rotated secret has AWSPREVIOUS for at least as long.
GRACE: Final = timedelta(hours=1)
# A shorter value is a test's, and would cut ordinary words out of an error.
REDACTED_FROM: Final = 8
# More than one invocation makes.
CONCEALED: Final = 100


class SecretCache:
    """Caches each secret's live values for 60 s, for an hour while the store is down.

    That a secret is not set is remembered for 2 s.
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
            Unavailable: the store failed, and nothing fresh enough is cached.
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
        """Fetches again after a failed verification; None when that is not due or failed."""
        age = self._age(name)
        if age is not None and age < REFRESH_PAUSE:
            return None
        try:
            return self._fetch(name)
        except Unavailable:
            return None

    def conceal(self, value: str) -> None:
        """Takes a secret that was made here, such as a token, out of texts like the others."""
        if value not in self._concealed:
            self._concealed.append(value)

    def redact(self, text: str) -> str:
        """Returns the text without any secret value that this cache has seen (G10)."""
        seen = {value for values in self._values.values() for value in values}
        seen.update(self._concealed)
        # The longest first: one that begins like another would leave its rest behind.
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
    """Returns JSON data with each of its texts redacted; a secret may look like a number."""
    match data:
        case str():
            return redact(data)
        case dict():
            return {redact(name): redacted(value, redact) for name, value in data.items()}
        case list():
            return [redacted(value, redact) for value in data]
        case _:
            return data


# The secret that tokens are made with; no name in inbox.toml holds a slash.
COMPLETION_KEY: Final = "inbox/completion-key"


# The secret that tokens are hashed with; no name in inbox.toml holds a slash.
TOKEN_KEY: Final = "inbox/token-key"  # noqa: S105 - a secret's name
