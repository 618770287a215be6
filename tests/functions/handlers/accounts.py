"""Serial handlers: `mood` says how an event's attempts end."""

from typing import Final

from webhook_inbox import Context, Event, Permanent, Router, serial

accounts: Final = Router("accounts", source="acme")
HANDLED: Final[list[str]] = []


@accounts.on("booking", order=serial("account"), lane="accounts", backoff="fast", max_attempts=3)
def book(event: Event, _: Context) -> None:
    HANDLED.append(event.id)
    mood = event.json().get("mood")
    if mood == "burn":
        raise RuntimeError("the till burns")
    if mood == "refuse":
        raise Permanent("422 from the till")


@accounts.on("seal", order=serial("account", on_dead="block"), lane="accounts")
def seal(event: Event, ctx: Context) -> None:
    book(event, ctx)
