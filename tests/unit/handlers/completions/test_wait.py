"""A run waits for its job, spends no attempt on it, and gets its result once and for ever."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.handlers.completions.job_stage import Labour, Lost, refuse
from webhook_inbox import Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secrets import COMPLETION_KEY
from webhook_inbox.handlers.completions.receiver import CompletionOutcome

QUARTER = 15 * 60


@pytest.fixture
def labour() -> Labour:
    return Labour()


# -- the job is started once, and waited for


def test_a_run_waits_without_spending_an_attempt(labour: Labour) -> None:
    labour.begin()

    run = labour.world.run()
    assert (run.status, run.attempt_count, run.waits_for) == (
        Status.DEFERRED,
        0,
        "completion of render",
    )
    assert run.last_error == "started 2026-01-01T00:00:00Z, to end by 2026-01-02T00:00:00Z"
    assert labour.returned == []


def test_a_completed_job_gives_its_result_at_once(labour: Labour) -> None:
    labour.begin()

    assert labour.complete() is CompletionOutcome.RECORDED
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    run = labour.world.run()
    assert (run.status, run.attempt_count) == (Status.DONE, 1)
    assert len(labour.started) == 1


def test_it_looks_by_itself_every_quarter_of_an_hour_and_starts_nothing(labour: Labour) -> None:
    """By a message that SQS delays: the reconciler has nothing to do with it."""
    labour.begin()
    for _ in range(20):
        due = labour.world.run().next_attempt_at
        assert due is not None
        assert timedelta(0) < due - labour.world.now <= timedelta(minutes=15)
        assert not labour.world.run().parked
        labour.pass_seconds(QUARTER + 1)

    assert len(labour.started) == 1
    assert labour.world.run().attempt_count == 0


def test_waits_and_results_cost_so_many_calls_and_no_more(labour: Labour) -> None:
    labour.begin()
    labour.pass_seconds(QUARTER + 1)
    labour.world.plan.operations()

    labour.complete()
    assert labour.world.plan.operations() == [
        "GetItem",  # the wait
        "GetItem",  # the run: is it alive?
        "UpdateItem",
        "GetItem",  # the run: does it wait?
        "UpdateItem",
        "SendMessageBatch",
    ]


def test_its_result_is_returned_in_every_later_attempt(labour: Labour) -> None:
    labour.allow(9)
    troubles = [Transient("first"), Transient("second")]

    def stumble(wait: Any) -> Any:
        result = wait()
        if troubles:
            raise troubles.pop()
        return result

    labour.around = stumble
    labour.begin()
    labour.complete()
    labour.world.run_until_quiet()

    assert labour.returned == [{"pages": 3}]
    assert labour.world.run().attempt_count == 3
    assert len(labour.started) == 1


def test_two_jobs_are_waited_for_one_after_the_other(labour: Labour) -> None:
    def start(key: Any, token: Any) -> None:
        labour.started.append((key, token))

    labour.world.behaviours["acme.fulfil"] = lambda event, ctx: labour.returned.append(
        [ctx.wait_for(name, start) for name in "ab"]
    )
    labour.begin()
    assert labour.world.run().waits_for == "completion of a"
    labour.complete(body={"result": 1})
    labour.world.work()
    assert labour.world.run().waits_for == "completion of b"
    labour.complete(body={"result": 2})
    labour.world.work()

    assert labour.returned == [[1, 2]]


async def _hand_over(labour: Labour, key: Any, token: Any) -> dict[str, str]:
    labour.started.append((key, token))
    return {"job": key}


@pytest.mark.parametrize("polls", [True, False])
def test_a_coroutine_waits_just_the_same(labour: Labour, polls: bool) -> None:
    async def ask(job: Any) -> Any:
        return {"polled": job["job"][:6]} if labour.world.now.minute else None

    def behave(event: Any, ctx: Any) -> None:
        poll = ask if polls else None
        wait = ctx.await_for("render", lambda k, t: _hand_over(labour, k, t), poll=poll)
        labour.returned.append(asyncio.run(wait))

    labour.world.behaviours["acme.fulfil"] = behave
    labour.begin()
    assert labour.world.run().status is Status.DEFERRED
    if not polls:
        labour.complete()
    labour.pass_seconds(61)

    assert labour.returned == [{"polled": "render"} if polls else {"pages": 3}]
    assert len(labour.started) == 1


def test_a_coroutine_function_is_refused_where_it_would_not_be_awaited(labour: Labour) -> None:
    async def start(key: Any, token: Any) -> Any:
        return await _hand_over(labour, key, token)

    labour.world.behaviours["acme.fulfil"] = lambda _, ctx: ctx.wait_for("render", start)
    labour.world.deliver()
    labour.world.work()

    run = labour.world.run()
    assert (run.status, labour.started) == (Status.DEAD_LETTER, [])
    assert "'render': it is given a coroutine function" in run.last_error


# -- in time, or not


def test_what_is_not_completed_in_time_dies_and_says_so() -> None:
    labour = Labour(timeout="1h")
    labour.begin()
    labour.world.run_until_quiet()

    run = labour.world.run()
    assert run.status is Status.DEAD_LETTER
    assert run.last_error == "permanent: render was not completed within 1:00:00"
    assert run.attempt_count == 1
    assert labour.world.now >= run.first_at + timedelta(hours=1)  # type: ignore[operator]


def test_a_handler_that_goes_on_without_it_sees_the_same_in_every_attempt() -> None:
    """A late result is not returned beside the one that was used instead."""
    labour = Labour(timeout="1m")
    seen: list[str] = []

    def instead(wait: Any) -> Any:
        try:
            return seen.append(wait())
        except Permanent:
            seen.append("instead")
        if len(seen) < 2:
            raise Transient("stumbles")
        return None

    labour.around = instead
    labour.begin()
    labour.pass_seconds(61)
    assert seen == ["instead"]
    assert labour.complete() is CompletionOutcome.LATE
    labour.world.run_until_quiet()

    assert seen == ["instead", "instead"]


def test_a_replay_waits_for_the_same_job_again() -> None:
    labour = Labour(timeout="1h")
    first = labour.begin()
    labour.world.run_until_quiet()

    labour.world.replay(requested_by="kim", reason="it is slow", event_ids=["evt-1"], source="acme")
    labour.world.work()
    assert labour.world.run().status is Status.DEFERRED
    assert labour.complete(first) is CompletionOutcome.RECORDED
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    assert len(labour.started) == 1


def test_what_came_late_is_found_by_a_replay() -> None:
    labour = Labour(timeout="1h")
    labour.begin()
    labour.world.run_until_quiet()

    assert labour.complete() is CompletionOutcome.LATE
    assert labour.complete() is CompletionOutcome.LATE
    assert labour.complete(body={"result": "another"}) is CompletionOutcome.CONFLICT
    assert labour.world.run().status is Status.DEAD_LETTER
    labour.world.clock.advance(minutes=1)
    labour.world.redrive()
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    assert labour.world.run().status is Status.DONE


def test_what_failed_late_is_started_anew_by_a_replay() -> None:
    labour = Labour(timeout="1h")
    labour.begin()
    labour.world.run_until_quiet()
    labour.complete(body={"error": "out of paper"})
    labour.world.clock.advance(minutes=1)
    labour.world.redrive()
    labour.world.work()

    assert [str(key).partition(":acme")[0] for key, _ in labour.started] == ["render", "render:2"]


def test_the_time_begins_when_the_job_is_started() -> None:
    """A person who takes two days to approve it has not used the job's hour up."""
    labour = Labour(timeout="1h", approve=True)
    labour.world.deliver()
    labour.world.work()
    assert labour.world.run().status is Status.HELD
    labour.world.clock.advance(hours=48)
    approval = {"fingerprint": "", "by": "kim", "reason": "fine", "at": 1}
    labour.world.alter(
        status="pending", approvals={"effect:render": approval}, held=None, lease_id=None
    )
    labour.world.drop_messages()
    labour.world.replay(requested_by="kim", reason="go", event_ids=["evt-1"], source="acme")
    labour.world.work()

    assert len(labour.started) == 1
    assert labour.world.run().status is Status.DEFERRED
    labour.pass_seconds(3000)
    assert labour.complete() is CompletionOutcome.RECORDED


# -- jobs that fail


def test_a_job_that_failed_for_good_ends_the_run(labour: Labour) -> None:
    labour.begin()
    assert labour.complete(body={"error": "no such template"}) is CompletionOutcome.RECORDED
    labour.world.work()

    run = labour.world.run()
    assert run.status is Status.DEAD_LETTER
    assert run.last_error == "permanent: render failed: no such template"
    assert (run.attempt_count, len(labour.started)) == (1, 1)


def test_a_job_that_may_be_retried_spends_an_attempt_and_is_started_anew(labour: Labour) -> None:
    first = labour.begin()
    labour.complete(body={"error": "out of paper", "retry": True})
    labour.world.work()
    run = labour.world.run()
    assert (run.status, run.attempt_count) == (Status.FAILED, 1)
    labour.pass_seconds(600)

    assert [str(key) for key, _ in labour.started] == [
        "render:acme.fulfil:acme:evt-1",
        "render:2:acme.fulfil:acme:evt-1",
    ]
    second = labour.token
    assert second != first
    assert labour.complete(first) is CompletionOutcome.OVER
    assert labour.complete(second) is CompletionOutcome.RECORDED
    labour.world.work()
    assert labour.returned == [{"pages": 3}]


def test_each_job_has_a_row_of_its_own_beside_its_effect(labour: Labour) -> None:
    labour.begin()
    labour.complete(body={"error": "out of paper", "retry": True})
    labour.world.work()
    labour.pass_seconds(600)

    rows = {row["sk"]: row for row in labour.world.table if row["sk"].startswith("wait#")}
    assert {key: (row["status"], row["number"]) for key, row in rows.items()} == {
        "wait#acme.fulfil#render": ("again", 1),
        "wait#acme.fulfil#render:2": ("waiting", 2),
    }
    assert rows["wait#acme.fulfil#render"]["error"] == "out of paper"
    assert labour.effect("render:2")["status"] == "committed"


def test_retries_end_with_the_attempts(labour: Labour) -> None:
    labour.world.deliver()
    for _ in range(3):
        labour.pass_seconds(3600)
        labour.complete(body={"error": "out of paper", "retry": True})
        labour.world.work()

    run = labour.world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 3)
    assert len(labour.started) == 3


def test_a_replay_of_a_run_that_died_of_its_job_starts_another(labour: Labour) -> None:
    labour.begin()
    labour.complete(body={"error": "no such template"})
    labour.world.work()
    labour.world.clock.advance(minutes=1)
    labour.world.replay(requested_by="kim", reason="made one", event_ids=["evt-1"], source="acme")
    labour.world.work()

    assert len({token for _, token in labour.started}) == 2
    assert labour.complete() is CompletionOutcome.RECORDED
    labour.world.work()
    assert labour.returned == [{"pages": 3}]


def test_a_downstream_that_takes_no_such_job_ends_the_run(labour: Labour) -> None:
    labour.starting = refuse
    labour.begin()

    run = labour.world.run()
    assert (run.status, run.last_error) == (Status.DEAD_LETTER, "permanent: 422: no such template")
    assert labour.effect()["status"] == "failed"


def test_a_run_that_died_of_something_else_waits_on_after_a_replay(labour: Labour) -> None:
    labour.begin()
    labour.world.alter(status="dead_letter", dead_at=1, lease_id=None, next_attempt_at=None)
    labour.world.drop_messages()
    assert labour.complete() is CompletionOutcome.LATE
    labour.world.replay(requested_by="kim", reason="why not", event_ids=["evt-1"], source="acme")
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    assert len(labour.started) == 1


def hurry(labour: Labour) -> None:
    """An operator replays a run that waits."""
    labour.world.clock.advance(minutes=1)
    labour.world.replay(requested_by="kim", reason="hurry", event_ids=["evt-1"], source="acme")
    labour.world.work()
    labour.world.clock.advance(minutes=1)


def test_a_job_that_fails_after_a_replay_ends_the_run_all_the_same(labour: Labour) -> None:
    labour.begin()
    hurry(labour)
    assert labour.complete(body={"error": "no such template"}) is CompletionOutcome.RECORDED
    labour.world.work()

    run = labour.world.run()
    assert (run.status, len(labour.started)) == (Status.DEAD_LETTER, 1)


def test_a_replay_of_a_run_that_waits_gives_its_job_no_more_time() -> None:
    labour = Labour(timeout="1h")
    labour.begin()
    until = labour.row["until"]
    hurry(labour)
    labour.world.run_until_quiet()

    assert labour.row["until"] == until
    assert "was not completed within 1:00:00" in labour.world.run().last_error


def test_what_failed_after_the_run_had_died_is_started_anew_by_a_redrive(labour: Labour) -> None:
    labour.options = {"poll": refuse_to_say}
    labour.begin()
    labour.pass_seconds(61)
    assert labour.world.run().status is Status.DEAD_LETTER
    labour.world.clock.advance(minutes=1)
    assert labour.complete(body={"error": "out of paper"}) is CompletionOutcome.LATE
    labour.options = {}
    labour.world.run_until_quiet()
    labour.world.redrive()
    labour.world.work()

    assert len({token for _, token in labour.started}) == 2


def refuse_to_say(job: Any) -> Any:
    raise Permanent("401: the key is wrong")


# -- starts that are in doubt


def test_a_worker_that_is_lost_at_the_start_hands_out_the_same_token_again(labour: Labour) -> None:
    def die(key: Any, token: Any) -> None:
        labour.world.plan.fail("UpdateItem", times=5)
        raise Lost

    labour.starting = die
    labour.begin()
    labour.world.plan.heal()
    labour.starting = lambda key, token: {"job": 7}
    labour.world.clock.advance(seconds=400)
    labour.world.work()

    (first, again) = labour.started
    assert first == again


def test_a_job_that_ends_tells_that_it_was_started() -> None:
    """No person has to decide then, although the start was never recorded."""
    labour = Labour(in_doubt="hold")

    def die(key: Any, token: Any) -> None:
        raise RuntimeError("the connection broke")

    labour.starting = die
    labour.begin()
    labour.world.clock.advance(seconds=400)
    labour.world.work()
    assert labour.world.run().status is Status.HELD

    assert labour.complete() is CompletionOutcome.RECORDED
    labour.world.work()
    assert labour.returned == [{"pages": 3}]
    assert labour.world.run().status is Status.DONE
    assert len(labour.started) == 1


# -- polling


def test_a_poll_is_asked_in_its_interval_and_costs_no_attempt() -> None:
    asked: list[Any] = []

    def ask(job: Any) -> Any:
        asked.append(job)
        return {"pages": 9} if len(asked) == 3 else None

    labour = Labour(poll=ask, every="30s")
    labour.begin()
    assert asked == []
    for expected in (1, 2, 3):
        labour.pass_seconds(31)
        assert len(asked) == expected

    assert asked[0] == {"job": "render:acme.fulfil:acme:evt-1"}
    assert labour.returned == [{"pages": 9}]
    assert labour.world.run().attempt_count == 1
    assert labour.row["ended_by"] == "poll"


def test_a_completion_comes_before_the_next_poll() -> None:
    labour = Labour(poll=lambda job: None)
    labour.begin()
    labour.complete()
    labour.world.work()

    assert labour.returned == [{"pages": 3}]


def test_a_poll_that_fails_finds_nothing_and_says_why() -> None:
    def ask(job: Any) -> Any:
        raise Transient("503 from the printer", retry_after=timedelta(minutes=5))

    labour = Labour(poll=ask)
    labour.begin()
    labour.pass_seconds(61)

    run = labour.world.run()
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert "; the poll failed: 503 from the printer" in run.last_error
    assert run.next_attempt_at is not None
    assert timedelta(minutes=4) < run.next_attempt_at - labour.world.now <= timedelta(minutes=5)


def test_a_poll_that_is_refused_for_good_ends_the_run_and_not_its_job() -> None:
    def ask(job: Any) -> Any:
        raise Permanent("401: the key is wrong")

    labour = Labour(poll=ask)
    labour.begin()
    labour.pass_seconds(61)

    assert labour.world.run().status is Status.DEAD_LETTER
    assert labour.row["status"] == "waiting"


def test_a_poll_may_find_what_cannot_be_kept() -> None:
    labour = Labour(poll=lambda job: object())
    labour.begin()
    labour.pass_seconds(61)

    assert "wait 'render': its result is not JSON" in labour.world.run().last_error


# -- what cannot be waited for


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": "soon"}, "wait 'render': timeout: \"soon\" is not a duration"),
        ({"timeout": timedelta(days=29)}, "use one second to 28 days"),
        ({"timeout": timedelta(0)}, "use one second to 28 days"),
        ({"poll": print, "every": timedelta(days=-1)}, "wait 'render': every is -1 day"),
    ],
)
def test_a_time_that_is_none_is_refused_before_anything_happens(
    options: dict[str, Any], said: str
) -> None:
    labour = Labour(**options)
    labour.world.deliver()
    labour.world.work()

    assert said in labour.world.run().last_error
    assert labour.started == []
    assert not [row for row in labour.world.table if row["sk"].startswith("wait#")]


@pytest.mark.parametrize("name", ["", "a#b", "Ä", "x" * 121])
def test_a_name_that_is_none_is_refused(labour: Labour, name: str) -> None:
    labour.world.behaviours["acme.fulfil"] = lambda event, ctx: ctx.wait_for(name, refuse)
    labour.world.deliver()
    labour.world.work()

    run = labour.world.run()
    assert run.status is Status.DEAD_LETTER
    assert "a name" in run.last_error


@pytest.mark.parametrize("ended", [True, False])
def test_a_name_is_used_once_in_an_attempt(labour: Labour, ended: bool) -> None:
    labour.begin()
    labour.world.behaviours["acme.fulfil"] = lambda event, ctx: (
        ctx.effect("render", lambda: 1),
        ctx.wait_for("render", refuse),
    )
    if ended:
        labour.complete()
    labour.pass_seconds(QUARTER + 1)

    assert "named twice" in labour.world.run().last_error


def test_a_wait_inside_of_an_effect_is_refused_before_anything_happens(labour: Labour) -> None:
    labour.world.behaviours["acme.fulfil"] = lambda event, ctx: ctx.effect(
        "outer", lambda: ctx.wait_for("render", refuse)
    )
    labour.world.deliver()
    labour.world.work()

    assert "wait 'render' is inside an effect" in labour.world.run().last_error
    assert labour.world.overview().waits == ()


def test_without_a_key_nothing_is_begun(labour: Labour) -> None:
    labour.world.vault.remove(COMPLETION_KEY)
    labour.world.deliver()
    labour.world.work()

    run = labour.world.run()
    assert (run.status, labour.started) == (Status.FAILED, [])
    assert "'inbox/completion-key', which the stack creates, has no value" in run.last_error


def test_a_business_key_is_refused_since_a_token_is_one_runs() -> None:
    """Shared, the job would be started once, and the other event's token never handed out."""
    labour = Labour(key="invoice:7")
    labour.world.deliver()
    labour.world.work()
    run = labour.world.run()
    assert run.status is Status.DEAD_LETTER
    assert "wait_for 'render' takes no key" in run.last_error
    assert labour.started == []
