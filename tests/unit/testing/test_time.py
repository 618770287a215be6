"""Time in the kit: waits of every kind end when they would, and nothing else happens."""

from datetime import timedelta
from itertools import pairwise

import pytest

from webhook_inbox import (
    Backoff,
    Context,
    Deferred,
    Event,
    Router,
    Transient,
    latest,
    sequence,
    serial,
)
from webhook_inbox.testing import Fake, Inbox, KitError

SLOW = Backoff(base=3600, factor=1, cap=3600)


def inbox_of(router: Router, **fakes: Fake) -> Inbox:
    return Inbox(router, destinations=fakes)


@pytest.mark.parametrize("minutes", [1, 14, 16, 300])
def test_a_deferral_of_any_length_ends_in_time(minutes: int) -> None:
    """Short ones are carried by a message, long ones parked, and sent by the reconciler."""
    router, seen = Router("wait"), []

    @router.on("go")
    def wait(event: Event, ctx: Context) -> None:
        seen.append(inbox.now)
        if len(seen) == 1:
            raise Deferred(inbox.now + timedelta(minutes=minutes))

    inbox = inbox_of(router)
    run = inbox.run("wait.wait", {})

    inbox.advance(minutes=minutes, seconds=-1)
    assert (run.status, len(seen)) == ("deferred", 1)
    inbox.advance(minutes=2)
    assert run.status == "done"
    assert timedelta(minutes=minutes) <= seen[1] - seen[0] <= timedelta(minutes=minutes + 2)


def test_backoffs_of_an_hour_are_waited_for() -> None:
    router, seen = Router("slow"), []

    @router.on("go", backoff=SLOW, max_attempts=3)
    def fail(event: Event, ctx: Context) -> None:
        seen.append(inbox.now)
        raise Transient("no", retry_after=timedelta(hours=1))

    inbox = inbox_of(router)
    run = inbox.run("slow.fail", {}).settle()

    assert (run.status, len(seen)) == ("dead_letter", 3)
    assert all(b - a >= timedelta(hours=1) for a, b in pairwise(seen))


def test_settling_what_is_settled_takes_no_time() -> None:
    router = Router("quick")
    router.on("go", name="quick.go")(lambda event, ctx: None)
    inbox = inbox_of(router)
    inbox.run("quick.go", {})
    before = inbox.now
    inbox.settle()
    inbox.settle()
    assert inbox.now == before


def test_time_passes_to_the_second_where_nothing_is_due() -> None:
    inbox = inbox_of(Router("idle"))
    before = inbox.now
    inbox.advance(days=3, hours=2, minutes=1, seconds=0.5)
    assert inbox.now - before == timedelta(days=3, hours=2, minutes=1, seconds=0.5)


def test_what_is_older_than_what_was_done_is_skipped() -> None:
    router, seen = Router("latest"), []

    @router.on("go", order=latest("id", "version"))
    def act(event: Event, ctx: Context) -> None:
        seen.append(event.json()["version"])

    inbox = inbox_of(router)
    runs = [inbox.run("latest.act", {"id": "a", "version": n}, event_id=f"v{n}") for n in (1, 3, 2)]

    assert [run.status for run in runs] == ["done", "done", "skipped"]
    assert seen == [1, 3]


def test_a_gap_is_waited_for_and_filled() -> None:
    router, seen = Router("sequence"), []

    @router.on("go", order=sequence("id", "n", timeout="1h"))
    def act(event: Event, ctx: Context) -> None:
        seen.append(event.json()["n"])

    inbox = inbox_of(router)
    second = inbox.run("sequence.act", {"id": "a", "n": 2}, event_id="e2")
    assert second.status == "deferred"

    inbox.run("sequence.act", {"id": "a", "n": 1}, event_id="e1")
    inbox.settle()

    assert (second.status, seen) == ("done", [1, 2])


def test_a_gap_that_is_not_filled_needs_a_person() -> None:
    router = Router("sequence")
    router.on("go", name="sequence.act", order=sequence("id", "n", timeout="1h"))(
        lambda event, ctx: None
    )
    run = inbox_of(router).run("sequence.act", {"id": "a", "n": 2}).settle()
    assert run.status == "held"


def test_serial_runs_keep_their_order_over_a_failure() -> None:
    router, seen = Router("serial"), []

    @router.on("go", order=serial("id"), lane="accounts", backoff="fast")
    def act(event: Event, ctx: Context) -> None:
        if event.json()["n"] == 1 and ctx.attempt == 1:
            raise Transient("not yet")
        seen.append(event.json()["n"])

    inbox = inbox_of(router)
    runs = [inbox.run("serial.act", {"id": "a", "n": n}, event_id=f"e{n}") for n in (1, 2, 3)]
    with pytest.raises(KitError, match=r"serial.act has no run: its message was not processed yet"):
        assert runs[1].status
    inbox.settle()

    assert seen == [1, 2, 3]
    assert {run.status for run in runs} == {"done"}


def test_a_limit_is_kept_by_all_runs_together() -> None:
    router, crm = Router("limit"), Fake(rate="1/s")

    @router.on("go", destinations=["crm"])
    def act(event: Event, ctx: Context) -> None:
        ctx.http("crm").post("/n", json={}, effect="n")

    inbox = inbox_of(router, crm=crm)
    before = inbox.now
    runs = [inbox.run("limit.act", {}) for _ in range(10)]
    inbox.settle()

    assert {run.status for run in runs} == {"done"}
    assert len(crm.done) == 10
    assert inbox.now - before >= timedelta(seconds=8)


def test_a_stall_longer_than_the_attempt_is_a_time_out() -> None:
    router, crm = Router("late"), Fake(timeout="50s", breaker=False)

    @router.on("go", timeout=5, backoff="fast")
    def act(event: Event, ctx: Context) -> None:
        ctx.http("crm").post("/n", json={}, effect="n")

    crm.stalls()
    run = inbox_of(router, crm=crm).run("late.act", {})
    assert run.status == "failed"
    assert run.settle().status == "done"
    assert len(crm.done) == 1
