"""Hunts for a broken guarantee in whatever library Python finds, and prints what it found.

    python -m simulation.search.hunting [WORLD …]     these small worlds first, then large ones, then all

The bounds are counts, not seconds, so that the same library always gives the same answer.
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
from simulation.search.exhaustive import Explored, explore
from simulation.search.random_walks import Walked, walk
from simulation.search.shrinking import shrink
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.scenario import Scenario

STATES: Final = 20_000
SEEDS: Final = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """What a hunt found.

    Attributes:
        library: the library that was hunted in.
        guarantee: the one that is broken; "" where none is, "crash" where the simulation could
            not go on.
        text: how it is broken.
        world: the world in which it is.
        schedules: how many schedules were gone through.
        trace: how many lines tell how it comes to that, once it is shrunk.
    """

    library: str
    guarantee: str
    text: str
    world: str
    schedules: int
    trace: int


class Hunt:
    """One hunt.

    Attributes:
        world: the world it is in, or was in last.
        schedules: how many schedules it has gone through.
    """

    def __init__(self, *, states: int = STATES, seeds: int = SEEDS) -> None:
        self.world = ""
        self.schedules = 0
        self._states = states
        self._seeds = seeds

    def run(self, first: Sequence[str]) -> Finding:
        """Hunts until something breaks or all is looked at.

        Args:
            first: the small worlds to begin with, by name.
        """
        try:
            self._look(first)
        except Failure as failure:
            broken = failure.violation
            return self._catch(broken.guarantee, broken.text, _lines(failure))
        except Exception as error:  # noqa: BLE001 - whatever a fault leads the simulation to
            return self._catch("crash", "".join(format_exception_only(error)).strip(), 0)
        return self._catch("", "", 0)

    def _look(self, first: Sequence[str]) -> None:
        others = {world.name: world for world in SMALL_WORLDS}
        for world in [others.pop(name) for name in first]:
            self._explore(world)
        walked = Walked()
        for seed in range(self._seeds):
            self.world = f"drawn {seed}"
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

    def _catch(self, guarantee: str, text: str, trace: int) -> Finding:
        library = str(Path(webhook_inbox.__file__ or "").parent)
        return Finding(library, guarantee, text, self.world, self.schedules, trace)


def _lines(failure: Failure) -> int:
    try:
        shrunk = shrink(failure)
        return sum(1 for _ in narrate(shrunk.scenario, shrunk.schedule))
    except Exception:  # noqa: BLE001 - a fault may crash the simulation on another schedule
        return len(failure.schedule)


if __name__ == "__main__":
    # Python's cyclic garbage collector would walk all that is remembered, over and over.
    gc.disable()
    print(json.dumps(asdict(Hunt().run(sys.argv[1:]))))
