"""How attempts end that are neither done nor failed: skipped, held, parked; and who is paged."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Held, Permanent, Skipped
from webhook_inbox.domain.internal_errors import ApprovalRequired, Postponed, TransientOfCall
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.queue.outcomes import RunOutcome

NAME = "acme.fulfil"


def test_a_skipped_run_is_finished_and_says_why(world: World) -> None:
    world.script(NAME, Skipped("stale: version 3, and 5 was applied"))
    world.deliver()
    assert world.work() == [RunOutcome.SKIPPED]

    run = world.run()
    assert (run.status, run.last_error) == (
        Status.SKIPPED,
        "stale: version 3, and 5 was applied",
    )
    assert run.done_at == world.now
    assert not run.in_due_index
    assert world.messages() == []
    world.deliver()
    world.work()
    assert len(world.handled) == 1


def test_a_held_run_says_what_is_decided_and_spends_no_attempt(world: World) -> None:
    world.script(
        NAME, ApprovalRequired("a lot", subject="policy", shows="20000 EUR", fingerprint="f1")
    )
    world.deliver()
    assert world.work() == [RunOutcome.HELD]

    run = world.run()
    assert run.status is Status.HELD
    assert (run.attempt_count, run.attempts_in_round) == (0, 0)
    assert dict(run.held) == {
        "subject": "policy",
        "reason": "a lot",
        "shows": "20000 EUR",
        "fingerprint": "f1",
        "at": to_ms(world.now),
    }
    assert run.in_due_index
    assert world.messages() == []


def test_what_a_person_sees_holds_no_secret_and_fits_the_row(world: World) -> None:
    world.vault.rotate("crm", "a-secret-of-the-crm")
    shows = "token a-secret-of-the-crm " + "x" * 5000

    def act(event: Any, ctx: Any) -> None:
        ctx.secret("crm")
        raise Held("with a-secret-of-the-crm", shows=shows)

    world.behaviours[NAME] = act
    world.deliver()
    world.work()
    held = world.run().held
    assert "a-secret-of-the-crm" not in str(held)
    assert len(held["shows"].encode()) <= 1024


def test_a_parked_deferral_has_no_message_and_comes_back_when_due(world: World) -> None:
    until = world.now + timedelta(minutes=5)
    world.script(
        NAME, Postponed(until, "waits for its predecessor", parked=True, waits_for="order")
    )
    world.deliver()
    assert world.work() == [RunOutcome.DEFERRED]

    run = world.run()
    assert (run.parked, run.waits_for, run.attempt_count) == (True, "order", 0)
    assert world.messages() == []
    world.run_until_quiet()
    assert world.run().status is Status.DONE
    assert world.run().waits_for == ""
    assert world.now >= until


@pytest.mark.parametrize(
    ("error", "paged"),
    [
        (Permanent("401", page=True), True),
        (Permanent("422"), False),
        (TransientOfCall("no such host", max_attempts=1, page=True), True),
        (TransientOfCall("down", max_attempts=1), False),
    ],
)
def test_giving_up_for_good_may_page(world: World, error: Exception, paged: bool) -> None:
    world.fails(NAME, error)
    world.deliver()
    result = world.work_once()
    assert result is not None
    assert (result.outcome, result.page) == (RunOutcome.DEAD, paged)


def test_a_retry_does_not_page(world: World) -> None:
    world.fails(NAME, TransientOfCall("no such host", max_attempts=3, page=True))
    world.deliver()
    result = world.work_once()
    assert result is not None
    assert (result.outcome, result.page) == (RunOutcome.FAILED, False)


@pytest.mark.parametrize(("allowed", "made"), [(1, 1), (2, 2), (3, 3), (99, 5)])
def test_an_error_may_allow_fewer_attempts_and_never_more(allowed: int, made: int) -> None:
    quick = Backoff(base=1, factor=1, cap=1)
    spec = handler(NAME, "paid", max_attempts=5, backoff=quick)
    world = World(replace(MANIFEST, handlers={NAME: spec}))
    world.fails(NAME, TransientOfCall("no such host", max_attempts=allowed))
    world.deliver()
    world.run_until_quiet()
    assert world.run().status is Status.DEAD_LETTER
    assert len(world.handled) == made


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("error", [Skipped("nothing to do"), Held("a lot")])
def test_an_ending_that_cannot_be_written_is_come_to_again(
    world: World, error: Exception, fault: Fault
) -> None:
    world.script(NAME, error, error)
    world.deliver()
    world.plan.fail("UpdateItem", fault, skip=1)
    world.work()
    world.plan.heal()
    world.run_until_quiet()
    expected = Status.SKIPPED if isinstance(error, Skipped) else Status.HELD
    assert world.run().status is expected
