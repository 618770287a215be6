"""Handlers that do what the event asks of them.

An event's body may hold `mood`, what to do after the effect, and `while`, a file: the mood lasts
as long as the file exists. Removing it corresponds to a fix in the destination or the handler. With
the mood "die once" the handler removes the file before it dies.
"""

import os
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from handlers._downstream import post
from webhook_inbox import Backoff, Context, Event, Router, serial

lab: Final = Router("lab")
LOOK: Final = 0.02  # seconds between two looks at the file
# A hundred attempts take 12 minutes on average, longer than a test waits for any state. The first
# waits are a second, and an outage of a test usually ends within them.
PATIENT: Final = Backoff(base=0.5, factor=2.0, cap=15.0)


@lab.on("digest")
def digest(event: Event, ctx: Context) -> None:
    """Sends the digest of the received body to the sink."""
    body = {"sha256": sha256(event.body).hexdigest(), "size": len(event.body)}
    post(ctx, "/digests", effect="digest", body=body)


@lab.on("task", backoff="fast", max_attempts=2)
def work(event: Event, ctx: Context) -> None:
    """Has two attempts."""
    _obey(event, ctx)


@lab.on("brief", backoff="fast", max_attempts=2, timeout=30)
def hurry(event: Event, ctx: Context) -> None:
    """Has 30 seconds: in these, others of its lane are done on a slow machine as well."""
    _obey(event, ctx)


@lab.on("twin")
def lead(event: Event, ctx: Context) -> None:
    """Shares its events with a handler whose module cannot be imported."""
    post(ctx, "/lab", effect="lead", body={"event": event.id})


@lab.on("lethal", backoff="fast", max_attempts=2, lane="fragile")
def gamble(event: Event, ctx: Context) -> None:
    """Has two attempts in a lane of its own."""
    _obey(event, ctx)


@lab.on("patient", backoff=PATIENT, max_attempts=100, lane="fragile")
def endure(event: Event, ctx: Context) -> None:
    """Has more attempts than any outage here can use up, in a lane of its own."""
    _obey(event, ctx)


@lab.on("booking", order=serial("account"), backoff=PATIENT, max_attempts=100, lane="accounts")
def book(event: Event, ctx: Context) -> None:
    """Takes an account's events in order, and goes on after a death."""
    _obey(event, ctx)


@lab.on("seal", order=serial("account", on_dead="block"), max_attempts=1, lane="accounts")
def seal(event: Event, ctx: Context) -> None:
    """Takes an account's events in order, and stops after a death."""
    _obey(event, ctx)


def _obey(event: Event, ctx: Context) -> None:
    post(ctx, "/lab", effect="work", body={"event": event.id})
    wish: dict[str, Any] = event.json()
    if not Path(wish.get("while", "/nonexistent")).exists():
        return
    if wish["mood"] == "raise":
        raise RuntimeError("the handler's own words")
    if wish["mood"] == "die once":
        Path(wish["while"]).unlink()
    if wish["mood"].startswith("die"):
        os._exit(3)
    while Path(wish["while"]).exists():
        time.sleep(LOOK)
