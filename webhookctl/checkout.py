"""The user's repository: configuration and handlers that may not be deployed yet."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from botocore.exceptions import ClientError
from webhook_inbox_cdk.contents import processor_requirements

from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.inbox_toml import Configuration
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.similar_names import did_you_mean
from webhookctl.errors import CommandError, WrongCall
from webhookctl.repository import own_directories, owned
from webhookctl.target import Target

DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException"})


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

    def source(self, name: str, stage: str) -> SourceSpec:
        """Returns a source; raises WrongCall for an unknown name."""
        sources = self.configuration(stage).sources
        if name not in sources:
            raise WrongCall(unknown("source", name, sources, where="in inbox.toml"))
        return sources[name]


def known_source(target: Target, name: str) -> SourceSpec | None:
    """Returns a deployed source; None for an unknown one."""
    return known_manifest(target).sources.get(name)


def known_manifest(target: Target) -> Manifest:
    """Returns the deployed manifest; an empty one where it cannot be read.

    It only adds to results, which an operator needs without that permission and of a stack of
    another version as well.
    """
    try:
        return target.manifest
    except CommandError:
        return Manifest()
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            return Manifest()
        raise


def require_known(target: Target, *, source: str | None, handler: str | None) -> None:
    """Raises WrongCall for a name that is not deployed.

    Call it only after a search without results: a source or handler that was removed from the
    configuration may still have events.
    """
    manifest = known_manifest(target)
    sources = dict.fromkeys((*target.urls, *manifest.sources))
    if source is not None and source not in sources:
        raise WrongCall(unknown("source", source, sources))
    # The outputs list the sources; only the manifest has the handlers.
    if handler is not None and manifest.handlers and handler not in manifest.handlers:
        raise WrongCall(unknown("handler", handler, manifest.handlers))


def unknown(kind: str, name: str, known: Iterable[str], *, where: str = "") -> str:
    """Returns the error for an unknown name: all known ones, and the most similar one."""
    names = list(known)
    place = f" {where}" if where else ""
    there = f"no {kind} {name}{place}; known {kind}s: {', '.join(names) or 'none'}"
    guess = did_you_mean(name, names)
    return f"{there}; {guess}" if guess else there


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
