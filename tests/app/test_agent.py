"""The example that lets a model plan, and does what it planned once."""

from typing import Any

import pytest

from webhook_inbox.testing import Fake, HandlerRun, Inbox, Request

MENTION = "events/ingest/slack/app_mention__channel.json"
LOOK_UP = {"tool": "look-up", "arguments": {"invoice": "0D5A5D2A-0003"}}
REPLY = {"tool": "reply", "arguments": {"text": "it was paid"}}
REFUND = {"tool": "refund", "arguments": {"amount": 2000}}


def planned(inbox: Inbox, *plans: Any) -> Fake:
    """Lets the model answer with these plans, one each time that it is asked."""
    waiting = list(plans)

    def answer(_: Request) -> Any:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return inbox.destinations["model"].handles(answer)


def hand_over(inbox: Inbox, **crash: str) -> HandlerRun:
    return inbox.run("agent.hand_over", MENTION, **crash)  # type: ignore[arg-type]


def tools(inbox: Inbox) -> list[str]:
    return [request.path for request in inbox.destinations["sink"].done]


def test_the_model_is_told_what_was_said(inbox: Inbox) -> None:
    run = hand_over(inbox)
    [asked] = inbox.destinations["model"].requests
    assert (run.status, asked.path) == ("done", "/agent/tasks")
    assert asked.json["text"].endswith("what happened to invoice 0D5A5D2A-0003?")
    assert asked.key == "task:agent.hand_over:slack:Ev123ABC456"


def test_what_it_plans_is_done_in_its_order(inbox: Inbox) -> None:
    planned(inbox, {"steps": [LOOK_UP, REPLY], "thoughts": "…"})
    run = hand_over(inbox)
    assert run.status == "done"
    assert tools(inbox) == ["/tools/look-up", "/tools/reply"]
    assert {name for name in run.effects if run.effects[name].committed} == {
        "task",
        "1:look-up",
        "2:reply",
    }


def test_a_retry_does_the_recorded_plan_and_asks_for_no_other(inbox: Inbox) -> None:
    model = planned(inbox, {"steps": [LOOK_UP, REPLY]}, {"steps": [REFUND, REFUND]})

    run = hand_over(inbox, crash_after="1:look-up").settle()

    assert (run.status, run.attempts, len(model.requests)) == ("done", 2, 1)
    assert tools(inbox) == ["/tools/look-up", "/tools/reply"]


def test_a_worker_that_dies_while_the_model_thinks_asks_again_and_nothing_was_done(
    production: Any,
) -> None:
    inbox = production()
    model = planned(inbox, {"steps": [LOOK_UP]}, {"steps": [REPLY]})

    run = hand_over(inbox, crash_before_commit="task").settle()

    assert (run.status, len(model.requests)) == ("done", 2)
    assert run.effects["task"].result == {"steps": [REPLY]}
    assert tools(inbox) == ["/tools/reply"]


def test_a_tool_in_doubt_is_used_under_its_own_key(inbox: Inbox) -> None:
    planned(inbox, {"steps": [REPLY, REPLY]})
    run = hand_over(inbox, crash_before_commit="1:reply").settle()
    assert run.status == "done"
    assert len({request.key for request in inbox.destinations["sink"].requests}) == 2
    assert tools(inbox) == ["/tools/reply", "/tools/reply"]


def test_money_is_not_given_back_before_a_person_agrees(inbox: Inbox) -> None:
    planned(inbox, {"steps": [LOOK_UP, REFUND, REPLY]})

    run = hand_over(inbox)

    assert (run.status, run.error) == ("held", "effect '2:refund' waits for approval")
    assert run.row.held["shows"] == '{"amount": 2000}'
    assert tools(inbox) == ["/tools/look-up"]
    assert run.approve().status == "done"
    assert tools(inbox) == ["/tools/look-up", "/tools/refund", "/tools/reply"]


def test_a_refund_that_is_denied_ends_the_run(inbox: Inbox) -> None:
    planned(inbox, {"steps": [REFUND, REPLY]})
    run = hand_over(inbox).deny("no")
    assert (run.status, tools(inbox)) == ("skipped", [])


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ([], "the model's answer is not a plan"),
        ({"steps": [{"arguments": {}}]}, "the model's answer is not a plan"),
        ({"steps": [LOOK_UP, {"tool": "rm"}]}, "plans 2 steps, unknown: ['rm']"),
        ({"steps": [REPLY] * 21}, "plans 21 steps, unknown: []"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_not_begun(inbox: Inbox, plan: Any, why: str) -> None:
    planned(inbox, plan)
    run = hand_over(inbox)
    assert (run.status, tools(inbox)) == ("dead_letter", [])
    assert why in run.error
