"""The live secrets of sources and handlers, cached."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Clock, SecretStore
from webhook_inbox.domain.secret_document import Secrets, in_force
from webhook_inbox.domain.spellings import spellings

LIFE: Final = timedelta(seconds=60)
# An operator sets a missing secret and then tries it.
ABSENCE_LIFE: Final = timedelta(seconds=2)
# A flood of forged deliveries must not become a flood of calls to the secret store.
REFRESH_PAUSE: Final = timedelta(seconds=10)
# Cached values are used for so long while the store is down.
GRACE: Final = timedelta(hours=1)
# A shorter value is a test's; redacting it would remove ordinary words from errors.
REDACTED_FROM: Final = 8
# A shorter part of a secret that is JSON may be a word, such as the name of an environment.
PART_FROM: Final = 16
REDACTED: Final = "[secret]"
# More than one invocation creates.
CONCEALED: Final = 100
# The secrets that sign completion tokens and approval links, and the one that hashes the tokens of
# rejected deliveries; a name in inbox.toml has no slash.
COMPLETION_KEY: Final = "inbox/completion-key"
TOKEN_KEY: Final = "inbox/token-key"  # noqa: S105 - a secret's name
APPROVAL_KEY: Final = "inbox/approval-key"
GENERATED: Final = frozenset({APPROVAL_KEY, COMPLETION_KEY, TOKEN_KEY})


@dataclass(frozen=True, slots=True)
class _Copy:
    """Secrets that were read together."""

    secrets: Secrets
    read_at: datetime


class SecretCache:
    """Caches live values for 60 s, or for an hour while the store is down.

    A missing secret is looked for again after 2 s. A read returns all secrets of the reader; each
    generated key is read by itself, and its previous value only where the current one does not
    verify: each read of Secrets Manager costs 5 millionths of a dollar.
    """

    def __init__(self, *, store: SecretStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # The copy of the document is under "", that of a generated key under its name, and that of
        # its previous value under `_before(name)`.
        self._copies: dict[str, _Copy] = {}
        self._concealed: deque[str] = deque(maxlen=CONCEALED)

    def get(self, name: str) -> tuple[str, ...]:
        """Returns the live values, the current one first; () when none is set.

        A generated key has one, its current value, which signs; `keys` yields those that verify.

        Raises:
            Unavailable: the store failed, and no cached value is recent enough.
        """
        values, age = self._cached(name)
        if age is not None and age < (LIFE if values else ABSENCE_LIFE):
            return values
        try:
            return self._fetch(name)
        except Unavailable:
            if age is None or age > GRACE or not values:
                raise
            return values

    def keys(self, name: str) -> Iterator[str]:
        """Yields the values of a generated key that verify: the current one, then the previous one.

        The previous one is read when it is asked for, once in the life of the current one.

        Raises:
            Unavailable: the store failed, and no cached value is recent enough.
        """
        current = self.get(name)
        yield from current
        yield from (value for value in self._previous(name) if value not in current)

    def refresh(self, name: str) -> tuple[str, ...] | None:
        """Fetches again after a failed verification; None if it is too early or fails."""
        _, age = self._cached(name)
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
        """Returns the text without any secret value that this cache has seen (G10).

        Nor a long part of a secret that is JSON, nor a URL's password or token, nor their forms in
        base64, hex, URLs and JSON.
        """
        # Another thread may add a copy or a token meanwhile.
        copies = tuple(self._copies.values())
        seen = {value for copy in copies for values in copy.secrets.values() for value in values}
        seen.update(tuple(self._concealed))
        found = {form for value in seen for form in _forms(value) if form in text}
        # The longest first, since one may be the prefix of another.
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        return text

    def _previous(self, name: str) -> tuple[str, ...]:
        current, kept = self._copies.get(name), self._copies.get(_before(name))
        # An older copy is of a time before the current value, perhaps of before a rotation.
        if current is not None and kept is not None and kept.read_at >= current.read_at:
            return kept.secrets[name]
        try:
            value = self._store.generated(name, previous=True)
        except Unavailable:
            if kept is None or self._clock.now() - kept.read_at > GRACE:
                raise
            return kept.secrets[name]
        return self._keep(_before(name), {name: _present(value)})[name]

    def _fetch(self, name: str) -> tuple[str, ...]:
        if name in GENERATED:
            secrets = self._keep(name, {name: _present(self._store.generated(name))})
        else:
            secrets = self._keep("", self._store.fetch())
        return self._in_force(secrets, name)

    def _keep(self, place: str, secrets: Secrets) -> Secrets:
        self._copies[place] = _Copy(secrets, self._clock.now())
        return secrets

    def _cached(self, name: str) -> tuple[tuple[str, ...], timedelta | None]:
        """Returns the cached values and their age, None if they were never read."""
        copy = self._copies.get(name if name in GENERATED else "")
        if copy is None:
            return (), None
        return self._in_force(copy.secrets, name), self._clock.now() - copy.read_at

    def _in_force(self, secrets: Secrets, name: str) -> tuple[str, ...]:
        # Not when the document is read: a cached rotation ends on time as well.
        return in_force(secrets.get(name, ()), self._clock.now())


def _before(name: str) -> str:
    return f"{name}, the previous value"


def _present(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


# Concealed tokens and all live secrets of a document, which has room for so many, are searched in
# every text; with less room, each search would make all forms again.
FORMS: Final = 2048


@lru_cache(maxsize=FORMS)
def _forms(secret: str) -> tuple[str, ...]:
    """Returns the forms in which a text may have a secret, or a part of one."""
    texts = [secret, *_parts(secret)]
    forms = {form for text in texts if len(text) >= REDACTED_FROM for form in spellings(text)}
    # With its blanks joined, a text may be shorter.
    return tuple(form for form in forms if len(form) >= REDACTED_FROM)


def _parts(secret: str) -> Iterator[str]:
    """Yields the parts of a secret that is JSON or a URL, unless they may be ordinary words."""
    try:
        left = [json.loads(secret) if secret.startswith(("{", "[")) else secret]
    except (ValueError, RecursionError):
        return
    while left:
        match left.pop():
            case dict() as members:
                left += members.values()
            case list() as elements:
                left += elements
            case str() as text if "://" in text:
                yield from _url_parts(text)
            case str() as text if len(text) >= PART_FROM and not text.isalpha():
                yield text


def _url_parts(url: str) -> Iterator[str]:
    """Yields a URL's password, and what may be a token in its user, path, query and fragment."""
    place, *rest = _BORDERS.split(url.partition("://")[2])
    user, _, password = place.rpartition("@")[0].partition(":")
    for text in (password, *filter(_TOKEN.fullmatch, (user, *rest))):
        yield from (text, unquote(text))


_BORDERS: Final = re.compile("[/?#&=]")
# With a digit, or long and in both cases; `oauth2`, `token` and `certificates` are words.
_TOKEN: Final = re.compile(
    r"(?=.*[A-Za-z])(?=.*[0-9]).{8,}|(?=.*[a-z])(?=.*[A-Z]).{16,}", re.DOTALL
)


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
