"""YOURS, an example: a language model plans, and what it plans is done once.

A model that is asked twice plans twice, and differently. So the plan is an effect: it is recorded
before anything of it is done, and every later attempt carries on with the plan it finds. Each step
of it is an effect of its own, and what cannot be taken back waits for a person.

Models know no idempotency keys. A worker that dies while the model thinks leaves the plan in
doubt, and asking again is safe: nothing was done yet, and only the answer that is recorded counts.
The tools have to know the key of a step; for one that does not, give `in_doubt="hold"`, or a
`probe` that finds out whether the step was done, as slack.py has one.
"""

from typing import Any, Final

from pydantic import BaseModel

from webhook_inbox import Context, Event, Permanent, Router

agent: Final = Router("agent", source="slack")

# What the model may ask for, and whether a person has to agree first.
TOOLS: Final = {"look-up": False, "reply": False, "refund": True}
MOST_STEPS: Final = 20


class Step(BaseModel):
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any] = {}


class Plan(BaseModel):
    """What the model wants done, in this order; what else it says is left alone."""

    steps: list[Step] = []


@agent.on("app_mention", "message", timeout=50, destinations=["model", "sink"])
def hand_over(event: Event, ctx: Context) -> None:
    """Lets the model plan an answer to a Slack message, and does what it planned."""
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
    """Returns the model's answer as a plan, judged as a whole before its first step."""
    try:
        plan = Plan.model_validate(answer)
    except ValueError as error:
        # The answer is recorded: to repeat this run would read the same again.
        raise Permanent(f"the model's answer is no plan: {error}") from error
    unknown = {step.tool for step in plan.steps} - TOOLS.keys()
    if unknown or len(plan.steps) > MOST_STEPS:
        raise Permanent(f"the model plans {len(plan.steps)} steps, unknown: {sorted(unknown)}")
    return plan


def _take(ctx: Context, number: int, step: Step) -> None:
    # The arguments are what a person approves: other ones would have to be approved anew.
    ctx.effect(
        f"{number}:{step.tool}",
        lambda _: ctx.http("sink").post(f"/tools/{step.tool}", json=step.arguments).json(),
        args=step.arguments,
        approve=TOOLS[step.tool],
    )
