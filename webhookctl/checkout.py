"""The user's repository: configuration and handlers that may not be deployed yet."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from webhook_inbox_cdk.contents import processor_requirements

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import unknown
from webhook_inbox.client.repository import own_directories, owned
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhookctl.errors import CommandError


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory of the user's with `inbox.toml` and `handlers/`."""

    functions: Path

    @classmethod
    def required(cls) -> Self:
        """Returns the checkout of the working directory or of its nearest parent.

        The search ends at the root of the repository. Raises CommandError without a checkout, and
        for one of another user, whose handlers would run as this one.
        """
        for directory in own_directories(Path.cwd()):
            functions = directory / "functions"
            if (functions / "inbox.toml").is_file():
                _require_owned(functions)
                return cls(functions)
        raise CommandError(
            "no functions/inbox.toml here or above, in a repository that belongs to you: change to"
            " your inbox's repository"
        )

    def manifest(self, stage: str) -> Manifest:
        """Compiles configuration and handlers; raises ConfigurationError."""
        files = processor_requirements(self.functions)
        return compile_manifest(self.functions, stage=stage, requirements=files)

    def configuration(self, stage: str) -> Configuration:
        """Reads inbox.toml without importing handlers; raises ConfigurationError."""
        return inbox_toml.load(self.functions / "inbox.toml", stage=stage)

    def source_manifest(self, stage: str) -> Manifest:
        """Returns the sources of inbox.toml, without importing handlers."""
        return Manifest(sources=self.configuration(stage).sources)

    def source(self, name: str, stage: str) -> SourceSpec:
        """Returns a source; raises WrongArgument for an unknown name."""
        sources = self.configuration(stage).sources
        if name not in sources:
            raise WrongArgument(unknown("source", name, sources, where="in inbox.toml"))
        return sources[name]


def declared_configuration(stage: str) -> Configuration | None:
    """Returns the configuration of the checkout; None without a valid one."""
    try:
        return Checkout.required().configuration(stage)
    except (CommandError, ConfigurationError):
        return None


def declared_manifest(stage: str) -> Manifest:
    """Returns the sources, destinations and secrets of the checkout; none without a valid one."""
    found = declared_configuration(stage)
    if found is None:
        return Manifest()
    return Manifest(sources=found.sources, destinations=found.destinations, secrets=found.secrets)


def _require_owned(functions: Path) -> None:
    """Raises CommandError unless all that an import can read here is the user's.

    The import path has `functions/`, so this includes files that no handler names.
    """
    root = functions.resolve()
    for path in (functions, root, *functions.rglob("*")):
        # An editor may have removed a temporary file since it was listed.
        if not owned(path) and os.path.lexists(path):
            raise CommandError(
                f"{path} belongs to another user: run this as its owner, or in a clone of your own"
            )
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise CommandError(
                f"{path} is a link out of {functions}, to files that may be another user's: replace"
                " it with a copy"
            )
