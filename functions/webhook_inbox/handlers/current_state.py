"""The thin-event pattern: the event names an object, and the handler acts on its current state."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.internal_errors import SkippedBecause
from webhook_inbox.domain.model import SkipReason
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.ordering.position import ordering_key_at, version_at

ASKER: Final = "current()"
# The usual lag of an API that answers from a replica.
CATCHING_UP: Final = timedelta(seconds=10)


def current(
    event: Event, fetch: Callable[[str], Any], *, key: str, version: str = "", fetched: str = ""
) -> Any:
    """Fetches the current state of the object that an event is about.

    A handler that acts on this state tolerates lost, late, duplicate and reordered events.

        customer = current(event, read_customer, key="data.object.id")

    Args:
        event: the event.
        fetch: returns the state for a key as JSON data, or None if the object no longer exists.
        key: the path to the object's key in the event's body.
        version: the path to the object's version in the body, compared as by `latest`.
        fetched: the path to the version in the fetched state. With both paths, a state older than
            the event is not used: the provider's API lags.

    Raises:
        Skipped: the object no longer exists.
        Transient: the fetched state is older than the event; the retry is due in 10 s.
        Permanent: a path leads to nothing.
    """
    body = event.json()
    name = ordering_key_at(body, key, ASKER)
    state = fetch(name)
    if state is None:
        raise SkippedBecause(SkipReason.GONE, f"{name} no longer exists")
    if version and fetched:
        sent = version_at(body, version, ASKER)
        found = version_at(state, fetched, ASKER)
        if found.is_older(sent):
            raise Transient(
                f"{name} was fetched as of {found.text}, and the event has {sent.text}",
                retry_after=CATCHING_UP,
            )
    return state
