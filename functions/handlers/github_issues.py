"""YOURS, an example: announces new issues and counts every event of a repository."""

from typing import Final

import httpx

from handlers._downstream import judged, post, request_for
from webhook_inbox.handling import Context, Event, Router

github: Final = Router("github")


@github.on("issues.opened", "issues.reopened")
def announce(event: Event, ctx: Context) -> None:
    """Posts one message an issue."""
    issue = event.json().get("issue", {})
    text = f"#{issue.get('number')} {issue.get('title')}"
    post(ctx, "/messages", effect="announce", body={"text": text})


@github.on("*")
async def count(event: Event, ctx: Context) -> None:
    """Counts an event; async, to show that a handler may be."""
    async with httpx.AsyncClient(base_url=ctx.destination("sink").base_url, timeout=5) as client:
        judged(await client.post("/counts", json={"type": event.type}, **request_for(ctx, "count")))
