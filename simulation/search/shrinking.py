"""Shrinks a failing schedule: removes every choice that the failure does not need."""

from collections.abc import Sequence

from simulation.engine.choices import Choice
from simulation.engine.failure import Failure
from simulation.invariants.observer import Violation
from simulation.search.random_walks import follow
from simulation.worlds.scenario import Scenario


def shrink(failure: Failure) -> Failure:
    """Returns a failure of the same guarantee with a minimal schedule."""
    schedule = [choice for choice in failure.schedule if choice != ("converges",)]
    best = failure
    size = max(1, len(schedule) // 2)
    while True:
        shorter = _shorter(failure, best, schedule, size)
        if shorter is not None:
            best = shorter
            schedule = [choice for choice in best.schedule if choice != ("converges",)]
        elif size == 1:
            return best
        else:
            size //= 2


def _shorter(
    failure: Failure, best: Failure, schedule: Sequence[Choice], size: int
) -> Failure | None:
    for start in range(0, len(schedule), size):
        rest = [*schedule[:start], *schedule[start + size :]]
        happened: list[Choice] = []
        violation = fails(best.scenario, rest, happened)
        same = violation is not None and violation.guarantee == failure.violation.guarantee
        if same and violation is not None and len(happened) < len(best.schedule):
            return Failure(best.scenario, tuple(happened), violation, failure.seed)
    return None


def fails(
    scenario: Scenario, schedule: Sequence[Choice], happened: list[Choice] | None = None
) -> Violation | None:
    """Returns the violation of a schedule, or None; appends the applied choices to `happened`."""
    try:
        for _, choice in follow(scenario, schedule):
            if happened is not None:
                happened.append(choice)
    except Violation as violation:
        return violation
    return None
