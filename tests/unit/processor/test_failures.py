"""Handlers that fail: what each failure leads to, and what the ledger shows of it (G8, G9)."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import MANIFEST, MAX_RECEIVES, World, handler, with_handlers
from webhook_inbox.domain.errors import (
    ConditionFailed,
    Deferred,
    HandlerTimedOut,
    Held,
    Permanent,
    Transient,
    Unavailable,
)
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.queue.outcomes import RunOutcome, RunResult


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class NotText(Exception):
    def __str__(self) -> str:
        return 42  # type: ignore[return-value]  # noqa: PLE0307 - the mistake itself


def first_result(world: World) -> RunResult:
    world.deliver()
    result = world.work_once()
    assert result is not None
    return result


# -- transient

ANYTHING = [
    ValueError("wrong"),
    KeyError("missing"),
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    RecursionError("too deep"),
    MemoryError(),
    StopIteration(),
    Unprintable(),
    NotText(),
    Transient("down"),
    Unavailable("s3", "GetObject", "down"),
    ConditionFailed(None),
    ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
    BaseException("the root of all"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    Exception("\ud800 is no text"),
    Exception("x" * 100_000),
]


@pytest.mark.parametrize("error", ANYTHING, ids=lambda error: type(error).__name__)
def test_whatever_a_handler_raises_is_tried_again_and_shown(
    world: World, error: BaseException
) -> None:
    world.script("acme.fulfil", error)
    result = first_result(world)
    assert (result.outcome, result.keeps_message) == (RunOutcome.FAILED, False)
    assert result.error is error
    run = world.run()
    assert run.status is Status.FAILED
    assert run.last_error
    assert [attempt.outcome for attempt in run.attempts] == ["failed"]

    world.run_until_quiet()
    assert world.run().status is Status.DONE


def test_a_foreign_error_is_shown_with_its_class(world: World) -> None:
    world.script("acme.fulfil", KeyError("invoice"))
    first_result(world)
    assert world.run().last_error == "KeyError: 'invoice'"


def test_our_own_errors_are_shown_by_their_text(world: World) -> None:
    world.script("acme.fulfil", Transient("the CRM is down"))
    first_result(world)
    assert world.run().last_error == "the CRM is down"


def test_an_error_that_cannot_be_printed_says_so(world: World) -> None:
    world.script("acme.fulfil", Unprintable())
    first_result(world)
    assert world.run().last_error == "Unprintable: (its text cannot be printed)"


# -- exhausted


def test_what_a_handler_shows_need_not_be_text(world: World) -> None:
    odd: Any = {"amount": 42}
    world.script("acme.fulfil", Held("look", shows=odd))
    world.deliver()

    assert world.work() == [RunOutcome.HELD]
    assert world.run().held["shows"] == "{'amount': 42}"


def test_the_last_of_its_attempts_makes_a_run_dead(world: World) -> None:
    world.fails("acme.fulfil", Transient("down"))
    world.deliver()
    world.run_until_quiet()
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 3)
    assert run.last_error == "exhausted: down"
    assert [attempt.number for attempt in run.attempts] == [1, 2, 3]


def test_it_is_dead_when_its_last_attempt_ends_not_a_wait_later() -> None:
    world = World(with_handlers(handler("acme.fulfil", max_attempts=1)))
    world.fails("acme.fulfil", Transient("down"))
    assert first_result(world).outcome is RunOutcome.DEAD
    assert world.run().dead_at == world.now


def test_the_message_of_a_dead_run_is_moved_to_the_dlq_by_the_queue(world: World) -> None:
    world.fails("acme.fulfil", Transient("down"))
    world.deliver()
    world.plan.operations()
    world.run_until_quiet()
    (body,) = world.dlqs["default"].bodies
    assert '"event_id":"evt-1"' in body


@pytest.mark.parametrize("attempts", [1, 2, 8])
def test_exhaustion_is_counted_in_attempts_not_in_receives(attempts: int) -> None:
    spec = handler("acme.fulfil", max_attempts=attempts, backoff=Backoff(base=0.1, cap=0.1))
    world = World(with_handlers(spec))
    world.fails("acme.fulfil", Transient("down"))
    world.deliver()
    for _ in range(5):  # throttled: received, never processed
        world.queues["default"].hide(world.taken().receipt, 0)
    world.run_until_quiet()
    assert len(world.handled) == attempts


def test_fewer_attempts_after_a_deployment_end_a_run_at_its_next_message(world: World) -> None:
    world.script("acme.fulfil", Transient("down"), Transient("down"))
    world.deliver()
    world.work()
    world.deploy(with_handlers(handler("acme.fulfil", max_attempts=1)))
    world.run_until_quiet()
    run = world.run()
    assert run.status is Status.DEAD_LETTER
    assert run.last_error == "exhausted: down"
    assert len(world.handled) == 1


# -- permanent


def test_a_permanent_failure_is_dead_at_once(world: World) -> None:
    world.script("acme.fulfil", Permanent("no such customer"))
    assert first_result(world).outcome is RunOutcome.DEAD
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 1)
    assert run.last_error == "permanent: no such customer"
    assert run.dead_at == world.now


def test_a_body_that_is_not_what_the_handler_reads_is_permanent(world: World) -> None:
    world.behaviours["acme.fulfil"] = lambda event, ctx: event.json()
    world.deliver(body=b"not json")
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    assert "not JSON" in world.run().last_error


def test_a_dead_run_is_buried_in_seconds_and_not_retried(world: World) -> None:
    world.script("acme.fulfil", Permanent("no"))
    world.deliver()
    outcomes = world.work()
    assert outcomes == [RunOutcome.DEAD] + [RunOutcome.TO_DLQ] * (MAX_RECEIVES - 1)
    assert len(world.handled) == 1
    assert len(world.dlqs["default"]) == 1


# -- modules that cannot be imported


@pytest.mark.parametrize(
    "error", [ImportError("no module"), SyntaxError("bad"), SystemExit(1), ZeroDivisionError()]
)
def test_a_broken_module_fails_its_own_runs_visibly(error: BaseException) -> None:
    world = World(with_handlers(handler("acme.broken"), handler("acme.sound")))
    world.broken["acme.broken"] = error
    assert world.deliver().status == 202
    world.work()
    assert world.run(handler="acme.sound").status is Status.DONE
    broken = world.run(handler="acme.broken")
    assert broken.status is Status.FAILED
    assert type(error).__name__ in broken.last_error


def test_after_the_fix_its_runs_go_on(world: World) -> None:
    world.broken["acme.fulfil"] = ImportError("no module named crm")
    world.deliver()
    world.work()
    del world.broken["acme.fulfil"]
    world.run_until_quiet()
    assert world.run().status is Status.DONE


# -- time


def test_a_handler_that_takes_too_long_has_failed(world: World) -> None:
    world.behaviours["acme.fulfil"] = lambda event, ctx: world.clock.advance(seconds=51)
    result = first_result(world)
    assert (result.outcome, result.keeps_message) == (RunOutcome.FAILED, False)
    assert isinstance(result.error, HandlerTimedOut)
    assert world.run().attempts[-1].outcome == "timed out"


def test_a_handler_is_given_its_own_timeout() -> None:
    world = World(with_handlers(handler("acme.fulfil", timeout=5)))
    deadlines = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: deadlines.append(ctx.deadline)
    world.deliver()
    before = world.now
    world.work()
    assert deadlines == [before + timedelta(seconds=5)]


def test_a_handler_never_gets_more_than_the_invocation_has_left() -> None:
    world = World(with_handlers(handler("acme.fulfil", timeout=50)))
    deadlines = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: deadlines.append(ctx.deadline)
    world.deliver()
    world.process(world.taken(), seconds=20)
    assert deadlines == [world.now + timedelta(seconds=18)]


@pytest.mark.parametrize("seconds", [0, 1, 2.9, -5])
def test_an_invocation_with_no_time_left_begins_nothing(world: World, seconds: float) -> None:
    world.deliver()
    result = world.process(world.taken(), seconds=seconds)
    assert result.outcome is RunOutcome.UNAVAILABLE
    assert world.handled == []
    assert world.row() is None


def test_the_lease_outlives_the_invocation_by_five_seconds(world: World) -> None:
    leases = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: leases.append(world.run().claimed_until)
    world.deliver()
    before = world.now
    world.process(world.taken(), seconds=60)
    assert leases == [before + timedelta(seconds=65)]


# -- others


def test_one_handlers_failure_neither_delays_nor_repeats_anothers_run() -> None:
    world = World(with_handlers(handler("acme.bad", max_attempts=2), handler("acme.good")))
    world.fails("acme.bad", Transient("down"))
    world.deliver()
    world.work()
    assert world.run(handler="acme.good").status is Status.DONE
    world.run_until_quiet()
    assert [name for name, _, _ in world.handled].count("acme.good") == 1
    assert [name for name, _, _ in world.handled].count("acme.bad") == 2


# -- handlers that this deployment does not have


def rename(world: World) -> None:
    world.deploy(with_handlers(handler("acme.renamed")))


def test_an_unknown_handler_waits_and_spends_no_attempt(world: World) -> None:
    world.deliver()
    rename(world)
    assert world.work() == [RunOutcome.DEFERRED]
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert "not in this deployment" in run.last_error


def test_it_runs_once_its_deployment_has_arrived(world: World) -> None:
    world.deliver()
    rename(world)
    world.pass_minutes(10)
    world.deploy(MANIFEST)
    world.run_until_quiet()
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 1
    assert world.run().unknown_since is None


def test_after_an_hour_it_is_dead(world: World) -> None:
    world.deliver()
    rename(world)
    world.pass_minutes(58)
    assert world.run().status is Status.DEFERRED
    world.pass_minutes(10)
    run = world.run()
    assert run.status is Status.DEAD_LETTER
    assert run.last_error.startswith("permanent: handler 'acme.fulfil'")


def test_a_replay_gives_it_another_hour(world: World) -> None:
    world.deliver()
    rename(world)
    world.pass_minutes(75)
    world.replay(event_ids=["evt-1"])
    world.pass_minutes(30)
    assert world.run().status is Status.DEFERRED


def test_a_handler_that_left_with_many_attempts_used_waits_like_any_other() -> None:
    """How many attempts it may make is not for a deployment to say that does not know it."""
    spec = handler("acme.fulfil", max_attempts=20, backoff=Backoff(base=0.1, cap=0.1))
    world = World(with_handlers(spec))
    world.fails("acme.fulfil", Transient("down"))
    world.deliver()
    while len(world.handled) < 12:
        world.work()
        world.clock.advance(seconds=1)
    rename(world)
    world.clock.advance(seconds=60)
    world.work()
    assert world.run().status is Status.DEFERRED


# -- secrets


def test_a_secret_that_an_error_repeats_is_not_stored() -> None:
    world = World()
    world.vault.rotate("crm", "a-very-secret-token")

    def act(event: object, context: object) -> None:
        token = context.secret("crm")  # type: ignore[attr-defined]
        raise Transient(f"401 for Authorization: Bearer {token}")

    world.behaviours["acme.fulfil"] = act  # type: ignore[assignment]
    result = first_result(world)
    assert "a-very-secret-token" not in repr(list(world.table))
    assert "a-very-secret-token" not in result.detail
    assert "[secret]" in world.run().last_error


def test_a_secret_that_begins_like_another_is_redacted_whole(world: World) -> None:
    world.vault.rotate("crm", "token-12345678-and-more")
    world.vault.rotate("crm", "token-12345678")
    world.secrets.get("crm")
    assert world.secrets.redact("it is token-12345678-and-more") == "it is [secret]"


def test_a_secret_in_a_permanent_or_deferred_error_is_redacted_too(world: World) -> None:
    world.vault.rotate("crm", "a-very-secret-token")
    world.secrets.get("crm")
    world.script("acme.fulfil", Permanent("bad key a-very-secret-token"))
    first_result(world)
    assert "a-very-secret-token" not in repr(list(world.table))


def test_a_short_value_is_no_secret_to_redact(world: World) -> None:
    world.vault.rotate("crm", "down")
    world.secrets.get("crm")
    assert world.secrets.redact("it is down") == "it is down"


# -- the line of a handler


def of_a_file(path: str, module: str, source: str) -> Callable[[Event, Context], None]:
    """Returns the function `work` of a module as if it had been imported from a file."""
    names: dict[str, Any] = {"__name__": module}
    exec(compile(source, path, "exec"), names)
    work: Callable[[Event, Context], None] = names["work"]
    return work


FAULTY = """
import json

def work(event, context):
    parse(event)

def parse(event):
    json.loads("{")
"""


def test_the_line_of_the_handler_that_raised_is_stored_and_not_that_of_a_library(
    world: World,
) -> None:
    path = "/var/task/handlers/shop/orders.py"
    world.behaviours["acme.fulfil"] = of_a_file(path, "handlers.shop.orders", FAULTY)
    first_result(world)
    failed = world.run()
    assert (failed.error_line, failed.error_class) == (
        "handlers/shop/orders.py:8",
        "JSONDecodeError",
    )
    world.run_until_quiet()
    dead = world.run()
    assert dead.status is Status.DEAD_LETTER
    assert (dead.error_line, dead.error_class) == (failed.error_line, failed.error_class)


@pytest.mark.parametrize(
    ("path", "module", "line"),
    [
        ("/x/handlers/pkg/handlers/x.py", "handlers.pkg.handlers.x", "handlers/pkg/handlers/x.py"),
        ("/x/handlers/pkg/handlers/__init__.py", "handlers.pkg.handlers",
         "handlers/pkg/handlers/__init__.py"),
        ("/handlers/functions/handlers/x.py", "handlers.x", "handlers/x.py"),
        ("handlers/x.py", "handlers.x", "handlers/x.py"),
    ],
)  # fmt: skip
def test_the_path_of_a_line_is_that_of_its_module(
    world: World, path: str, module: str, line: str
) -> None:
    world.behaviours["acme.fulfil"] = of_a_file(path, module, FAULTY)
    first_result(world)
    assert world.run().error_line == f"{line}:8"


def test_an_error_that_no_line_of_a_handler_raised_has_none(world: World) -> None:
    path = "/var/task/webhook_inbox/handlers/context.py"
    world.behaviours["acme.fulfil"] = of_a_file(path, "webhook_inbox.handlers.context", FAULTY)
    first_result(world)
    assert world.run().error_line == ""


def test_a_long_path_is_stored_in_part(world: World) -> None:
    path = f"/var/task/handlers/{'ö' * 300}.py"
    world.behaviours["acme.fulfil"] = of_a_file(path, "handlers.long", FAULTY)
    first_result(world)
    line = world.run().error_line
    assert line.endswith("ö.py:8")
    assert len(line.encode()) <= 200


def test_a_success_removes_the_error_and_its_line_and_keeps_the_history(world: World) -> None:
    faulty = of_a_file("/var/task/handlers/orders.py", "handlers.orders", FAULTY)
    world.behaviours["acme.fulfil"] = faulty
    first_result(world)
    world.behaviours.pop("acme.fulfil")
    world.run_until_quiet()
    run = world.run()
    assert (run.status, run.last_error) == (Status.DONE, "")
    assert (run.error_line, run.error_class) == ("", "")
    assert [attempt.error[:15] for attempt in run.attempts] == ["JSONDecodeError", ""]


def test_a_wait_after_an_error_keeps_no_line_of_it(world: World) -> None:
    faulty = of_a_file("/var/task/handlers/orders.py", "handlers.orders", FAULTY)
    world.behaviours["acme.fulfil"] = faulty
    first_result(world)
    world.script("acme.fulfil", Deferred(world.now + timedelta(hours=2), "later"))
    world.run_until_quiet()
    run = world.run()
    assert (run.error_line, run.error_class) == ("", "")


def test_a_result_says_when_the_run_continues(world: World) -> None:
    world.script("acme.fulfil", Transient("503"))
    result = first_result(world)
    assert result.due == world.run().next_attempt_at


def test_a_result_has_the_time_and_the_outcome_of_each_effect(world: World) -> None:
    def fail(error: Exception) -> None:
        raise error

    def work(event: Event, context: Context) -> None:
        world.clock.advance(seconds=2)
        context.effect("reserve", lambda key: {"id": 1})
        with suppress(Permanent):
            context.effect("confirm", lambda key: fail(Permanent("no such order")))
        context.effect("charge", lambda key: fail(TimeoutError("no answer")))

    world.behaviours["acme.fulfil"] = work
    first = first_result(world).observed
    assert first is not None
    assert (first.type, first.taken) == ("paid", timedelta(seconds=2))
    assert first.effects == {"reserve": "committed", "confirm": "failed", "charge": "in doubt"}
    world.clock.advance(seconds=60)
    second = world.work_once()
    assert second is not None
    assert second.observed is not None
    assert second.observed.effects["reserve"] == "recorded"
    assert second.observed.trace.id == first.trace.id
    assert second.observed.trace.span != first.trace.span


def test_the_history_has_the_code_version_and_the_invocation_of_each_attempt(
    world: World,
) -> None:
    world.fails("acme.fulfil", Transient("down"))
    first_result(world)
    [attempt] = world.run().attempts
    assert (attempt.worker, attempt.code_version) == ("worker-1", world.run().code_version)
    assert attempt.code_version
