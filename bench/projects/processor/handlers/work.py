"""Handlers that do nothing but what their names say."""

from typing import Final

from webhook_inbox import Context, Event, Router

work: Final = Router("work", source="acme")


@work.on("none")
def plain(_: Event, ctx: Context) -> None:
    """Has no effect."""


@work.on("one")
def effect(_: Event, ctx: Context) -> None:
    """Has one effect, which costs nothing."""
    ctx.effect("first", str)


@work.on("two")
def effects(_: Event, ctx: Context) -> None:
    """Has two effects."""
    ctx.effect("first", str)
    ctx.effect("second", str)


@work.on("call", destinations=["downstream"])
def destination(_: Event, ctx: Context) -> None:
    """Calls a destination as an effect."""
    ctx.http("downstream").post("/orders", json={"order": 1}, effect="order")
