"""A process dies after each recorded step; the effect still happens once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from tests.unit.testing.shop import QUICK
from webhook_inbox import Context, Deferred, Event, Hold, Router
from webhook_inbox.testing import Fake, HandlerRun, Inbox, KitError, Step
from webhook_inbox.testing.worker import Moment


@dataclass
class Bench:
    """Handlers that wait in every way and then make one call."""

    crm: Fake = field(default_factory=lambda: Fake(breaker={"failures": 1, "recovery": "60s"}))
    inbox: Inbox = field(init=False)

    def __post_init__(self) -> None:
        router, waited = Router("bench"), set[str]()

        def call(event: Event, ctx: Context) -> None:
            ctx.http("crm").post("/orders", json={"id": event.id}, effect="order")

        @router.on("effect")
        def approved(event: Event, ctx: Context) -> None:
            ctx.effect("order", lambda _: ctx.http("crm").post("/o").json(), approve=True)

        @router.on("hold")
        def hold(event: Event, ctx: Context) -> None:
            ctx.hold("may I?")
            call(event, ctx)

        @router.on("job")
        def job(event: Event, ctx: Context) -> None:
            ctx.wait_for("render", lambda key, token: "j-1", timeout="10h")
            call(event, ctx)

        @router.on("later", backoff=QUICK)
        def later(event: Event, ctx: Context) -> None:
            if event.id not in waited:
                waited.add(event.id)
                raise Deferred(self.inbox.now + timedelta(minutes=20), "not yet")
            call(event, ctx)

        router.on("policy", name="bench.policy", policy=lambda *_: Hold("who?"))(call)
        router.on("down", name="bench.down", destinations=["crm"])(call)
        self.inbox = Inbox(router, destinations={"crm": self.crm})

    def done(self) -> int:
        return len(self.crm.done)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def end(run: HandlerRun) -> None:
    run.settle()


def approve(run: HandlerRun) -> None:
    assert (run.status, run.attempts) == ("held", 0)
    run.approve().settle()


def complete(run: HandlerRun) -> None:
    assert run.status == "deferred"
    run.complete("render", "j-1").settle()


STEPS: list[tuple[Step, str, str, Callable[[HandlerRun], None]]] = [
    (Step.HOLD, "bench.approved", "held", approve),
    (Step.HOLD, "bench.hold", "held", approve),
    (Step.HOLD, "bench.policy", "held", approve),
    (Step.WAIT, "bench.job", "deferred", complete),
    (Step.DEFERRAL, "bench.later", "deferred", end),
]


@pytest.mark.parametrize("minutes", [0, 30])
@pytest.mark.parametrize(("step", "handler", "status", "finish"), STEPS)
def test_a_worker_dies_after_it_recorded_a_wait(
    bench: Bench,
    step: Step,
    handler: str,
    status: str,
    finish: Callable[[HandlerRun], None],
    minutes: int,
) -> None:
    run = bench.inbox.run(handler, {}, crash_after=step)
    assert (run.status, bench.done()) == (status, 0)

    bench.inbox.advance(minutes=minutes)  # the dead worker's message is received again
    finish(run)

    assert (run.status, run.effects["order"].starts, bench.done()) == ("done", 1, 1)


def test_a_worker_dies_after_a_run_waits_for_an_open_circuit(bench: Bench) -> None:
    bench.crm.answers(500)
    bench.inbox.run("bench.down", {})

    run = bench.inbox.run("bench.down", {}, crash_after=Step.PAUSE)
    assert (run.status, run.attempts, len(bench.crm.requests)) == ("deferred", 0, 1)

    bench.inbox.settle()
    assert (run.status, run.effects["order"].starts, bench.done()) == ("done", 1, 2)


def test_a_worker_dies_after_its_call_found_the_circuit_open(bench: Bench) -> None:
    """A handler that does not declare its destination is deferred in the middle."""
    bench.crm.answers(500)
    bench.inbox.run("bench.down", {})

    held = bench.inbox.run("bench.hold", {})
    with bench.inbox.crash(after=Step.PAUSE):
        held.approve()
    assert (held.status, len(bench.crm.requests)) == ("deferred", 1)

    bench.inbox.settle()
    assert (held.status, bench.done()) == ("done", 2)


@pytest.mark.parametrize("handler", ["bench.approved", "bench.hold", "bench.policy"])
def test_an_approval_whose_command_dies_is_sent_by_the_reconciler(
    bench: Bench, handler: str
) -> None:
    run = bench.inbox.run(handler, {})
    with bench.inbox.crash(after=Step.APPROVAL):
        run.approve()
    assert (run.status, bench.done()) == ("pending", 0)

    run.settle()
    assert (run.status, run.attempts, bench.done()) == ("done", 1, 1)


def test_a_completion_whose_receiver_dies_is_found_at_the_next_look(bench: Bench) -> None:
    run = bench.inbox.run("bench.job", {})
    with bench.inbox.crash(after=Step.COMPLETION):
        run.complete("render", "j-1")
    assert (run.status, bench.done()) == ("deferred", 0)

    bench.inbox.advance(minutes=16)
    assert (run.status, bench.done()) == ("done", 1)


@pytest.mark.parametrize("place", ["before", "before_commit", "after"])
def test_a_worker_dies_at_an_effect_after_an_approval(bench: Bench, place: str) -> None:
    run = bench.inbox.run("bench.hold", {})
    with bench.inbox.crash(**{place: "order"}):
        run.approve()
    assert run.status == "processing"

    run.settle()
    assert (run.status, bench.done()) == ("done", 1)


def test_every_step_is_placed_above() -> None:
    placed = {step for step, *_ in STEPS} | {Step.PAUSE, Step.APPROVAL, Step.COMPLETION}
    assert placed == set(Step)


def test_a_step_that_is_not_reached_is_no_test(bench: Bench) -> None:
    with pytest.raises(
        KitError, match=r"attempt did not reach Step.HOLD; it reached: render, Step"
    ):
        bench.inbox.run("bench.job", {}, crash_after=Step.HOLD)
    with (
        pytest.raises(KitError, match=r"block did not reach Step.APPROVAL; it reached: none"),
        bench.inbox.crash(after=Step.APPROVAL),
    ):
        pass
    assert bench.inbox.run("bench.hold", {}).approve().status == "done"


def test_a_crash_has_a_place(bench: Bench) -> None:
    with pytest.raises(KitError, match="give the place of the crash"), bench.inbox.crash():
        pass


def test_an_error_in_the_block_is_not_hidden(bench: Bench) -> None:
    with pytest.raises(ZeroDivisionError), bench.inbox.crash(after=Step.HOLD):
        _ = 1 / 0


def test_an_effect_may_be_called_like_a_step(bench: Bench) -> None:
    router = Router("odd")

    @router.on("x")
    def act(event: Event, ctx: Context) -> None:
        ctx.effect("HOLD", lambda: 1)

    run = Inbox(router).run("odd.act", {}, crash_after="HOLD")
    assert run.effects["HOLD"].committed
    assert {moment.name for moment in Moment}.isdisjoint(step.name for step in Step)
