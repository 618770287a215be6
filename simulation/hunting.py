"""Hunts for a broken guarantee in whatever library Python finds, and prints what it found.

    python -m simulation.hunting [WORLD …]     these small worlds first, then large ones, then all

The bounds are counts, not seconds, so that the same library always gives the same answer.
"""

import gc
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from traceback import format_exception_only
from typing import Final

import webhook_inbox
from simulation.exhaustive import explore
from simulation.failure import Failure
from simulation.shrinking import shrink
from simulation.story import tell
from simulation.walks import Walked, walk
from simulation.worlds import SMALL

STATES: Final = 20_000
SEEDS: Final = 300


@dataclass(frozen=True, slots=True)
class Catch:
    """What a hunt found.

    Attributes:
        library: which library was hunted in.
        guarantee: the one that is broken; "" where none is, "crash" where the simulation itself
            could not go on.
        text: how it is broken.
        place: the world in which it was.
        after: how many worlds were explored and walked through before that one.
        story: how many lines tell of it, shrunk.
    """

    library: str
    guarantee: str = ""
    text: str = ""
    place: str = ""
    after: int = 0
    story: int = 0


def hunt(first: Sequence[str], *, states: int = STATES, seeds: int = SEEDS) -> Catch:
    """Hunts until something breaks or all is looked at.

    Args:
        first: the small worlds to begin with, by name.
        states: at most so many of each small world.
        seeds: so many large worlds.
    """
    library, looked = str(webhook_inbox.__file__), 0
    try:
        for _ in _looks(first, states, seeds):
            looked += 1
    except Failure as failure:
        violation = failure.violation
        place = failure.scenario.name
        if failure.seed is not None:
            place += f" {failure.seed}"
        return Catch(
            library, violation.guarantee, violation.text, place, looked, _story(failure)
        )
    except Exception as error:  # noqa: BLE001 - whatever a fault leads the simulation to
        text = "".join(format_exception_only(error)).strip()
        return Catch(library, "crash", text, after=looked)
    return Catch(library, after=looked)


def _looks(first: Sequence[str], states: int, seeds: int) -> Iterator[None]:
    known = {world.name: world for world in SMALL}
    for name in first:
        yield explore(known.pop(name), states=states)
    walked = Walked()
    for seed in range(seeds):
        yield walk(seed, walked)
    for world in known.values():
        yield explore(world, states=states)
