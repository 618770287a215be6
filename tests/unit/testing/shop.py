"""A few handlers, to be tested with the kit."""

from datetime import timedelta
from typing import Any, Final

from webhook_inbox import Backoff, Context, Deferred, Event, Hold, Permanent, Router, Transient

shop: Final = Router("shop")
QUICK: Final = Backoff(base=10, factor=2, cap=60)


@shop.on("paid", backoff=QUICK, max_attempts=4)
def fulfil(event: Event, ctx: Context) -> None:
    order = {"sku": event.json().get("sku", "tea")}
    made = ctx.effect("order", lambda _: ctx.http("crm").post("/orders", json=order).json())
    ctx.http("crm").post("/notes", json={"order": made["id"]}, effect="note")


@shop.on("refunded")
def refund(event: Event, ctx: Context) -> None:
    amount = event.json()["amount"]
    ctx.effect("refund", lambda _: {"refunded": amount}, args={"amount": amount}, approve=True)


@shop.on("keyless", backoff=QUICK)
def keyless(event: Event, ctx: Context) -> None:
    ctx.http("old").post("/print", json={"id": event.id}, effect="print")


@shop.on("secret")
async def whisper(event: Event, ctx: Context) -> None:
    await ctx.aeffect("whisper", _whispered(ctx.secret("password")))


def _whispered(word: str) -> Any:
    async def whisper(_: str) -> dict[str, int]:
        return {"letters": len(word)}

    return whisper


@shop.on("waits")
def wait(event: Event, ctx: Context) -> None:
    if ctx.attempt == 1 and "done" not in event.headers:
        raise Deferred(event.received_at + timedelta(hours=2), "not before two hours are over")


@shop.on("never")
def never(event: Event, ctx: Context) -> None:
    raise Deferred(ctx.deadline + timedelta(minutes=1))


@shop.on("broken", max_attempts=2, backoff=QUICK)
def broken(event: Event, ctx: Context) -> None:
    raise Transient("it is raining")


@shop.on("wrong")
def wrong(event: Event, ctx: Context) -> None:
    raise Permanent("no such thing")


@shop.on("asked", policy=lambda event, ctx: Hold("who is that?"))
def ask(event: Event, ctx: Context) -> None:
    ctx.effect("greet", lambda: "hello")


@shop.on("job")
def job(event: Event, ctx: Context) -> None:
    made = ctx.wait_for("render", lambda key, token: {"job": str(key)}, timeout="10h")
    ctx.effect("file", lambda _: made)
