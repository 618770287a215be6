"""Checks names against the deployed sources and handlers."""

from collections.abc import Iterable

from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import AccessDenied
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.similar_names import did_you_mean


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
    except (Refused, AccessDenied):
        return Manifest()


def require_known(target: Target, *, source: str | None, handler: str | None) -> None:
    """Raises WrongArgument for a name that is not deployed.

    Call it only after a search without results: a source or handler that was removed from the
    configuration may still have events.
    """
    manifest = known_manifest(target)
    sources = dict.fromkeys((*target.urls, *manifest.sources))
    if source is not None and source not in sources:
        raise WrongArgument(unknown("source", source, sources))
    # The outputs list the sources; only the manifest has the handlers.
    if handler is not None and manifest.handlers and handler not in manifest.handlers:
        raise WrongArgument(unknown("handler", handler, manifest.handlers))


def unknown(kind: str, name: str, known: Iterable[str], *, where: str = "") -> str:
    """Returns the error for an unknown name: all known ones, and the most similar one."""
    names = list(known)
    place = f" {where}" if where else ""
    there = f"no {kind} {name}{place}; known {kind}s: {', '.join(names) or 'none'}"
    guess = did_you_mean(name, names)
    return f"{there}; {guess}" if guess else there
