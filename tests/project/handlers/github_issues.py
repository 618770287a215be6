"""An example: announces new issues and counts every event of a repository."""

import asyncio
from typing import Final

from webhook_inbox import Context, Event, Router

github: Final = Router("github")


@github.on("issues.opened", "issues.reopened", destinations=["sink"])
def announce(event: Event, ctx: Context) -> None:
    """Posts one message an issue."""
    issue = event.json().get("issue", {})
    text = f"#{issue.get('number')} {issue.get('title')}"
    ctx.http("sink").post("/messages", json={"text": text}, effect="announce")


@github.on("*", destinations=["sink"])
async def count(event: Event, ctx: Context) -> None:
    """Counts an event; async, to show that a handler may be."""
    post = ctx.http("sink").post
    await asyncio.to_thread(post, "/counts", json={"type": event.type}, effect="count")
