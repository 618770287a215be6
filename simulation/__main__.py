"""`python -m simulation`: explores, walks, tells.

    python -m simulation explore [WORLD …]      every schedule of the small worlds
    python -m simulation walk [--seeds A:B]     drawn schedules of large worlds
    python -m simulation tell SEED              one drawn schedule as a trace
    python -m simulation mutants                fault after fault put into the protocol
    python -m simulation worlds                 the small worlds' names

Exit status 1 where a guarantee is broken; the schedule is then shrunk and told.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final, NamedTuple, TypeVar

from simulation.engine.failure import Failure
from simulation.engine.narrate import narrate
from simulation.mutation import run as mutation
from simulation.search.exhaustive import explore
from simulation.search.random_walks import Walked, walk
from simulation.search.shrinking import shrink
from simulation.worlds.builders import wider
from simulation.worlds.core import SMALL_WORLDS

PROCESSES: Final = 2
SEEDS_AT_ONCE: Final = 500
T = TypeVar("T")
R = TypeVar("R")


class Explored(NamedTuple):
    """What became of one small world; `trace` is empty where nothing broke."""

    name: str
    states: int
    schedules: int
    converged: int
    complete: bool
    seconds: float
    trace: tuple[str, ...] = ()


class Span(NamedTuple):
    """What became of a span of seeds; `trace` is empty where nothing broke."""

    walked: int
    steps: int
    trace: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line says and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulation")
    commands = parser.add_subparsers(dest="command", required=True)
    exploring = commands.add_parser("explore", help="every schedule of the small worlds")
    exploring.add_argument("--states", type=int, default=10_000_000, help="at most, of each world")
    exploring.add_argument(
        "--wider", type=int, default=0, metavar="N", help="N more faults in each"
    )
    exploring.add_argument("worlds", nargs="*", metavar="WORLD")
    walking = commands.add_parser("walk", help="drawn schedules of large worlds")
    walking.add_argument("--seeds", type=_seeds, default=range(1000), metavar="A:B")
    telling = commands.add_parser("tell", help="one drawn schedule as a trace")
    telling.add_argument("seed", type=int)
    commands.add_parser("mutants", help="fault after fault put into the protocol")
    commands.add_parser("worlds", help="the small worlds' names")
    given = parser.parse_args(arguments)
    match given.command:
        case "explore":
            return _explore(given.states, given.wider, given.worlds)
        case "walk":
            return _walk(given.seeds)
        case "tell":
            return _tell(given.seed)
        case "mutants":
            return mutation.main([])
    print(*(world.name for world in SMALL_WORLDS), sep="\n")
    return 0


def _seeds(text: str) -> range:
    first, _, end = text.partition(":")
    return range(int(first), int(end))


def _explore(states: int, more: int, names: Sequence[str]) -> int:
    unknown = set(names) - {world.name for world in SMALL_WORLDS}
    if unknown:
        listed = "python -m simulation worlds lists them"
        print(f"no such world: {', '.join(sorted(unknown))}; {listed}", file=sys.stderr)
        return 2
    chosen = [n for n, world in enumerate(SMALL_WORLDS) if not names or world.name in names]
    print(f"{'world':36}{'states':>10}{'schedules':>11}{'converged':>9}{'seconds':>9}")
    found = []
    for one in _in_processes(partial(explored, states=states, more=more), chosen):
        found.append(one)
        cut = "" if one.complete else "  (cut)"
        print(
            f"{one.name:36}{one.states:10,}{one.schedules:11,}{one.converged:9,}"
            f"{one.seconds:9.1f}{cut}",
            flush=True,
        )
        if one.trace:
            print("", *one.trace, sep="\n")
    total = sum(one.schedules for one in found)
    print(f"{total:,} schedules through {sum(one.states for one in found):,} states")
    return 1 if any(one.trace for one in found) else 0


def explored(number: int, *, states: int, more: int = 0) -> Explored:
    """Explores one of the small worlds."""
    scenario, began = wider(SMALL_WORLDS[number], more), time.perf_counter()
    try:
        found = explore(scenario, states=states)
    except Failure as failure:
        seconds = time.perf_counter() - began
        return Explored(
            scenario.name, 0, 0, 0, complete=False, seconds=seconds, trace=_told(failure)
        )
    finally:
        gc.collect()
    return Explored(
        scenario.name,
        found.states,
        found.schedules,
        found.converged,
        found.complete,
        time.perf_counter() - began,
    )


def _walk(seeds: range) -> int:
    spans = [seeds[n : n + SEEDS_AT_ONCE] for n in range(0, len(seeds), SEEDS_AT_ONCE)]
    walked = steps = broken = 0
    for span in _in_processes(walked_span, spans):
        walked, steps = walked + span.walked, steps + span.steps
        if span.trace:
            broken += 1
            print(*span.trace, "", sep="\n", flush=True)
    print(f"{walked:,} drawn schedules walked, {steps:,} steps, {broken} broken")
    return 1 if broken else 0


def walked_span(seeds: range) -> Span:
    """Walks a span of seeds, up to the first failure."""
    walked = Walked()
    try:
        for seed in seeds:
            walk(seed, walked)
    except Failure as failure:
        return Span(walked.schedules, walked.steps, _told(failure))
    finally:
        gc.collect()
    return Span(walked.schedules, walked.steps)


def _tell(seed: int) -> int:
    try:
        path = walk(seed, Walked())
    except Failure as failure:
        print(*_told(failure), sep="\n")
        return 1
    print(*narrate(path.scenario, path.schedule), sep="\n")
    return 0


def _told(failure: Failure) -> tuple[str, ...]:
    again = "" if failure.seed is None else f"  (python -m simulation tell {failure.seed})"
    shrunk = shrink(failure)
    return (f"BROKEN {failure}{again}", *narrate(shrunk.scenario, shrunk.schedule))


def _in_processes(work: Callable[[T], R], subjects: Iterable[T]) -> Iterator[R]:
    # Python's cyclic garbage collector would walk all that is remembered, over and over.
    with ProcessPoolExecutor(PROCESSES, initializer=gc.disable) as pool:
        yield from pool.map(work, subjects)


if __name__ == "__main__":
    gc.disable()
    sys.exit(main())
