"""Random schedules of large worlds; the same seed gives the same schedule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from simulation.engine.apply import apply
from simulation.engine.choices import Choice, choices
from simulation.engine.failure import Failure
from simulation.engine.invocations import with_preloaded
from simulation.engine.stepping import Stepping
from simulation.engine.world import World
from simulation.invariants.convergence import converge
from simulation.invariants.observer import Violation
from simulation.search.random_worlds import random_world
from simulation.worlds.scenario import Scenario

LONGEST: Final = 150
# The relative weight of each kind of choice.
WEIGHTS: Final = {
    "step": 10.0,
    "handles": 10.0,
    "receives": 6.0,
    "sends": 4.0,
    "arrives": 1.0,
    "time": 3.0,
    "reconciles": 1.5,
    "replays": 0.7,
    "redrives": 1.0,
    "decides": 1.0,
    "says": 1.0,
    "pauses": 0.5,
    "resumes": 1.0,
    "opens": 0.5,
    "closes": 1.0,
    "erases": 0.5,
    "deploys": 0.3,
    "ages": 2.0,
    "expires": 0.5,
    "killed": 0.3,
    "freezes": 0.2,
    "throttles": 0.2,
    "loses": 0.1,
    "reappears": 0.2,
}
FAULTY: Final = 0.5


class Path(NamedTuple):
    """A walked schedule and its world."""

    scenario: Scenario
    schedule: tuple[Choice, ...]


@dataclass(slots=True)
class Walked:
    """The counts of a series of walks."""

    schedules: int = 0
    steps: int = 0
    stepping: Stepping = field(default_factory=Stepping)


def walk(seed: int, walked: Walked) -> Path:
    """Walks one schedule, checks convergence, and returns the schedule.

    Raises:
        Failure: a guarantee is broken.
    """
    rng = Random(seed)  # noqa: S311 - repeatable on purpose
    scenario = random_world(rng)
    world = with_preloaded(World(scenario, walked.stepping))
    path: list[Choice] = []
    try:
        for _ in range(rng.randint(10, LONGEST)):
            options = list(choices(world))
            if not options:
                break
            (choice,) = rng.choices(options, [_weight(option) for option in options])
            path.append(choice)
            apply(world, choice)
        path.append(("converges",))
        converge(world)
    except Violation as violation:
        raise Failure(scenario, tuple(path), violation, seed) from violation
    walked.schedules += 1
    walked.steps += len(path)
    if walked.stepping.crowded:
        walked.stepping.forget()
    return Path(scenario, tuple(path))


def follow(scenario: Scenario, schedule: Sequence[Choice]) -> Iterator[tuple[World, Choice]]:
    """Applies a schedule again, then converges; yields before each step.

    Choices that are no longer possible, because an earlier one was removed, are skipped.

    Raises:
        Violation: a guarantee is broken.
    """
    world = with_preloaded(World(scenario, Stepping()))
    for choice in schedule:
        if choice in choices(world):
            yield world, choice
            apply(world, choice)
    yield world, ("converges",)
    converge(world)


def _weight(choice: Choice) -> float:
    ordinary = choice[0] != "step" or choice[2] == "ok"
    return WEIGHTS[choice[0]] if ordinary else FAULTY
