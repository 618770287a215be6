"""Violations of `latest` and `sequence` ordering are detected."""

from dataclasses import replace
from typing import Any

import pytest

from simulation.engine import invocations
from simulation.engine.apply import apply
from simulation.engine.invocations import with_preloaded
from simulation.engine.stepping import Stepping
from simulation.engine.world import World
from simulation.invariants.observer import RunName, Violation
from simulation.invariants.ordering import check_order, order_of
from simulation.worlds.builders import FIRST, MAIL
from simulation.worlds.ordered import NEWEST, NUMBERED, ONE, SKIPPING, THREE, TWO
from simulation.worlds.scenario import Deployment, Scenario
from tests.simulation.tiny import TINY, ingested
from webhook_inbox.domain.ports import Change
from webhook_inbox.ledger.schema import run_key

FIRST_RUN, SECOND_RUN, THIRD_RUN = (("acme", f"e{n}", "mail") for n in (1, 2, 3))


def accepted(on: Deployment) -> World:
    """Returns a world in which three versions of one ordering key were accepted."""
    scenario = Scenario("placed", (ONE, TWO, THREE), (on,), workers=2)
    return with_preloaded(World(scenario, Stepping()))


def note(world: World, run: RunName, **values: Any) -> None:
    """Writes a run's row."""
    world.aws.table.update(run_key(*run), Change(set=values))
    world.aws.table.written.clear()


def refused(world: World, run: RunName, text: str) -> None:
    with pytest.raises(Violation, match=text) as violation:
        check_order(world, run)
    assert violation.value.guarantee == "order"


# -- whom it concerns


def test_a_handler_without_an_order_may_begin_at_any_time() -> None:
    world = ingested(replace(TINY, webhooks=(FIRST,)))
    assert order_of(world, "mail") is None
    check_order(world, ("acme", "e1", "mail"))
    assert world.observer.versions == {}


def test_a_handler_that_is_not_deployed_has_no_order() -> None:
    assert order_of(accepted(NEWEST), "ship") is None
    assert order_of(accepted(MAIL), "mail") is None


# -- one after another


def test_a_newer_version_may_begin_and_an_older_one_may_not() -> None:
    world = accepted(NEWEST)
    check_order(world, SECOND_RUN)
    assert world.observer.versions == {("mail", "42"): 2}
    check_order(world, SECOND_RUN)
    check_order(world, THIRD_RUN)
    refused(world, SECOND_RUN, "began version 2 after 3")


def test_a_forced_run_may_be_older() -> None:
    world = accepted(NEWEST)
    check_order(world, SECOND_RUN)
    world.observer.forced.add(FIRST_RUN)
    check_order(world, FIRST_RUN)
    assert world.observer.versions == {("mail", "42"): 2}


def test_two_of_one_ordering_key_are_never_at_work() -> None:
    world = accepted(NEWEST)
    invocations.receive(world, "default", "default-1")
    slot = "worker 1"
    while world.jobs[slot].handling is None:
        call = world.jobs[slot].node.call
        begins = call is not None and call.method == "begin"
        apply(world, ("handles", slot, "well") if begins else ("step", slot, "ok"))
    assert world.jobs[slot].handling == FIRST_RUN
    refused(world, SECOND_RUN, "began while")
    check_order(world, FIRST_RUN)  # its own attempts are the business of G2


# -- without a gap


def test_a_number_begins_once_those_before_it_were_applied() -> None:
    world = accepted(NUMBERED)
    refused(world, SECOND_RUN, "began before 1")
    world.observer.succeeded.add(FIRST_RUN)
    check_order(world, SECOND_RUN)
    refused(world, THIRD_RUN, "began before 2")


@pytest.mark.parametrize(
    ("run", "values"),
    [
        (FIRST_RUN, {"status": "skipped"}),
        (SECOND_RUN, {"approvals": {"order": {"by": "ann"}}}),
    ],
    ids=["denied", "approved"],
)
def test_a_person_may_let_a_number_be_passed_over(run: RunName, values: dict[str, Any]) -> None:
    world = accepted(NUMBERED)
    note(world, run, **values)
    check_order(world, SECOND_RUN)
    world.observer.succeeded.add(SECOND_RUN)
    check_order(world, THIRD_RUN)  # what lies before the second was decided with it


def test_a_gap_is_skipped_only_after_its_timeout() -> None:
    world = accepted(SKIPPING)
    world.clock.ms += 59_999
    refused(world, SECOND_RUN, "began before 1")
    world.clock.ms += 1
    check_order(world, SECOND_RUN)


def test_a_gap_that_a_person_decides_is_never_over_by_itself() -> None:
    world = accepted(NUMBERED)
    world.clock.ms += 86_400_000
    refused(world, SECOND_RUN, "began before 1")
