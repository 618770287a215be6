"""The repository that the user is in: what configuration and handlers say before a deployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhookctl.errors import CommandError


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with `inbox.toml` and `handlers/`."""

    functions: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Self | None:
        """Returns the checkout of the directory or of the nearest one above; None without one."""
        here = start or Path.cwd()
        candidates = (directory / "functions" for directory in (here, *here.parents))
        found = next((c for c in candidates if (c / "inbox.toml").is_file()), None)
        return None if found is None else cls(found)

    @classmethod
    def required(cls) -> Self:
        """Returns the checkout; raises CommandError where there is none."""
        found = cls.find()
        if found is None:
            raise CommandError(
                "no functions/inbox.toml here or above: change to your inbox's repository"
            )
        return found

    def manifest(self, stage: str) -> Manifest:
        """Compiles configuration and handlers; raises ConfigurationError."""
        return compile_manifest(self.functions, stage=stage)

    def sources(self, stage: str) -> Mapping[str, SourceSpec]:
        """Reads the sources alone, no handler; raises ConfigurationError."""
        return inbox_toml.load(self.functions / "inbox.toml", stage=stage).sources


def known_provider(source: str, stage: str) -> str:
    """Returns a source's provider, or the source's name where no checkout tells it."""
    spec = _spec(source, stage)
    return source if spec is None else spec.provider


def known_types(source: str, stage: str) -> tuple[str, ...]:
    """Returns the patterns of the types that a source stores; all where no checkout tells them."""
    spec = _spec(source, stage)
    return ("*",) if spec is None else spec.types


def known_limits(stage: str) -> Mapping[str, int]:
    """Returns each handler's max_attempts; empty where no checkout tells them."""
    handlers = known_manifest(stage).handlers
    return {name: spec.max_attempts for name, spec in handlers.items()}


def known_handlers(stage: str) -> tuple[str, ...]:
    """Returns the handlers' names; empty where no checkout tells them."""
    return tuple(known_manifest(stage).handlers)


def known_sources(stage: str) -> tuple[str, ...]:
    """Returns the sources' names; empty where no checkout tells them."""
    return tuple(known_manifest(stage).sources)


def known_secrets(stage: str) -> tuple[str, ...]:
    """Returns the names of all secrets; empty where no checkout tells them."""
    manifest = known_manifest(stage)
    of_sources = (spec.secret for spec in manifest.sources.values())
    return tuple(dict.fromkeys((*of_sources, *manifest.secrets)))


def _spec(source: str, stage: str) -> SourceSpec | None:
    found = Checkout.find()
    try:
        return None if found is None else found.sources(stage).get(source)
    except ConfigurationError:
        return None  # What is deployed may be looked at while the file is being edited.


def known_manifest(stage: str) -> Manifest:
    """Returns the manifest; an empty one where no checkout tells it."""
    found = Checkout.find()
    try:
        return Manifest() if found is None else found.manifest(stage)
    except ConfigurationError:
        return Manifest()
