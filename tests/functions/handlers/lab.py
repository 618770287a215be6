"""Handlers that behave in every way a handler can; what they are given is seen in SEEN."""

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from aws_lambda_powertools import Logger

from webhook_inbox import Approval, Context, Deferred, Event, Permanent, Router

lab: Final = Router("lab", source="acme")
SEEN: Final[list[tuple[str, int, str]]] = []
# Where the ends of jobs are told, and what the handler was given in the end.
JOBS: Final[list[str]] = []
RESULTS: Final[list[Any]] = []


def saw(event: Event, ctx: Context) -> None:
    SEEN.append((event.id, ctx.attempt, sha256(event.body).hexdigest()))


@lab.on("lab.fine", "unknown")
def fine(event: Event, ctx: Context) -> None:
    saw(event, ctx)


@lab.on("lab.talk")
def talk(event: Event, ctx: Context) -> None:
    Logger().info("printing the label")


@lab.on("lab.effect")
def note(event: Event, ctx: Context) -> None:
    ctx.effect("note", lambda key: {"id": str(key)})


@lab.on("lab.async")
async def later(event: Event, ctx: Context) -> None:
    saw(event, ctx)


@lab.on("lab.async-raise", backoff="fast")
async def burn_later(event: Event, ctx: Context) -> None:
    raise RuntimeError("the async lab burns")


@lab.on("lab.raise", "lab.both", backoff="fast", max_attempts=3)
def burn(event: Event, ctx: Context) -> None:
    saw(event, ctx)
    raise RuntimeError("the lab burns")


@lab.on("lab.both")
def beside(event: Event, ctx: Context) -> None:
    saw(event, ctx)


@lab.on("lab.permanent")
def refuse(event: Event, ctx: Context) -> None:
    raise Permanent("422 from the lab")


@lab.on("lab.deferred")
def wait(event: Event, ctx: Context) -> None:
    raise Deferred(datetime.now(UTC) + timedelta(hours=2), "the lab is closed")


@lab.on("lab.long")
def long(event: Event, ctx: Context) -> None:
    RESULTS.append(ctx.wait_for("render", lambda key, token: JOBS.append(token.path)))


@lab.on("lab.refund", destinations=["sink"])
def refund(event: Event, ctx: Context) -> None:
    order = event.json()["order"]
    ctx.effect(
        "refund",
        lambda: ctx.http("sink").post("/refunds", json=order).json(),
        args=order,
        approve=Approval(by="finance", count=2, expires="2d"),
    )


@lab.on("lab.leak", backoff="fast")
def leak(event: Event, ctx: Context) -> None:
    raise RuntimeError(f"the vault refused {ctx.secret('vault')}")


@lab.on("lab.unprintable", backoff="fast")
def mumble(event: Event, ctx: Context) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    raise Unprintable


@lab.on("lab.quit", backoff="fast")
def leave(event: Event, ctx: Context) -> None:
    sys.exit(3)


@lab.on("lab.hang", backoff="fast")
def hang(event: Event, ctx: Context) -> None:
    if ctx.attempt == 1:
        time.sleep(600)


@lab.on("lab.die")
def die(event: Event, ctx: Context) -> None:
    if ctx.attempt == 1:
        os._exit(7)
