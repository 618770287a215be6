"""An operator closes a dead run that will not be replayed."""

import pytest

from tests.unit.support.people import person
from tests.unit.support.serial import BILL, SerialWorld, blocking
from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.replay.skip import skip


def skipped(world: World, run: Run) -> bool:
    return skip(
        world.table, world.randomness, run, by=person("kim"), reason="obsolete", now=world.now
    )


def test_a_dead_run_is_finished_says_why_and_is_listed_no_more(world: World) -> None:
    assert skipped(world, world.dead())

    run = world.run()
    assert run.status is Status.SKIPPED
    assert run.last_error == ("skipped by kim: obsolete; last error: permanent: no such order")
    assert run.done_at == world.now
    assert list(world.ledger.due_runs()) == []


def test_it_is_audited(world: World) -> None:
    skipped(world, world.dead())

    [entry] = world.rows("audit#")
    assert (entry["action"], entry["by"], entry["reason"], entry["event_ids"]) == (
        "skip",
        "kim",
        "obsolete",
        ["evt-1"],
    )
    assert entry["counts"] == {"skipped": 1}
    [shown] = world.overview().actions
    assert (shown.action, shown.actor.name, shown.reason) == ("skip", "kim", "obsolete")


def test_its_message_in_the_dlq_leads_to_nothing_any_more(world: World) -> None:
    skipped(world, world.dead())
    world.clock.advance(seconds=1)

    world.redrive()
    world.work()

    assert world.run().status is Status.SKIPPED
    assert [attempt for *_, attempt in world.handled] == [1]


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.DEAD_LETTER])
def test_what_is_not_dead_is_left_alone(world: World, status: Status) -> None:
    world.dead()
    world.alter(status=str(status))
    before = world.row()

    assert not skipped(world, world.run())

    assert world.row() == before
    assert world.rows("audit#") == []


def test_one_that_was_replayed_meanwhile_is_left_alone(world: World) -> None:
    seen = world.dead()
    world.replay(event_ids=["evt-1"])

    assert not skipped(world, seen)

    assert world.run().status is Status.PENDING


def test_an_answer_that_was_lost_is_recognised(world: World) -> None:
    seen = world.dead()
    world.plan.fail("UpdateItem", Fault.AFTER)
    with pytest.raises(Unavailable):
        skipped(world, seen)
    world.plan.heal()

    assert skipped(world, seen)


def test_an_ordering_key_that_stood_still_goes_on() -> None:
    world = SerialWorld(blocking())
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2", "a3")
    world.outcomes()

    assert skipped(world, world.bill("a1"))

    world.wait(60)
    assert world.order() == ["a1", "a2", "a3"]
    assert not world.run("a1", BILL).blocking
