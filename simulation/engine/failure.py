"""A schedule that broke a guarantee."""

from simulation.engine.choices import Choice
from simulation.invariants.observer import Violation
from simulation.worlds.scenario import Scenario


class Failure(Exception):
    """A schedule that broke a guarantee; `seed` is None unless a random walk made it."""

    def __init__(
        self,
        scenario: Scenario,
        schedule: tuple[Choice, ...],
        violation: Violation,
        seed: int | None = None,
    ) -> None:
        super().__init__(f"{scenario.name}: {violation}")
        self.scenario = scenario
        self.schedule = schedule
        self.violation = violation
        self.seed = seed
