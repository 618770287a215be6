"""Handlers of a lane whose processor makes several runs at the same time."""

import threading
from typing import Final

from aws_lambda_powertools import Logger

from webhook_inbox import Context, Event, Router

waiting: Final = Router("waiting", source="acme")
# Only as many runs at the same time get through.
MET: Final = threading.Barrier(3)
HANGING: Final = threading.Event()
# Ends a test that hangs.
LONG: Final = 600.0


@waiting.on("meeting", lane="waiting", backoff="fast", timeout=55)
def meet(event: Event, ctx: Context) -> None:
    """Waits for the other runs; then does as its event says."""
    told = event.json()["told"]
    if told == "hang" and ctx.attempt == 1:
        HANGING.wait(LONG)
    elif told in {"meet", "fail"}:
        MET.wait(LONG)
    Logger().info("met", extra={"told": told})
    if told != "alone":  # An effect would need two seconds more of the attempt.
        ctx.effect("meeting", lambda key: ctx.event_id)
    if told == "fail":
        raise ValueError("the meeting failed")
