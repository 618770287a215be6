"""The thin pattern: a handler acts on the state as it is, and the event only says of what."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Skipped, Transient
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.ordering.position import ordering_key_at, version_at

ASKER: Final = "current()"
# An API that answers from a copy has caught up by then, most often.
CATCHING_UP: Final = timedelta(seconds=10)


def current(
    event: Event,
    fetch: Callable[[str], Any],
    *,
    key: str,
    version: str = "",
    fetched: str = "",
) -> Any:
    """Returns what `fetch` knows now of the ordering key that an event is about.

    A handler that acts on this may miss events, and get them late, twice or in any order: each
    brings what it keeps to where the provider is now.

        customer = current(event, read_customer, key="data.object.id")

    Args:
        event: the event.
        fetch: given the ordering key, returns its state as JSON, or None where there is none any more.
        key: the path in the event's body to what is fetched.
        version: the path in the event's body to what tells older from newer; compared as
            `latest` does.
        fetched: the path to the same in what was fetched. With both, what is older than the event
            is not acted on: the provider's API answers from a copy that lags.

    Raises:
        Skipped: there is none any more.
        Transient: what was fetched is older than the event.
        Permanent: the body, or what was fetched, has nothing at a path.
    """
    body = event.json()
    name = ordering_key_at(body, key, ASKER)
    state = fetch(name)
    if state is None:
        raise Skipped(f"{name} is not there any more")
    if version and fetched:
        told = version_at(body, version, ASKER)
        found = version_at(state, fetched, ASKER)
        if found.is_older(told):
            raise Transient(
                f"{name} was fetched as of {found.text}, and the event tells of {told.text}",
                retry_after=CATCHING_UP,
            )
    return state
