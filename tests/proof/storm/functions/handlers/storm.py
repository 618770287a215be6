"""Handlers that tell the sink what they were told, and do nothing else."""

from typing import Final

from webhook_inbox import Context, Event, Router, Transient, latest, sequence

storm: Final = Router("storm")


@storm.on("keyed", backoff="fast", max_attempts=30, lane="effects")
def keyed(event: Event, ctx: Context) -> None:
    """Has one effect at a downstream that honours keys."""
    ctx.http("keyed").post("/orders", json=event.json(), effect="order")


@storm.on("keyless", backoff="fast", max_attempts=30, lane="effects")
def keyless(event: Event, ctx: Context) -> None:
    """Has one effect at a downstream that knows no keys."""
    ctx.http("keyless").post("/mails", json=event.json(), effect="mail")


@storm.on("fragile", backoff="fast", max_attempts=30, lane="fragile", destinations=["fragile"])
def fragile(event: Event, ctx: Context) -> None:
    """Calls a downstream that breaks down."""
    ctx.http("fragile").post("/notes", json=event.json(), effect="note")


@storm.on("paced", lane="paced", destinations=["paced"])
def paced(event: Event, ctx: Context) -> None:
    """Calls a downstream that takes 20 calls a second."""
    ctx.http("paced").post("/calls", json=event.json(), effect="call")


@storm.on("change", order=sequence("account", "number", timeout="20m"), lane="order")
def change(event: Event, ctx: Context) -> None:
    """Takes the changes of an account one after the other."""
    ctx.http("keyed").post("/changes", json=event.json(), effect="change")


@storm.on("state", order=latest("account", "number"), lane="order")
def state(event: Event, ctx: Context) -> None:
    """Takes the states of an account, and none that is older than one it has taken."""
    ctx.http("keyed").post("/states", json=event.json(), effect="state")


@storm.on("shared", lane="fine")
def fine(event: Event, ctx: Context) -> None:
    """Shares its events with a handler that never succeeds."""
    ctx.http("keyed").post("/fine", json=event.json(), effect="fine")


@storm.on("shared", backoff="fast", max_attempts=100)
def doomed(event: Event, ctx: Context) -> None:
    """Never succeeds."""
    raise Transient(f"{event.id} will never do")
