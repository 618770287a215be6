"""Names that the user typed, and those that the inbox knows."""

from collections.abc import Iterable

from webhookctl.checkout import known_handlers, known_sources
from webhookctl.errors import CommandError
from webhookctl.target import Target


def require_known(target: Target, *, source: str | None, handler: str | None) -> None:
    """Raises CommandError where the inbox knows no such source or handler.

    To be asked where nothing was found: what has left the configuration may still have events.
    """
    sources = dict.fromkeys((*target.urls, *known_sources(target.stage)))
    if source is not None and source not in sources:
        raise CommandError(f"no source {source}; there are: {_listed(sources)}")
    # Only a checkout knows the handlers.
    handlers = known_handlers(target.stage) if handler is not None else ()
    if handlers and handler not in handlers:
        raise CommandError(f"no handler {handler}; there are: {_listed(handlers)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
