"""The user's repository: configuration and handlers that may not be deployed yet."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.inbox_toml import ThrottleSpec
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhookctl.errors import CommandError
from webhookctl.target import Target


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with `inbox.toml` and `handlers/`."""

    functions: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Self | None:
        """Returns the checkout of the directory or of its nearest parent; None without one."""
        here = start or Path.cwd()
        candidates = (directory / "functions" for directory in (here, *here.parents))
        found = next((c for c in candidates if (c / "inbox.toml").is_file()), None)
        return None if found is None else cls(found)

    @classmethod
    def required(cls) -> Self:
        """Returns the checkout; raises CommandError without one."""
        found = cls.find()
        if found is None:
            raise CommandError(
                "no functions/inbox.toml here or above: change to your inbox's repository"
            )
        return found

    def manifest(self, stage: str) -> Manifest:
        """Compiles configuration and handlers; raises ConfigurationError."""
        return compile_manifest(self.functions, stage=stage)

    def sources(self, stage: str) -> dict[str, SourceSpec]:
        """Reads the sources without importing handlers; raises ConfigurationError."""
        return dict(inbox_toml.load(self.functions / "inbox.toml", stage=stage).sources)

    def throttles(self, stage: str) -> dict[str, ThrottleSpec]:
        """Reads the limits of the sources' routes; raises ConfigurationError."""
        return dict(inbox_toml.load(self.functions / "inbox.toml", stage=stage).throttles)

    def source(self, name: str, stage: str) -> SourceSpec:
        """Returns a source; raises CommandError for an unknown name."""
        sources = self.sources(stage)
        if name not in sources:
            raise CommandError(f"inbox.toml has no source {name}; it has: {', '.join(sources)}")
        return sources[name]


def known_source(name: str, stage: str) -> SourceSpec | None:
    """Returns a source of the checkout; None without a valid checkout.

    An invalid one is no error: operators may inspect what is deployed while editing.
    """
    found = Checkout.find()
    try:
        return None if found is None else found.sources(stage).get(name)
    except ConfigurationError:
        return None


def known_manifest(stage: str) -> Manifest:
    """Returns the checkout's manifest; an empty one without a valid checkout."""
    found = Checkout.find()
    try:
        return Manifest() if found is None else found.manifest(stage)
    except ConfigurationError:
        return Manifest()


def require_known(target: Target, *, source: str | None, handler: str | None) -> None:
    """Raises CommandError for a name that neither the target nor the checkout knows.

    Call it only after a search without results: a source or handler that was removed from the
    configuration may still have events.
    """
    manifest = known_manifest(target.stage)
    sources = dict.fromkeys((*target.urls, *manifest.sources))
    if source is not None and source not in sources:
        raise CommandError(f"no source {source}; known sources: {_listed(sources)}")
    # The target does not list handlers, only a checkout does.
    if handler is not None and manifest.handlers and handler not in manifest.handlers:
        raise CommandError(f"no handler {handler}; known handlers: {_listed(manifest.handlers)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
