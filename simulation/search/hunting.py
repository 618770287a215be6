"""Searches the importable library for a broken guarantee and prints the finding as JSON.

    python -m simulation.search.hunting STATES [WORLD …]

It explores at most STATES states of each of the named small worlds, and runs the named nights; then
it explores random worlds, then the other small worlds.

The bounds are counts, not seconds, so that the same library always gives the same result.
"""

import gc
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from traceback import format_exception_only
from typing import Final

import webhook_inbox
from simulation.engine.failure import Failure
from simulation.engine.narrate import narrate
from simulation.engine.night import run_night
from simulation.invariants.observer import Violation
from simulation.search.exhaustive import Explored, explore
from simulation.search.random_walks import Walked, walk
from simulation.search.shrinking import shrink
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.nights import NIGHTS, Night
from simulation.worlds.scenario import Scenario

STATES: Final = 20_000
SEEDS: Final = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a hunt.

    Attributes:
        examined: the path of the examined library.
        guarantee: the broken guarantee; "" for none, "crash" if the simulation itself failed.
        text: the violation.
        world: the world in which it occurred.
        schedules: the number of executed schedules.
        trace: the number of lines of the shrunk trace.
    """

    examined: str
    guarantee: str
    text: str
    world: str
    schedules: int
    trace: int


class Hunt:
    """One hunt.

    Attributes:
        world: the current world.
        schedules: the number of executed schedules.
    """

    def __init__(self, *, states: int = STATES, seeds: int = SEEDS) -> None:
        self.world = ""
        self.schedules = 0
        self._states = states
        self._seeds = seeds

    def run(self, first: Sequence[str]) -> Finding:
        """Hunts until a guarantee is broken or the bounds are reached.

        Args:
            first: the names of the small worlds and nights to begin with.
        """
        try:
            self._search(first)
        except Failure as failure:
            broken = failure.violation
            return self._catch(broken.guarantee, broken.text, _lines(failure))
        except Violation as broken:
            return self._catch(broken.guarantee, broken.text, 0)  # of a night, which has no trace
        except Exception as error:  # noqa: BLE001 - a mutant may crash the simulation
            return self._catch("crash", "".join(format_exception_only(error)).strip(), 0)
        return self._catch("", "", 0)

    def _search(self, first: Sequence[str]) -> None:
        others = {world.name: world for world in SMALL_WORLDS}
        nights = {night.name: night for night in NIGHTS}
        for name in first:
            if name in nights:
                self._run_night(nights[name])
            else:
                self._explore(others.pop(name))
        walked = Walked()
        for seed in range(self._seeds):
            self.world = f"seed {seed}"
            walk(seed, walked)
            self.schedules += 1
        for world in others.values():
            self._explore(world)

    def _explore(self, world: Scenario) -> None:
        self.world = world.name
        found = Explored()
        try:
            explore(world, states=self._states, found=found)
        finally:
            self.schedules += found.schedules

    def _run_night(self, night: Night) -> None:
        self.world = night.name
        run_night(night)
        self.schedules += 1

    def _catch(self, guarantee: str, text: str, trace: int) -> Finding:
        library = str(Path(webhook_inbox.__file__ or "").parent)
        return Finding(library, guarantee, text, self.world, self.schedules, trace)


def _lines(failure: Failure) -> int:
    try:
        shrunk = shrink(failure)
        return sum(1 for _ in narrate(shrunk.scenario, shrunk.schedule))
    except Exception:  # noqa: BLE001 - a mutant may crash the simulation on another schedule
        return len(failure.schedule)


if __name__ == "__main__":
    # The cyclic garbage collector would traverse all the retained state again and again.
    gc.disable()
    print(json.dumps(asdict(Hunt(states=int(sys.argv[1])).run(sys.argv[2:]))))
