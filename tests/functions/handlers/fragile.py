"""A module that a test breaks once it is deployed."""

from typing import Final

from webhook_inbox import Context, Event, Router

fragile: Final = Router("fragile", source="acme")
SEEN: Final[list[str]] = []


@fragile.on("lab.fragile", "lab.both", backoff="fast")
def touch(event: Event, ctx: Context) -> None:
    SEEN.append(event.id)
