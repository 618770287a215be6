"""A handler for the items of batches."""

from typing import Final

from webhook_inbox import Context, Event, Router

mail: Final = Router("mail")
SEEN: Final[list[tuple[str, bytes]]] = []


@mail.on("*")
def note(event: Event, ctx: Context) -> None:
    """Remembers what it was given."""
    SEEN.append((event.id, event.body))
