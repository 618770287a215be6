"""Handlers of each lane that use all that a lane's processor may do."""

from typing import Any

from webhook_inbox import Context, Event, Permanent, Router, sequence, serial

choir = Router("choir", source="lab")


def order(event: Event, ctx: Context, token: Any) -> Any:
    """Starts a job at the sink."""
    work = {"event": event.id, "callback": token.path}
    return ctx.http("sink").post("/press", json=work).json()["id"]


def sing(event: Event, ctx: Context) -> None:
    wish = event.json()["wish"]
    ctx.secret("pagerduty")
    ctx.effect("note", lambda key: key, args=wish)
    if wish == "wait":
        ctx.wait_for("print", lambda key, token: order(event, ctx, token))
    if wish == "raise":
        raise RuntimeError("as wished")
    if wish == "refuse":
        raise Permanent(f"as wished in {event.id}")


@choir.on("sing.default", backoff="fast")
def plain(event: Event, ctx: Context) -> None:
    sing(event, ctx)


@choir.on("sing.fragile", backoff="fast", order=sequence("key", "number"), lane="fragile")
def numbered(event: Event, ctx: Context) -> None:
    sing(event, ctx)


@choir.on("sing.accounts", backoff="fast", order=serial("key"), lane="accounts")
def ordered(event: Event, ctx: Context) -> None:
    sing(event, ctx)
