"""An event id that comes again after its event has expired: a new event, which meets an old run."""

from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Faults
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.timestamps import from_seconds, to_seconds
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger import pauses
from webhook_inbox.ledger.pauses import PauseRequest
from webhook_inbox.ledger.schema import EVENT_LIFE, RUN_LIFE
from webhook_inbox.queue.outcomes import RunOutcome


def test_a_run_that_is_done_stays_done_as_long_as_the_new_event_lives(world: World) -> None:
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=36)

    assert world.deliver().outcome is IngestOutcome.ACCEPTED
    received_at = world.overview().event.received_at
    world.run_until_quiet()

    assert len(world.handled) == 1
    assert world.run().status is Status.DONE
    assert world.run().expires_at == from_seconds(to_seconds(received_at + RUN_LIFE))


def test_the_same_where_the_old_run_has_expired_and_is_not_deleted_yet(world: World) -> None:
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=43)

    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=34)
    world.table.delete_expired(world.now)

    assert world.run().status is Status.DONE


def test_a_run_that_died_is_tried_again_for_the_new_event(world: World) -> None:
    world.fails("acme.fulfil", ValueError("no such order"))
    world.deliver()
    world.run_until_quiet()
    assert world.run().status is Status.DEAD_LETTER
    world.clock.advance(days=36)
    world.behaviours.clear()

    world.deliver()
    world.run_until_quiet()

    assert world.run().status is Status.DONE


def test_a_run_that_was_replayed_and_died_is_tried_again_for_the_new_event(world: World) -> None:
    world.dead()
    world.replay(event_ids=["evt-1"])
    world.fails("acme.fulfil", Permanent("no"))
    world.work()
    assert (world.run().status, world.run().generation) == (Status.DEAD_LETTER, 1)
    world.clock.advance(days=36)
    world.behaviours.clear()

    world.deliver()
    world.deliver()

    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert (world.run().status, world.run().attempts_in_round) == (Status.DONE, 1)


def test_the_new_attempt_waits_while_its_handler_is_paused(world: World) -> None:
    world.fails("acme.fulfil", ValueError("no such order"))
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=36)
    world.behaviours.clear()
    request = PauseRequest("acme.fulfil", person("ann"), "a freeze", world.now)
    pauses.pause(world.table, world.randomness, request)

    world.deliver()

    assert world.work() == [RunOutcome.DEFERRED]
    assert world.run().status is Status.DEFERRED


def test_a_duplicate_sends_it_where_the_new_event_was_never_enqueued(world: World) -> None:
    world.fails("acme.fulfil", ValueError("no such order"))
    world.deliver()
    world.run_until_quiet()
    world.behaviours.clear()
    world.clock.advance(days=EVENT_LIFE.days + 1)
    world.plan.fail("SendMessageBatch")
    assert world.deliver().outcome is IngestOutcome.UNAVAILABLE

    assert world.deliver().outcome is IngestOutcome.DUPLICATE
    world.run_until_quiet()

    assert world.run().status is Status.DONE


def test_within_its_events_life_no_write_is_spent_on_it(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.process(message)
    world.plan.operations()

    world.process(message)

    assert world.plan.operations().count("UpdateItem") == 1


def test_a_run_that_expires_while_it_is_looked_at_is_begun_anew(world: World) -> None:
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=43)
    world.deliver()
    message = world.taken()
    world.table.faults = _deletes_what_has_expired_before(world, "UpdateItem", number=2)

    outcome = world.process(message).outcome

    assert outcome is RunOutcome.UNAVAILABLE
    world.table.faults = world.plan
    world.run_until_quiet()
    assert world.run().attempt_count == 1
    assert len(world.handled) == 2


def _deletes_what_has_expired_before(world: World, operation: str, *, number: int) -> Faults:
    seen = 0

    def faults(_: str, called: str) -> None:
        nonlocal seen
        seen += called == operation
        if seen == number:
            world.table.delete_expired(world.now)

    return faults


def test_what_an_old_run_did_is_known_as_long_as_the_new_event_lives(world: World) -> None:
    calls: list[str] = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: ctx.effect("order", calls.append)
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=36)
    world.deliver()
    world.run_until_quiet()

    # The first event's effects would have expired by now.
    world.clock.advance(days=20)
    world.table.delete_expired(world.now)
    world.replay(event_ids=("evt-1",), handler="acme.fulfil", force=True)
    world.run_until_quiet()

    assert world.run().attempt_count == 2
    assert len(calls) == 1
