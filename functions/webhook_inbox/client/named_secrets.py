"""The secrets of an inbox by name, without their values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
class StoredSecret:
    """A secret that is used or stored.

    Attributes:
        document: the name of its document in Secrets Manager.
        values: how many values it has, 0 to 2.
        used_by: the sources and destinations that use it, or "handlers" or "webhookctl".
        reader: the document's reader, see `secret_document`.
        since: when a rotation that ends replaced the previous value.
        until: when the previous value ends.
    """

    name: str
    document: str
    values: int
    used_by: tuple[str, ...]
    reader: str
    since: datetime | None
    until: datetime | None

    @property
    def is_missing(self) -> bool:
        """Whether something uses it and it has no value."""
        return bool(self.used_by) and not self.values


def named_secrets(
    manifest: Manifest, stored: Mapping[str, Secrets], prefix: str
) -> list[StoredSecret]:
    """Returns the secrets that are used or stored; `stored` is by reader, `prefix` its id's."""
    users: Mapping[str, Mapping[str, tuple[str, ...]]] = {
        SOURCES: _users_of_sources(manifest.sources.values()),
        HANDLERS: {name: _users_of(name, manifest) for name in sorted(manifest.handler_secrets)},
        TOOLS: dict.fromkeys(sorted(stored[TOOLS]), (WEBHOOKCTL,)),
    }
    found = []
    for reader, names in users.items():
        for name in dict.fromkeys((*names, *sorted(stored[reader]))):
            values = stored[reader].get(name, ())
            ends = (values.since, values.until) if isinstance(values, Rotation) else (None, None)
            used_by = names.get(name, ())
            found.append(StoredSecret(name, prefix + reader, len(values), used_by, reader, *ends))
    return found


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
