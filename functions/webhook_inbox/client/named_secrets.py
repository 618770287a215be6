"""The secrets of an inbox by name, without their values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS, Rotation, Secrets

# The user of a secret that is in no destination.
IN_HANDLERS: Final = "handlers"
WEBHOOKCTL: Final = "webhookctl"


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """A secret's name, its document's reader, how many values it has, and what uses it.

    `since` and `until` are the times of a rotation that ends; see `secret_document.Rotation`.
    """

    name: str
    reader: str
    values: int
    users: tuple[str, ...]
    since: datetime | None = None
    until: datetime | None = None

    @property
    def missing(self) -> bool:
        """Returns whether a source, destination or handler uses the secret and it has no value."""
        return bool(self.users) and not self.values


def named_secrets(manifest: Manifest, stored: Mapping[str, Secrets]) -> list[NamedSecret]:
    """Returns the secrets that are used or stored; `stored` is by reader."""
    users: Mapping[str, Mapping[str, tuple[str, ...]]] = {
        SOURCES: _users_of_sources(manifest.sources.values()),
        HANDLERS: {name: _users_of(name, manifest) for name in sorted(manifest.handler_secrets)},
        TOOLS: dict.fromkeys(sorted(stored[TOOLS]), (WEBHOOKCTL,)),
    }
    return [
        _named(name, reader, stored[reader].get(name, ()), users[reader].get(name, ()))
        for reader in users
        for name in dict.fromkeys((*users[reader], *sorted(stored[reader])))
    ]


def _named(name: str, reader: str, values: tuple[str, ...], users: tuple[str, ...]) -> NamedSecret:
    found = NamedSecret(name, reader, len(values), users)
    if not isinstance(values, Rotation):
        return found
    return replace(found, since=values.since, until=values.until)


def _users_of_sources(sources: Iterable[SourceSpec]) -> dict[str, tuple[str, ...]]:
    users: dict[str, tuple[str, ...]] = {}
    for source in sources:
        if _needs_secret(source):
            users[source.secret] = (*users.get(source.secret, ()), f"source {source.name}")
    return users


def _needs_secret(source: SourceSpec) -> bool:
    try:
        return providers.load(source).needs_secret
    except ConfigurationError:
        return True  # Deployed with a later version, which knows its provider.


def _users_of(name: str, manifest: Manifest) -> tuple[str, ...]:
    named = (spec.name for spec in manifest.destinations.values() if name in spec.secrets)
    return tuple(f"destination {each}" for each in named) or (IN_HANDLERS,)
