"""Handlers that say their secrets in every way, and calls to a destination that repeats its own."""

import base64
import json
from typing import Any, Final
from urllib.parse import quote, quote_plus

from aws_lambda_powertools import Logger

from webhook_inbox import Context, Event, Held, Permanent, Router, Skipped, Transient

bot: Final = Router("hostile", source="bot")
TOKENS: Final[list[str]] = []


def spellings(secret: str) -> list[str]:
    """Returns a secret as programs write it."""
    raw = secret.encode()
    return [
        secret,
        repr(secret)[1:-1],
        json.dumps(secret)[1:-1],
        raw.hex(),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(f"user:{secret}".encode()).decode(),
        quote(secret, safe=""),
        quote_plus(secret),
    ]


def said(ctx: Context) -> str:
    """Returns the secret in every spelling."""
    return " | ".join(spellings(ctx.secret("vault")))


@bot.on("raises", max_attempts=1)
def raises(event: Event, ctx: Context) -> None:
    try:
        raise KeyError(said(ctx))
    except KeyError as error:
        raise RuntimeError(f"caused by {said(ctx)}") from error


@bot.on("group", max_attempts=1)
def group(event: Event, ctx: Context) -> None:
    error = ValueError(said(ctx))
    error.add_note(f"note: {said(ctx)}")
    raise ExceptionGroup(said(ctx), [error])


ERRORS: Final = {"retried": Transient, "refused": Permanent, "skipped": Skipped, "held": Held}


@bot.on(*ERRORS, max_attempts=2, backoff="fast")
def ends(event: Event, ctx: Context) -> None:
    raise ERRORS[event.type](f"it was {said(ctx)}")


@bot.on("effects", max_attempts=1)
def effects(event: Event, ctx: Context) -> None:
    ctx.effect("result", lambda key: {said(ctx): [said(ctx)]}, args={"with": said(ctx)})
    ctx.effect("doubt", lambda key: fail(TimeoutError(said(ctx))))


@bot.on("refused-effect", max_attempts=1)
def refused_effect(event: Event, ctx: Context) -> None:
    ctx.effect("refused", lambda key: fail(Permanent(said(ctx))))


@bot.on("asks", max_attempts=1)
def asks(event: Event, ctx: Context) -> None:
    ctx.hold(f"may it be {said(ctx)}", shows=said(ctx))


@bot.on("calls", max_attempts=1)
def calls(event: Event, ctx: Context) -> None:
    ctx.http("leaky").post(event.json()["path"], json={"x": 1}, effect="call")


@bot.on("waits", max_attempts=1)
def waits(event: Event, ctx: Context) -> None:
    def start(key: str, token: Any) -> Any:
        TOKENS.append(str(token))
        return {"job": str(token)}

    ctx.wait_for("job", start)


@bot.on("logs", max_attempts=1)
def logs(event: Event, ctx: Context) -> None:
    Logger().info("nothing secret")


def fail(error: Exception) -> None:
    raise error
