"""An example: a language model makes a plan, and each step is performed once.

A model asked twice makes two different plans. So the plan is an effect: it is recorded before its
first step, and every later attempt continues the recorded plan. Each step is an effect of its own,
and an irreversible step waits for approval.

Models have no idempotency keys. If the worker dies while the model answers, the plan is in doubt
and may be requested again: no step has run yet. The tools must honour the key of a step; for a tool
that does not, pass `in_doubt="hold"`, or a `probe` as in slack.py.
"""

from typing import Any, Final

from pydantic import BaseModel

from webhook_inbox import Context, Event, Permanent, Router

agent: Final = Router("agent", source="slack")

# The tools of the model, and whether a person must approve a call.
TOOLS: Final = {"look-up": False, "reply": False, "refund": True}
MOST_STEPS: Final = 20


class Step(BaseModel):
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any] = {}


class Plan(BaseModel):
    """The steps that the model plans, in order; other fields are ignored."""

    steps: list[Step] = []


@agent.on("app_mention", "message", timeout=50, destinations=["model", "sink"])
def hand_over(event: Event, ctx: Context) -> None:
    """Has the model plan an answer to a Slack message, and performs the plan."""
    message = event.json().get("event", {})
    task = {
        "task": "answer",
        "text": message.get("text", ""),
        "channel": message.get("channel"),
        "received_at": event.received_at.isoformat(),
    }
    answer = ctx.effect(
        "task",
        lambda _: ctx.http("model").post("/agent/tasks", json=task).json(),
        args=task,
        needs=30,
    )
    for number, step in enumerate(_plan(answer).steps, start=1):
        _take(ctx, number, step)


def _plan(answer: Any) -> Plan:
    """Returns the model's answer as a plan, validated before its first step."""
    try:
        plan = Plan.model_validate(answer)
    except ValueError as error:
        # The answer is recorded: a retry would read the same one.
        raise Permanent(f"the model's answer is not a plan: {error}") from error
    unknown = {step.tool for step in plan.steps} - TOOLS.keys()
    if unknown or len(plan.steps) > MOST_STEPS:
        raise Permanent(f"the model plans {len(plan.steps)} steps, unknown: {sorted(unknown)}")
    return plan


def _take(ctx: Context, number: int, step: Step) -> None:
    # An approval is valid for these arguments only.
    ctx.effect(
        f"{number}:{step.tool}",
        lambda _: ctx.http("sink").post(f"/tools/{step.tool}", json=step.arguments).json(),
        args=step.arguments,
        approve=TOOLS[step.tool],
    )
