"""Serial handlers: one at a time per ordering key, in the order of acceptance, on a FIFO lane."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.serial import BILL, LANE, SerialWorld, serial
from tests.unit.support.world import VISIBILITY, handler, with_handlers
from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient
from webhook_inbox.domain.internal_errors import Postponed
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import ApprovalOutcome, Status
from webhook_inbox.domain.ports import Change, Key
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.event import Event
from webhook_inbox.ledger import pauses
from webhook_inbox.ledger.pauses import RESUMPTION, PauseRequest
from webhook_inbox.queue.outcomes import RunOutcome


@pytest.fixture
def world() -> SerialWorld:
    return SerialWorld()


def test_an_ordering_key_s_events_are_handled_in_the_order_of_their_acceptance(
    world: SerialWorld,
) -> None:
    world.accept_all("e3", "e1", "e2")

    assert world.outcomes() == [RunOutcome.DONE] * 3
    assert world.order() == ["e3", "e1", "e2"]


def test_the_run_keeps_what_it_is_in_order_with_and_so_does_the_event(world: SerialWorld) -> None:
    world.accept("e1", "cus_7")
    world.outcomes()

    assert world.bill("e1").ordering_key == "cus_7"
    row = world.event_row("e1")
    assert row is not None
    assert row["ordering_keys"] == {BILL: "cus_7"}


def test_without_a_serial_handler_the_event_s_row_says_nothing_of_ordering_keys(
    world: SerialWorld,
) -> None:
    world.deploy(with_handlers(handler("acme.fulfil")))
    world.deliver("e1")

    row = world.event_row("e1")
    assert row is not None
    assert "ordering_keys" not in row


def test_the_next_one_waits_while_one_is_at_work_and_other_ordering_keys_do_not(
    world: SerialWorld,
) -> None:
    world.accept_all("a1", "a2")
    world.accept("b1", "cus_2")

    first = world.taken(LANE)
    second = world.taken(LANE)

    assert {world.process(message, lane=LANE).outcome for message in (first, second)} == {
        RunOutcome.DONE
    }
    assert world.order() == ["a1", "b1"]
    assert world.receive(LANE) is None
    world.queues[LANE].delete(first.receipt)
    world.step()
    assert world.order() == ["a1", "b1", "a2"]


# -- failures


def test_a_retry_keeps_back_its_ordering_key_and_no_other(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("try later"), Transient("and later"))
    world.accept_all("a1", "a2")
    world.accept("b1", "cus_2")

    assert world.outcomes() == [RunOutcome.FAILED, RunOutcome.DONE]
    assert world.order() == ["a1", "b1"]

    world.wait(120)
    assert world.order() == ["a1", "b1", "a1", "a1", "a2"]
    assert world.bill("a1").attempt_count == 3


def test_a_short_retry_is_carried_by_its_own_message_and_takes_no_generation(
    world: SerialWorld,
) -> None:
    world.fail_for("a1", Transient("wait", retry_after=timedelta(seconds=60)))
    world.accept_all("a1", "a2")

    assert world.outcomes() == [RunOutcome.FAILED]

    run = world.bill("a1")
    assert (run.status, run.generation, run.parked) == (Status.FAILED, 0, False)
    assert len(world.queues[LANE]) == 2
    assert world.line() == []
    world.wait(61)
    assert world.order() == ["a1", "a1", "a2"]


def test_a_long_retry_waits_in_the_ledger_and_so_do_those_behind_it(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("wait", retry_after=timedelta(hours=5)))
    world.accept_all("a1", "a2")
    begun = world.now

    assert world.outcomes() == [RunOutcome.FAILED, RunOutcome.DEFERRED]

    run = world.bill("a1")
    assert (run.status, run.generation, run.parked) == (Status.FAILED, 1, True)
    assert len(world.queues[LANE]) == 0
    assert world.line() == ["a1", "a2"]
    world.wait(5 * 3600 - 60)
    assert world.order() == ["a1"]
    world.wait(120)
    assert world.order() == ["a1", "a1", "a2"]
    assert world.bill("a1").done_at is not None
    assert world.bill("a1").attempt_count == 2
    assert world.now - begun < timedelta(hours=5, minutes=2)


def test_a_long_wait_receives_nothing(world: SerialWorld) -> None:
    world.fail_for("a1", Deferred(world.now + timedelta(days=10)))
    world.accept("a1")

    assert world.wait(10 * 86400 - 60) == [RunOutcome.DEFERRED]
    assert world.wait(120) == [RunOutcome.DONE]


@pytest.mark.parametrize(("seconds", "hours"), [(5, 2), (60, 17)])
def test_a_run_that_defers_over_a_thousand_times_keeps_its_place_and_its_receives(
    seconds: int, hours: int
) -> None:
    world = SerialWorld(serial(max_age=20 * 86400.0))
    ends = world.now + timedelta(hours=hours)

    def act(event: Event, _: object) -> None:
        if event.id == "a1" and world.now < ends:
            raise Deferred(world.now + timedelta(seconds=seconds), "not yet")

    world.behaviours[BILL] = act
    world.accept_all("a1", "a2")
    received = 0
    while world.now < ends:
        world.wait(60)
        messages = world.queues[LANE].snapshot()[1]
        received = max([received, *(fields[4] for fields in messages)])

    assert world.bill("a1").claims > 1000
    world.wait(300)
    assert world.order()[-2:] == ["a1", "a2"]
    assert (world.bill("a2").status, len(world.dlqs[LANE])) == (Status.DONE, 0)
    assert received <= 101


@pytest.mark.parametrize("parked", [False, True])
def test_a_deferral_waits_in_its_place_and_costs_no_attempt(
    world: SerialWorld, *, parked: bool
) -> None:
    until = world.now + timedelta(hours=2)
    world.fail_for("a1", Postponed(until, "not yet", parked=parked))
    world.accept_all("a1", "a2")

    assert world.outcomes() == [RunOutcome.DEFERRED] * 2
    run = world.bill("a1")
    assert (run.status, run.attempt_count, run.generation, run.parked) == (
        Status.DEFERRED,
        0,
        1,
        True,
    )
    assert run.next_attempt_at == until
    world.wait(2 * 3600 + 60)
    assert world.order() == ["a1", "a1", "a2"]


def test_a_deferral_by_a_call_keeps_its_reservation(world: SerialWorld) -> None:
    """Its generation stays 0: without the reservation it would go to the end of the queue."""
    crm = DestinationSpec("crm", "https://crm.example", rate=1.0)
    bill = serial(destinations=("crm",))
    world.deploy(replace(with_handlers(bill), destinations={"crm": crm}))
    until = world.now + timedelta(seconds=21)
    reserved = {"crm": to_ms(until) + 1000}
    world.fail_for("a1", Postponed(until, "over its rate", reservations=reserved))
    world.accept("a1")
    world.outcomes()
    key, later = Key("destination#crm", "limit"), 1000 * (to_ms(until) + 300_000)
    world.table.update(key, Change(set={"next_reservation": later}))

    world.wait(25)

    assert world.bill("a1").status is Status.DONE


def test_a_skipped_one_lets_the_next_begin(world: SerialWorld) -> None:
    world.fail_for("a1", Skipped("nothing to do"))
    world.accept_all("a1", "a2")

    assert world.outcomes() == [RunOutcome.SKIPPED, RunOutcome.DONE]


def test_a_worker_that_is_killed_keeps_its_ordering_key_back_until_its_message_returns(
    world: SerialWorld,
) -> None:
    world.accept_all("a1", "a2")
    world.claim_and_die(world.taken(LANE), lane=LANE)

    assert world.outcomes() == []
    world.wait(VISIBILITY - 1)
    assert world.order() == ["a1"]
    world.wait(10)

    assert world.order() == ["a1", "a1", "a2"]
    assert world.bill("a1").status is Status.DONE


def test_a_worker_killed_between_settling_and_deleting_blocks_no_run(
    world: SerialWorld,
) -> None:
    world.accept_all("a1", "a2")
    world.process(world.taken(LANE), lane=LANE)

    assert world.wait(VISIBILITY + 1) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert world.order() == ["a1", "a2"]


def test_a_lease_that_is_lost_to_an_operator_keeps_its_place(world: SerialWorld) -> None:
    world.accept_all("a1", "a2")

    def replayed_meanwhile(event: object, context: object) -> None:
        world.clock.advance(seconds=120)
        world.behaviours.pop(BILL)
        assert world.replay(event_ids=["a1"]).counts == {"replayed": 1}

    world.behaviours[BILL] = replayed_meanwhile

    assert world.outcomes() == [RunOutcome.SUPERSEDED]
    world.wait(VISIBILITY + 1)
    assert world.order() == ["a1", "a1", "a2"]


# -- deaths


@pytest.mark.parametrize("error", [Permanent("a 422"), Transient("a 500")])
def test_after_a_death_the_ordering_key_goes_on_and_no_message_is_left(
    world: SerialWorld, error: Exception
) -> None:
    world.fail_for("a1", *[error] * 3)
    world.accept_all("a1", "a2")

    found = world.wait(600)

    assert found[-2:] == [RunOutcome.DEAD, RunOutcome.DONE]
    assert world.bill("a1").status is Status.DEAD_LETTER
    assert world.order()[-1] == "a2"
    assert len(world.queues[LANE]) == len(world.dlqs[LANE]) == 0


def test_a_death_whose_message_comes_again_is_dropped(world: SerialWorld) -> None:
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2")
    world.process(world.taken(LANE), lane=LANE)

    assert world.wait(VISIBILITY + 1) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert len(world.dlqs[LANE]) == 0


def test_a_replay_right_after_the_death_is_not_swallowed_as_a_duplicate(
    world: SerialWorld,
) -> None:
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2")
    world.outcomes()

    assert world.replay(event_ids=["a1"]).counts == {"replayed": 1}

    assert world.outcomes() == [RunOutcome.DONE]
    assert world.order() == ["a1", "a2", "a1"]
    assert world.bill("a1").generation == 1


def test_a_second_replay_within_five_minutes_is_not_swallowed_either(world: SerialWorld) -> None:
    world.fail_for("a1", *[Permanent("a 422")] * 2)
    world.accept("a1")
    for _ in range(2):
        world.outcomes()
        world.replay(event_ids=["a1"])

    assert world.outcomes() == [RunOutcome.DONE]
    assert world.order() == ["a1"] * 3


def test_a_replay_takes_its_place_among_those_of_its_ordering_key(world: SerialWorld) -> None:
    world.fail_for("a1", Permanent("a 422"))
    world.accept("a1")
    world.outcomes()
    world.accept("a2")

    world.replay(event_ids=["a1"])
    world.accept("a3")

    world.outcomes()
    assert world.order() == ["a1", "a2", "a1", "a3"]


# -- what operators do to runs that wait


def test_a_replay_of_a_run_that_waits_keeps_its_place(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("wait", retry_after=timedelta(hours=5)))
    world.accept_all("a1", "a2", "a3")
    world.outcomes()

    assert world.replay(event_ids=["a1"]).counts == {"replayed": 1}

    world.wait(120)
    assert world.order() == ["a1", "a1", "a2", "a3"]
    assert world.bill("a1").status is Status.DONE
    assert len(world.queues[LANE]) == 0


def test_a_run_that_waits_for_a_person_keeps_its_place(world: SerialWorld) -> None:
    world.fail_for("a1", Held("a large sum"))
    world.accept_all("a1", "a2")

    assert world.outcomes() == [RunOutcome.HELD, RunOutcome.DEFERRED]
    assert world.wait(30 * 86400) == []
    assert world.bill("a1").status is Status.HELD
    assert (len(world.queues[LANE]), world.line()) == (0, ["a1", "a2"])

    world.replay(event_ids=["a1"])
    world.wait(1200)
    assert world.order() == ["a1", "a1", "a2"]


def test_a_held_run_that_is_denied_lets_the_next_begin(world: SerialWorld) -> None:
    world.fail_for("a1", Held("a large sum"))
    world.accept_all("a1", "a2")
    world.outcomes()
    hold = ApprovalRequest(world.bill("a1"))
    assert (
        deciding(world).deny(hold, by=person("kim"), reason="no").outcome is ApprovalOutcome.DENIED
    )

    world.wait(120)

    assert world.order() == ["a1", "a2"]


def test_a_paused_handler_keeps_every_run_in_its_place(world: SerialWorld) -> None:
    request = PauseRequest(BILL, person("ann"), "a freeze", world.now)
    pauses.pause(world.table, world.randomness, request)
    world.accept_all("a1", "a2", "a3")
    world.wait(3 * 3600)
    assert world.order() == []
    run = world.bill("a1")
    assert (run.status, run.waits_for, run.parked) == (Status.DEFERRED, RESUMPTION, True)
    assert (len(world.queues[LANE]), world.line()) == (0, ["a1", "a2", "a3"])

    request = PauseRequest(BILL, person("ann"), "over", world.now)
    pauses.resume(world.table, world.randomness, request)
    world.reconcile()
    world.wait(60)

    assert world.order() == ["a1", "a2", "a3"]
    assert world.bill("a1").attempt_count == 1


def test_the_time_of_a_pause_does_not_count_towards_a_runs_maximum_age() -> None:
    world = SerialWorld(serial(max_age=3600))
    request = PauseRequest(BILL, person("ann"), "a freeze", world.now)
    pauses.pause(world.table, world.randomness, request)
    world.accept("a1")
    world.wait(3 * 3600)
    request = PauseRequest(BILL, person("ann"), "over", world.now)
    pauses.resume(world.table, world.randomness, request)
    world.script(BILL, Deferred(world.now + timedelta(minutes=40), "the circuit is open"))
    world.reconcile()

    world.wait(1260)

    assert world.bill("a1").status is Status.DEFERRED
    world.wait(3600)
    assert world.bill("a1").status is Status.DONE


# -- no ordering key


@pytest.mark.parametrize("ordering_key", [None, "", ["cus_1"], True])
def test_an_event_without_its_ordering_key_is_accepted_and_its_run_dies_naming_the_path(
    world: SerialWorld, ordering_key: object
) -> None:
    world.accept("a1", ordering_key)

    assert world.outcomes() == [RunOutcome.DEAD]
    run = world.bill("a1")
    assert run.status is Status.DEAD_LETTER
    assert run.last_error.startswith("permanent: ")
    assert "'customer.id'" in run.last_error
    assert world.order() == []


def test_a_body_that_is_no_json_is_accepted_and_its_run_dies(world: SerialWorld) -> None:
    assert world.deliver("a1", body=b"\xff").status == 202

    assert world.outcomes() == [RunOutcome.DEAD]


def test_runs_without_an_ordering_key_do_not_wait_for_each_other(world: SerialWorld) -> None:
    for event_id in ("a1", "a2"):
        world.accept(event_id, None)

    assert world.receive(LANE) is not None
    assert world.receive(LANE) is not None


# -- what is sent again


def test_a_duplicate_sends_what_was_lost_into_its_group(world: SerialWorld) -> None:
    world.plan.fail("SendMessageBatch")
    body = b'{"customer": {"id": "cus_1"}}'
    assert world.deliver("a1", body=body).status == 503
    world.plan.heal()

    assert world.deliver("a1", body=body).status == 200
    world.accept("a2")

    assert world.receive(LANE) is not None
    assert world.receive(LANE) is None, "a2 is in another group"


def test_a_duplicate_of_what_waits_runs_nothing_twice(world: SerialWorld) -> None:
    world.accept_all("a1", "a2")
    world.deliver("a1", body=b'{"id": "a1", "customer": {"id": "cus_1"}}')
    world.clock.advance(seconds=301)
    world.deliver("a2", body=b'{"id": "a2", "customer": {"id": "cus_1"}}')

    world.outcomes()

    assert world.order() == ["a1", "a2"]
    assert len(world.queues[LANE]) == 0


def test_what_was_never_sent_the_reconciler_sends_into_its_group(world: SerialWorld) -> None:
    world.accept("a1")
    world.drop_messages()
    world.clock.advance(seconds=240)

    world.reconcile_at(5)
    world.accept("a2")

    assert world.bill("a1").ordering_key == "cus_1"
    world.outcomes()
    assert world.order() == ["a1", "a2"]


def test_what_is_overdue_is_sent_again_into_its_group(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("once"))
    world.accept("a1")
    world.outcomes()
    world.drop_messages()
    world.clock.advance(seconds=2 * 3600)
    world.reconcile()
    world.accept("a2")

    world.outcomes()

    assert world.order() == ["a1", "a1", "a2"]


def test_what_waits_behind_a_long_wait_is_never_taken_for_lost(world: SerialWorld) -> None:
    world.fail_for("a1", Deferred(world.now + timedelta(days=12), "for long"))
    world.accept_all("a1", "a2")
    for _ in range(12 * 8):
        world.wait(3 * 3600)
        world.reconcile_at(5)

    world.wait(86400)

    assert world.order() == ["a1", "a1", "a2"]
    assert len(world.queues[LANE]) == 0


def test_a_lost_message_is_replaced_although_another_ordering_key_waits_for_long(
    world: SerialWorld,
) -> None:
    world.fail_for("b1", Deferred(world.now + timedelta(days=12), "for long"))
    world.accept("b1", "cus_2")
    world.outcomes()
    world.accept("a1")
    world.queues[LANE].delete(world.taken(LANE).receipt)
    world.clock.advance(seconds=240)
    world.plan.fail("SendMessageBatch")
    world.reconcile_at(5)
    world.plan.heal()

    world.wait(3600)
    world.reconcile()
    world.outcomes()

    assert world.bill("a1").status is Status.DONE


def test_a_message_that_was_received_too_often_is_replaced(world: SerialWorld) -> None:
    world.fail_for("a1", Deferred(world.now + timedelta(days=13), "for long"))
    world.accept("a1")
    for _ in range(1000):
        message = world.receive(LANE)
        assert message is not None
        world.process(message, lane=LANE)
        world.queues[LANE].hide(message.receipt, 0)
    assert world.receive(LANE) is None
    assert len(world.dlqs[LANE]) == 1

    world.clock.advance(seconds=14 * 86400)
    world.reconcile()
    world.outcomes()

    assert world.bill("a1").status is Status.DONE


# -- deployments


def test_a_handler_that_becomes_serial_takes_what_waits_in_its_new_lane() -> None:
    world = SerialWorld(handler(BILL))
    for event_id in ("a1", "a2"):
        world.deliver(event_id, body=b'{"customer": {"id": "cus_1"}}')
    world.deploy(with_handlers(serial()))

    assert world.work() == [RunOutcome.DEFERRED] * 2
    assert {run.ordering_key for run in map(world.bill, ("a1", "a2"))} == {"cus_1"}
    assert world.order() == []
    world.reconcile()

    assert world.receive(LANE) is not None
    assert world.receive(LANE) is None, "they are in two groups"


def test_one_that_becomes_serial_and_cannot_be_dies_where_it_is() -> None:
    world = SerialWorld(handler(BILL))
    world.deliver("a1", body=b"no JSON")
    world.deploy(with_handlers(serial()))

    assert world.work()[0] is RunOutcome.DEAD


def test_what_was_adopted_without_its_ordering_key_is_sent_anew_with_it(world: SerialWorld) -> None:
    world.accept("a1")
    row = world.event_row("a1")
    assert row is not None
    world.table.put({k: v for k, v in row.items() if k != "ordering_keys"})
    world.drop_messages()
    world.clock.advance(seconds=240)
    world.reconcile_at(5)

    assert world.outcomes() == [RunOutcome.DEFERRED]
    world.clock.advance(seconds=60)
    world.reconcile()

    assert world.outcomes() == [RunOutcome.DONE]
    assert world.bill("a1").ordering_key == "cus_1"


def test_a_handler_that_is_serial_no_more_finishes_what_is_in_its_lane(
    world: SerialWorld,
) -> None:
    world.accept_all("a1", "a2")
    world.deploy(with_handlers(handler(BILL)))

    assert world.outcomes() == [RunOutcome.DONE] * 2


def test_a_handler_that_has_left_waits_in_its_place(world: SerialWorld) -> None:
    world.accept_all("a1", "a2")
    world.deploy(with_handlers(serial("acme.other")))

    assert world.outcomes() == [RunOutcome.DEFERRED]
    world.deploy(with_handlers(serial()))
    world.wait(120)

    assert world.order() == ["a1", "a2"]


# -- whatever comes


@pytest.mark.parametrize("seed", range(12))
def test_order_holds_with_workers_that_interleave_fail_and_are_killed(seed: int) -> None:
    dice, world = Random(seed), SerialWorld(seed=seed)
    sent: dict[str, list[str]] = {f"cus_{n}": [] for n in range(4)}
    finished: dict[str, list[str]] = {ordering_key: [] for ordering_key in sent}

    def act(event: object, _: object) -> None:
        if dice.random() < 0.2:
            raise dice.choice([Transient("later"), Deferred(world.now + timedelta(seconds=40))])
        ordering_key, id_ = event.json()["customer"]["id"], event.id  # type: ignore[attr-defined]
        finished[ordering_key].append(id_)

    world.behaviours[BILL] = act
    world.deploy(with_handlers(serial(max_age=28 * 86400.0)))
    for number in range(60):
        ordering_key = dice.choice(list(sent))
        world.accept(f"{ordering_key}-{number}", ordering_key)
        sent[ordering_key].append(f"{ordering_key}-{number}")
        for _ in range(dice.randrange(3)):
            message = world.receive(LANE)
            if message is None:
                continue
            if dice.random() < 0.15:
                continue  # killed before it did anything
            kept = world.process(message, lane=LANE).keeps_message
            if not kept and dice.random() < 0.85:
                world.queues[LANE].delete(message.receipt)
        world.clock.advance(seconds=dice.choice([0, 1, 30, 200]))
    world.wait(86400)

    died = {run.event_id for _, run in world.ledger.dead_runs() if run is not None}
    expected = {e: [id_ for id_ in ids if id_ not in died] for e, ids in sent.items()}
    assert {e: list(dict.fromkeys(ids)) for e, ids in finished.items()} == expected
    assert all(len(ids) == len(set(ids)) for ids in finished.values())
    assert len(world.queues[LANE]) == 0


def test_events_behind_a_waiting_key_cost_the_reconciler_no_write(world: SerialWorld) -> None:
    for minute in range(60):
        world.fails(BILL, Deferred(world.now + timedelta(seconds=59), "not yet"))
        world.accept_all(*(f"e{minute}-{number}" for number in range(3)))
        world.outcomes()
        world.clock.advance(minutes=1)
        assert not world.reconcile().counts
    # Only the first run has begun; each other event waits as one message.
    assert len(world.queues[LANE]) == 180
    assert [row["event_id"] for row in world.table if row["sk"].startswith("run#")] == ["e0-0"]
