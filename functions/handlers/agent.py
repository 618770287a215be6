"""YOURS, an example: hands events to an agent, which must act once for each of them.

An agent that is told twice acts twice. It is told under an idempotency key, and its answer is
what the run ends with, so a retry asks for the same task instead of starting another.
"""

from typing import Final

from handlers._downstream import post
from webhook_inbox.handling import Context, Event, Router, Transient

agent: Final = Router("agent", source="slack")


@agent.on("app_mention", "message", timeout=40)
def hand_over(event: Event, ctx: Context) -> None:
    """Gives a Slack message to the agent as a task."""
    message = event.json().get("event", {})
    task = {
        "task": "answer",
        "text": message.get("text", ""),
        "channel": message.get("channel"),
        "received_at": event.received_at.isoformat(),
    }
    answer = post(ctx, "/agent/tasks", effect="task", body=task)
    if not isinstance(answer, dict):
        raise Transient("the agent did not confirm the task")
