"""An example: posts a failed payment to a Slack channel.

`chat.postMessage` documents no idempotency key (`client_msg_id` is not an argument), so a repeated
call posts a second message. So each message carries its effect's key as metadata, and the probe
searches the channel's history for it. Without the scope `channels:history`, omit `probe` and pass
`in_doubt="hold"`: a person then checks the channel.

https://docs.slack.dev/reference/methods/chat.postMessage
https://docs.slack.dev/reference/methods/conversations.history
"""

from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox import Context, Event, Permanent, Router, Transient

slack: Final = Router("slack", source="stripe")

CHANNEL: Final = "C0123456789"  # YOURS: replace; an id, since the history is not read by name
MARK: Final = "webhook_inbox"
PAGES: Final = 10
SKEW: Final = timedelta(minutes=5)  # clock skew
LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
# Transient errors. After any but those of a rate limit, the message may have been posted.
PASSING: Final = frozenset({"fatal_error", "internal_error", "service_unavailable", *LIMITED})


@slack.on("invoice.payment_failed", destinations=["slack"])
def tell(event: Event, ctx: Context) -> None:
    """Posts one message an event."""
    invoice = event.json()["data"]["object"]
    text = f"Payment of {invoice.get('number')} by {invoice.get('customer_email')} failed"

    def post(key: str) -> Any:
        mark = {"event_type": MARK, "event_payload": {"key": key}}
        body = {"channel": CHANNEL, "text": text, "metadata": mark}
        return _judged(ctx.http("slack").post("/chat.postMessage", json=body).json())

    def find(key: str) -> Any:
        return _posted(ctx, key, since=event.received_at - SKEW)

    ctx.effect("tell", post, probe=find, args={"channel": CHANNEL, "text": text})


def _posted(ctx: Context, key: str, *, since: datetime) -> dict[str, Any] | None:
    """Returns the message with this key, or None if the channel has none since the event."""
    query = {"channel": CHANNEL, "oldest": str(since.timestamp()), "include_all_metadata": "true"}
    for _ in range(PAGES):
        answer = ctx.http("slack").get("/conversations.history", params=query)
        found = _judged(answer.json())
        for message in found.get("messages", ()):
            mark = message.get("metadata", {})
            if mark.get("event_type") == MARK and mark.get("event_payload", {}).get("key") == key:
                return {"ok": True, "ts": message["ts"]}
        query["cursor"] = found.get("response_metadata", {}).get("next_cursor", "")
        if not query["cursor"]:
            return None
    raise Transient(f"{CHANNEL} has too many messages since then to search")


def _judged(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns an answer; Slack reports errors with status 200."""
    error = answer.get("error", "") if answer.get("ok") is False else ""
    if error in PASSING:
        raise Transient(f"slack: {error}", refused=error in LIMITED)
    if error:
        # Nothing was posted, despite the status 200.
        raise Permanent(f"slack: {error}", refused=True)
    return answer
