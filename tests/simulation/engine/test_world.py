"""A world can be restored, and its key identifies its state."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simulation.engine import invocations
from simulation.engine.apply import apply
from simulation.engine.choices import choices
from simulation.engine.stepping import Call, Stepping
from simulation.engine.world import World
from simulation.worlds.builders import FIRST, MAIL
from simulation.worlds.scenario import Webhook
from tests.simulation.tiny import (
    INGEST,
    TINY,
    WORKER,
    finish,
    fresh,
    ingested,
    message_id,
    offered,
    one_step,
    received,
    row,
    seconds,
    with_budget,
)
from webhook_inbox.domain.ports import Change, Outgoing
from webhook_inbox.ledger.schema import event_key, run_key

SCHEDULE = [("sends", "first"), *[("step", INGEST, "ok")] * 3, ("time",)]


def midway() -> World:
    """Returns a world with something of everything in it."""
    scenario = with_budget(TINY, faults=3, jumps=3, passes=1)
    webhooks = (FIRST, Webhook("second", event_id="e2"))
    world = received(replace(scenario, webhooks=webhooks, receivers=2))
    one_step(world, WORKER)
    invocations.deliver(world, webhooks[1])
    one_step(world, INGEST, "delayed")
    world.answered["second"] = 503
    return world


def begin_another(world: World) -> None:
    """Another worker receives the message, which is visible again."""
    world.aws.queues["default"].show(message_id(world))
    world.scenario = replace(world.scenario, workers=2)
    invocations.receive(world, "default", message_id(world))


CHANGES: dict[str, Callable[[World], object]] = {
    "a row is changed": lambda w: w.aws.table.update(run_key("a", "b", "c"), Change(set={"x": 1})),
    "a row is deleted": lambda w: w.aws.table.delete(event_key("acme", "e1")),
    "an object is put": lambda w: w.aws.blobs.put("bodies/acme/1", b"body"),
    "a message is sent": lambda w: w.aws.queues["default"].send([Outgoing("{}")]),
    "a message is lost": lambda w: w.aws.queues["default"].lose(message_id(w)),
    "a message is shown": lambda w: w.aws.queues["default"].show(message_id(w)),
    "a message dies": lambda w: w.aws.dlqs["default"].send([Outgoing("{}")]),
    "a job goes on": lambda w: one_step(w, WORKER),
    "a job is killed": lambda w: w.kill(WORKER),
    "a job is frozen": lambda w: w.freeze(WORKER),
    "a job begins": begin_another,
    "a call arrives": lambda w: w.arrive(0),
    "time passes": lambda w: w.advance(w.clock.ms + 1),
    "a webhook is sent": lambda w: w.tries.update(first=2),
    "a webhook is answered": lambda w: w.answered.update(first=200, second=200),
    "a fault is spent": lambda w: setattr(w, "left", replace(w.left, faults=1)),
    "another age begins": lambda w: setattr(w, "era", w.era + 1),
    "another deployment": lambda w: setattr(w, "deployment", replace(MAIL, name="other")),
    "an effect": lambda w: w.observer.posted(("acme", "e1", "mail"), "key"),
    "a note": lambda w: w.observer.lost.add(("acme", "e1", "mail")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_has_its_own_key_and_can_be_restored(change: str) -> None:
    world = midway()
    snapshot, key = world.snapshot(), world.key()
    CHANGES[change](world)
    assert world.key() != key
    world.restore(snapshot)
    assert world.key() == key


def test_a_snapshot_serves_any_number_of_times() -> None:
    world = midway()
    snapshot, key = world.snapshot(), world.key()
    ends = set()
    for _ in range(3):
        world.restore(snapshot)
        assert world.key() == key
        finish(world, WORKER)
        ends.add(world.key())
    assert len(ends) == 1


def test_a_restored_world_offers_the_same_choices() -> None:
    world = midway()
    snapshot, options = world.snapshot(), list(choices(world))
    for option in options:
        world.restore(snapshot)
        assert list(choices(world)) == options
        apply(world, option)


def test_the_same_schedule_gives_the_same_state_in_two_worlds() -> None:
    stepping = Stepping()
    keys = []
    for _ in range(2):
        world = World(with_budget(jumps=1), stepping)
        for choice in SCHEDULE:
            apply(world, choice)
        keys.append(world.key())
    assert keys[0] == keys[1]


def test_two_orders_that_come_to_the_same_are_one_state() -> None:
    webhooks = (FIRST, Webhook("second", event_id="e2"))
    stepping, keys = Stepping(), []
    for order in (webhooks, webhooks[::-1]):
        world = World(
            replace(TINY, webhooks=webhooks, receivers=1, deployments=(NOBODY,)), stepping
        )
        for webhook in order:
            invocations.deliver(world, webhook)
            finish(world, INGEST)
        keys.append(world.key())
    assert keys[0] == keys[1]


NOBODY = replace(MAIL, manifest=replace(MAIL.manifest, handlers={}))


def test_the_key_includes_what_an_index_has_not_replicated() -> None:
    """The rows are equal; what an eventually consistent read finds is not."""
    keys = []
    for earlier in (1, 2):
        world = fresh(lag=True)
        key = run_key("acme", "e1", "mail")
        world.aws.table.update(key, Change(set={"x": earlier}))
        world.aws.table.get(key, consistent=False)
        world.aws.table.update(key, Change(set={"x": 3}))
        keys.append(world.key())
    assert keys[0] != keys[1]


# -- time


def test_time_jumps_to_the_end_of_the_message_s_delay() -> None:
    world = fresh(budget=with_budget(jumps=1).budget)
    world.aws.queues["default"].send([Outgoing("{}", 90)])
    apply(world, ("time",))
    assert seconds(world) == 90
    assert world.left.jumps == 0
    assert offered(world, "time") == []


def test_time_jumps_to_the_moment_at_which_lambda_stops_a_worker() -> None:
    world = received(budget=with_budget(jumps=1).budget)
    assert world.jobs[WORKER].ends == world.clock.ms + 60_000
    apply(world, ("time",))
    assert seconds(world) == 60
    assert world.jobs == {}
    assert ("acme", "e1", "mail") in world.observer.troubled


def test_where_nothing_is_waited_for_no_time_passes() -> None:
    world = fresh(budget=with_budget(jumps=1).budget)
    key = world.key()
    apply(world, ("time",))
    assert world.key() == key


def test_a_call_that_is_on_its_way_arrives_before_ten_seconds_have_passed() -> None:
    world = fresh()
    invocations.deliver(world, FIRST)
    invocations.step(world, INGEST, "delayed")
    assert len(world.late) == 1
    world.advance(world.clock.ms + 10_000)
    assert (len(world.late), row_count(world)) == (1, 0)
    world.advance(world.clock.ms + 10_001)
    assert (len(world.late), row_count(world)) == (0, 1)


def row_count(world: World) -> int:
    own = {"reconciler", "due_index"}
    return len([row for row in world.aws.table.rows() if row["pk"] not in own])


def test_a_program_s_clock_is_off_by_its_worker_s_skew() -> None:
    world = received(skews=(-2400,))
    assert world.jobs[WORKER].skew == -2400
    one_step(world, WORKER)
    one_step(world, WORKER)
    claimed = row(world)
    assert claimed is not None
    assert claimed["claimed_at"] == world.clock.ms - 2400


def test_a_sleeping_program_does_nothing_until_it_wakes() -> None:
    world = received(budget=with_budget(jumps=2, faults=1).budget)
    job = world.jobs[WORKER]
    world.jobs[WORKER] = job._replace(wakes=world.clock.ms + 5_000)
    assert offered(world, "step", WORKER) == []
    apply(world, ("time",))
    assert seconds(world) == 5
    assert offered(world, "step", WORKER) != []


def test_a_pending_call_is_named_in_the_key() -> None:
    world = fresh()
    key = world.key()
    world.late = (Call("table", "delete", (run_key("acme", "e1", "mail"),)),)
    assert world.key() != key


def test_messages_of_two_worlds_are_told_apart_by_their_lane_s_queue() -> None:
    world, other = ingested(), ingested()
    assert world.aws.key() == other.aws.key()
    other.aws.queues["default"].take(message_id(other), hidden_for=30)
    assert world.aws.key() != other.aws.key()
