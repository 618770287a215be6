"""Exploration with merged states reaches the same states as every schedule one by one."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from simulation.engine.apply import apply
from simulation.engine.choices import choices
from simulation.engine.failure import Failure
from simulation.engine.stepping import Stepping
from simulation.engine.world import World
from simulation.invariants.observer import Violation
from simulation.search import exhaustive
from simulation.search.exhaustive import Explored, explore
from simulation.worlds.builders import AGAIN, BOTH, FIRST, MAIL, wider
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.scenario import FAILS, Budget, Scenario
from tests.simulation.tiny import TINY

NOBODY = replace(MAIL, manifest=replace(MAIL.manifest, handlers={}))
ONE_FAULT = Budget(faults=1)
WORLDS = {
    "no fault": TINY,
    "a fault": replace(TINY, budget=ONE_FAULT),
    "two faults": replace(TINY, budget=Budget(faults=2), faults=("before", "after")),
    "repeated": replace(TINY, budget=ONE_FAULT, faults=("twice",)),
    "delayed": replace(TINY, budget=ONE_FAULT, faults=("delayed",)),
    "failing": replace(
        TINY, budget=Budget(failures=1, jumps=1), outcomes={"mail": (FAILS,)}, faults=()
    ),
    "two handlers": replace(TINY, deployments=(BOTH,)),
    "a large body": replace(
        TINY,
        webhooks=(replace(FIRST, padding=20_000),),
        budget=ONE_FAULT,
        faults=("before", "after"),
    ),
    "two at once": replace(
        TINY, webhooks=(FIRST, AGAIN), deployments=(NOBODY,), receivers=2, budget=ONE_FAULT
    ),
}
# Schedules, states, and how often the world was let converge.
COUNTS = {"no fault": (8, 18, 2), "a fault": (70, 89, 17), "two faults": (111, 147, 24)}


def one_by_one(scenario: Scenario, stepping: Stepping) -> Iterator[list[Hashable]]:
    """Yields the states of every schedule, each begun from nothing: none merged, none put back."""
    taken: list[int] = []
    while True:
        world, states, widths = World(scenario, stepping), [], []
        states.append(world.key())
        for depth in range(200):
            options = list(choices(world))
            if not options:
                break
            taken += [0] * (depth == len(taken))
            widths.append(len(options))
            apply(world, options[taken[depth]])
            states.append(world.key())
            if states[-1] == states[-2]:
                break  # Nothing to wait for: no time passes.
        yield states
        while taken and taken[-1] + 1 == widths[len(taken) - 1]:
            taken.pop()
        if not taken:
            return
        taken[-1] += 1


def merged(
    scenario: Scenario, stepping: Stepping, monkeypatch: pytest.MonkeyPatch
) -> tuple[set[Hashable], Explored]:
    """Returns the states that `explore` finds, and its counts."""
    seen: set[Hashable] = set()

    class Watched(World):
        def key(self) -> Hashable:
            key = super().key()
            seen.add(key)
            return key

    monkeypatch.setattr(exhaustive, "World", Watched)
    return seen, explore(scenario, found=Explored(stepping=stepping))


@pytest.mark.parametrize("name", WORLDS)
def test_every_schedule_reaches_what_the_merged_search_reaches(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepping = Stepping()
    seen, found = merged(WORLDS[name], stepping, monkeypatch)
    schedules = list(one_by_one(WORLDS[name], stepping))
    assert {state for states in schedules for state in states} == seen
    assert found.complete
    assert found.states == len(seen) - 1  # all but the first, which nothing led to
    assert found.deepest >= max(map(len, schedules)) - 2
    assert found.schedules <= len(schedules)


def test_a_key_that_forgets_something_would_lose_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""
    stepping, scenario = Stepping(), WORLDS["a fault"]
    everything = {state for states in one_by_one(scenario, stepping) for state in states}
    monkeypatch.setattr(World, "key", lambda world: (world.clock.ms, world.aws.key()))
    _, found = merged(scenario, stepping, monkeypatch)
    assert found.states < len(everything) - 1


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_are_stable(name: str) -> None:
    counts = set()
    for _ in range(2):
        found = explore(WORLDS[name])
        counts.add((found.schedules, found.states, found.converged))
    assert counts == {COUNTS[name]}


def test_a_search_that_was_cut_says_so() -> None:
    found = explore(WORLDS["two faults"], states=50)
    assert not found.complete
    assert 50 <= found.states < COUNTS["two faults"][1]  # what it stood before is still looked at


def test_convergence_is_checked_in_each_idle_state(monkeypatch: pytest.MonkeyPatch) -> None:
    converged: list[Any] = []
    monkeypatch.setattr(exhaustive, "converge", lambda world: converged.append(world.key()))
    found = explore(WORLDS["a fault"])
    assert len(converged) == len(set(converged)) == found.converged


def test_a_failure_carries_the_schedule_that_leads_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(world: World) -> None:
        raise Violation("G1", "as told")

    monkeypatch.setattr(exhaustive, "converge", never)
    with pytest.raises(Failure, match="tiny: G1: as told") as failure:
        explore(TINY)
    assert failure.value.schedule[-1] == ("converges",)
    assert failure.value.seed is None


def test_a_wider_world_has_more_faults_and_moves_of_the_clock() -> None:
    jumping = replace(TINY, budget=Budget(faults=1, jumps=1))
    assert wider(jumping, 2).budget == Budget(faults=3, jumps=3)
    assert wider(WORLDS["a fault"], 2).budget == Budget(faults=3)


def test_the_small_worlds_have_different_names() -> None:
    assert len({world.name for world in SMALL_WORLDS}) == len(SMALL_WORLDS)
