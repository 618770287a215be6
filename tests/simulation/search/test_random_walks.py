"""The same seed gives the same world, schedule and trace in every process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simulation.engine import stepping
from simulation.engine.apply import EFFECTS
from simulation.engine.failure import Failure
from simulation.engine.narrate import _SENTENCES, HOW, narrate
from simulation.engine.world import World
from simulation.invariants.observer import Violation
from simulation.search.random_walks import WEIGHTS, Walked, follow, walk
from simulation.search.random_worlds import ALL_FAULTS, HANDLERS

ROOT = Path(__file__).parents[3]
SEEDS = range(6)
TOLD = """
import json
from simulation.engine.narrate import narrate
from simulation.search.random_walks import Walked, walk
paths = [walk(seed, Walked()) for seed in range(6)]
traces = [list(narrate(path.scenario, path.schedule)) for path in paths]
print(json.dumps([[repr(path.scenario.budget), path.schedule, trace]
                  for path, trace in zip(paths, traces)]))
"""


def told_elsewhere(hash_seed: str) -> list[list[Any]]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TOLD],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    traces: list[list[Any]] = json.loads(done.stdout)
    return traces


def test_another_process_walks_and_tells_the_same() -> None:
    one, other = told_elsewhere("1"), told_elsewhere("2")
    assert one == other
    walked = [walk(seed, Walked()) for seed in SEEDS]
    assert [[list(choice) for choice in path.schedule] for path in walked] == [
        schedule for _, schedule, _ in one
    ]


def test_earlier_walks_do_not_change_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = [walk(seed, Walked()).schedule for seed in SEEDS]
    shared = Walked()
    assert [walk(seed, shared).schedule for seed in SEEDS] == fresh
    assert shared.schedules == len(SEEDS)
    assert shared.steps == sum(map(len, fresh))
    monkeypatch.setattr(stepping, "MAX_NODES", 0)
    forgetful = Walked()
    assert [walk(seed, forgetful).schedule for seed in SEEDS] == fresh
    assert not forgetful.stepping._roots


def test_different_seeds_give_different_worlds_and_schedules() -> None:
    paths = [walk(seed, Walked()) for seed in SEEDS]
    assert len({path.schedule for path in paths}) == len(paths)
    assert len({repr(path.scenario) for path in paths}) == len(paths)


def test_a_schedule_ends_with_the_world_being_healed() -> None:
    assert all(walk(seed, Walked()).schedule[-1] == ("converges",) for seed in SEEDS)


def test_following_a_walk_takes_every_step_of_it() -> None:
    path = walk(3, Walked())
    assert tuple(choice for _, choice in follow(path.scenario, path.schedule)) == path.schedule


def test_impossible_choices_are_skipped() -> None:
    path = walk(3, Walked())
    without = [choice for choice in path.schedule if choice[0] != "sends"]
    happened = [choice for _, choice in follow(path.scenario, without)]
    of_themselves = {"time", "reconciles", "replays", "pauses", "resumes", "step", "converges"}
    of_themselves |= {"opens", "closes", "deploys"}
    assert {choice[0] for choice in happened} <= of_themselves
    assert happened[-1] == ("converges",)


def test_whatever_may_happen_has_a_weight_a_taker_and_a_sentence() -> None:
    assert set(WEIGHTS) == set(EFFECTS)
    assert set(_SENTENCES) == {*EFFECTS, "converges"}


def test_the_dice_throws_every_kind_of_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a kind of fault could be forgotten and nothing would be broken by it."""
    kinds, hows, paused = set(), set(), set()
    monkeypatch.setattr("simulation.search.random_walks.converge", lambda world: None)
    for seed in range(430):
        for choice in walk(seed, Walked()).schedule:
            kinds.add(choice[0])
            hows |= {choice[2]} if choice[0] == "step" else set()
            paused |= {choice[1]} if choice[0] in {"pauses", "resumes"} else set()
    # Worlds of their own have the others.
    assert {*EFFECTS, "converges"} - kinds <= {"ages", "expires", "loses", "says"}
    assert paused == {*HANDLERS, "tenant#t1"}
    assert set(HOW) - hows <= {"stale", "refused"}  # rare, and seen by worlds of their own
    assert set(ALL_FAULTS) >= set(HOW) & hows - {"ok", "undeleted", "stale"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_story_has_a_line_for_each_step_and_ends_well(seed: int) -> None:
    path = walk(seed, Walked())
    lines = list(narrate(path.scenario, path.schedule))
    assert lines[-1] == "the world has converged"
    steps = [line for line in lines[:-1] if not line.startswith(" ")]
    assert len(steps) == len(path.schedule)
    assert all(line[:3] == "day" or line[2] == ":" for line in steps)


def test_a_walk_that_breaks_a_guarantee_says_which_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(world: World) -> None:
        raise Violation("G1", "as told")

    monkeypatch.setattr("simulation.search.random_walks.converge", never)
    with pytest.raises(Failure, match="random: G1: as told") as failure:
        walk(4, Walked())
    assert failure.value.seed == 4
    assert failure.value.schedule[-1] == ("converges",)
