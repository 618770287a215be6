"""Explores every choice in every state of a small world, each state once."""

from dataclasses import dataclass, field

from simulation.engine.apply import apply
from simulation.engine.choices import Choice, choices
from simulation.engine.failure import Failure
from simulation.engine.invocations import with_preloaded
from simulation.engine.stepping import Stepping
from simulation.engine.world import World
from simulation.invariants.convergence import converge
from simulation.invariants.observer import Violation
from simulation.worlds.scenario import Scenario


@dataclass(slots=True)
class Explored:
    """The counts of an exploration.

    Attributes:
        states: distinct states of the world.
        schedules: paths through them, each up to its end or to a known state.
        steps: applied choices.
        converged: states from which convergence was checked.
        deepest: the length of the longest schedule.
        complete: whether no state was left out.
        stepping: the program cache.
    """

    states: int = 0
    schedules: int = 0
    steps: int = 0
    converged: int = 0
    deepest: int = 0
    complete: bool = True
    stepping: Stepping = field(default_factory=Stepping)


def explore(
    scenario: Scenario, *, states: int = 10_000_000, found: Explored | None = None
) -> Explored:
    """Explores at most `states` states of a scenario and counts in `found`.

    Raises:
        Failure: a guarantee is broken.
    """
    found = found or Explored()
    world = with_preloaded(World(scenario, found.stepping))
    seen = {hash(world.key())}
    stack = [(world.snapshot(), list(choices(world)))]
    path: list[Choice] = []
    while stack:
        snapshot, left = stack[-1]
        if not left:
            stack.pop()
            if path:
                path.pop()
            continue
        choice = left.pop()
        world.restore(snapshot)
        path.append(choice)
        try:
            fresh = _step(world, choice, seen, found, len(path))
        except Violation as violation:
            raise Failure(scenario, tuple(path), violation) from violation
        if fresh and found.states < states:
            options = list(choices(world))
            if options:
                stack.append((world.snapshot(), options))
                _converge_here(world, scenario, path, found)
                continue
            _converge_here(world, scenario, path, found)
        found.complete = found.complete and (not fresh or found.states < states)
        found.schedules += 1
        path.pop()
    return found


def _step(world: World, choice: Choice, seen: set[int], found: Explored, depth: int) -> bool:
    apply(world, choice)
    found.steps += 1
    found.deepest = max(found.deepest, depth)
    key = hash(world.key())
    if key in seen:
        return False
    seen.add(key)
    found.states += 1
    return True


def _converge_here(world: World, scenario: Scenario, path: list[Choice], found: Explored) -> None:
    if world.jobs:
        return
    found.converged += 1
    try:
        converge(world)
    except Violation as violation:
        raise Failure(scenario, (*path, ("converges",)), violation) from violation
