"""The command line of the simulation.

    python -m simulation explore [WORLD …]      every schedule of the small worlds
    python -m simulation walk [--seeds A:B]     random schedules of large worlds
    python -m simulation trace SEED             the trace of one random schedule
    python -m simulation nights [NIGHT …]       long outages of a destination, one schedule of each
    python -m simulation mutants [PART …]       each deliberate fault, or those whose name has PART
    python -m simulation worlds                 the names of the small worlds and of the nights

The exit status is 1 if a guarantee is broken; the schedule is then shrunk and its trace printed.
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
from simulation.engine.night import run_night
from simulation.invariants.observer import Violation
from simulation.mutation import run as mutation
from simulation.search.exhaustive import explore
from simulation.search.random_walks import Walked, walk
from simulation.search.shrinking import shrink
from simulation.worlds.builders import wider
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.nights import NIGHTS

PROCESSES: Final = 2
SEEDS_AT_ONCE: Final = 500
T = TypeVar("T")
R = TypeVar("R")


class Explored(NamedTuple):
    """The result of exploring one small world; `trace` is empty if no guarantee was broken."""

    name: str
    states: int
    schedules: int
    converged: int
    complete: bool
    seconds: float
    trace: tuple[str, ...] = ()


class Span(NamedTuple):
    """The result of walking a span of seeds; `trace` is empty if no guarantee was broken."""

    walked: int
    steps: int
    trace: tuple[str, ...] = ()


class Outage(NamedTuple):
    """The result of a night; `broken` is the broken guarantee, "" for none."""

    name: str
    calls: int = 0
    counted: int = 0
    messages: int = 0
    receives: int = 0
    seconds: float = 0.0
    broken: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulation")
    commands = parser.add_subparsers(dest="command", required=True)
    exploring = commands.add_parser("explore", help="every schedule of the small worlds")
    exploring.add_argument(
        "--states", type=int, default=100_000, help="most states to explore in each world"
    )
    exploring.add_argument(
        "--wider", type=int, default=0, metavar="N", help="allow N more faults in each world"
    )
    exploring.add_argument("worlds", nargs="*", metavar="WORLD")
    walking = commands.add_parser("walk", help="random schedules of large worlds")
    walking.add_argument("--seeds", type=_seeds, default=range(1000), metavar="A:B")
    tracing = commands.add_parser("trace", help="the trace of one random schedule")
    tracing.add_argument("seed", type=int)
    night_parser = commands.add_parser("nights", help="long outages of a destination")
    night_parser.add_argument("nights", nargs="*", metavar="NIGHT")
    mutating = commands.add_parser("mutants", help="inject each deliberate fault and detect it")
    mutating.add_argument(
        "names", nargs="*", metavar="PART", help="only faults whose name contains it"
    )
    commands.add_parser("worlds", help="the names of the small worlds and of the nights")
    given = parser.parse_args(arguments)
    match given.command:
        case "explore":
            return _explore(given.states, given.wider, given.worlds)
        case "walk":
            return _walk(given.seeds)
        case "trace":
            return _trace(given.seed)
        case "nights":
            return _nights(given.nights)
        case "mutants":
            return mutation.main(given.names)
    print(*(world.name for world in (*SMALL_WORLDS, *NIGHTS)), sep="\n")
    return 0


def _seeds(text: str) -> range:
    first, _, end = text.partition(":")
    return range(int(first), int(end))


def _are_known(names: Sequence[str], known: Iterable[str]) -> bool:
    unknown = set(names) - set(known)
    if unknown:
        listed = "python -m simulation worlds lists them"
        print(f"no such world: {', '.join(sorted(unknown))}; {listed}", file=sys.stderr)
    return not unknown


def _explore(states: int, more: int, names: Sequence[str]) -> int:
    if not _are_known(names, (world.name for world in SMALL_WORLDS)):
        return 2
    chosen = [n for n, world in enumerate(SMALL_WORLDS) if not names or world.name in names]
    print(f"{'world':36}{'states':>10}{'schedules':>11}{'converged':>11}{'seconds':>9}")
    found = []
    for one in _in_processes(partial(explored, states=states, more=more), chosen):
        found.append(one)
        cut = "" if one.complete else "  (cut)"
        print(
            f"{one.name:36}{one.states:10,}{one.schedules:11,}{one.converged:11,}"
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
            scenario.name, 0, 0, 0, complete=False, seconds=seconds, trace=_trace_of(failure)
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


def _nights(names: Sequence[str]) -> int:
    if not _are_known(names, (night.name for night in NIGHTS)):
        return 2
    chosen = [n for n, night in enumerate(NIGHTS) if not names or night.name in names]
    print(f"{'night':44}{'calls':>7}{'counted':>9}{'messages':>10}{'receives':>10}{'seconds':>9}")
    broken = 0
    for one in _in_processes(run_outage, chosen):
        broken += bool(one.broken)
        counts = f"{one.calls:7,}{one.counted:9,}{one.messages:10,}{one.receives:10,}"
        print(f"{one.name:44}{counts}{one.seconds:9.1f}", flush=True)
        if one.broken:
            print(f"BROKEN {one.name}: {one.broken}", flush=True)
    return 1 if broken else 0


def run_outage(number: int) -> Outage:
    """Runs one of the nights."""
    night, began = NIGHTS[number], time.perf_counter()
    try:
        report = run_night(night)
    except Violation as violation:
        return Outage(night.name, broken=str(violation), seconds=time.perf_counter() - began)
    finally:
        gc.collect()
    return Outage(
        night.name,
        sum(report.calls.values()),
        report.counted,
        report.messages,
        report.receives,
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
    print(f"{walked:,} random schedules walked, {steps:,} steps, {broken} broken")
    return 1 if broken else 0


def walked_span(seeds: range) -> Span:
    """Walks a span of seeds, up to the first failure."""
    walked = Walked()
    try:
        for seed in seeds:
            walk(seed, walked)
    except Failure as failure:
        return Span(walked.schedules, walked.steps, _trace_of(failure))
    finally:
        gc.collect()
    return Span(walked.schedules, walked.steps)


def _trace(seed: int) -> int:
    try:
        path = walk(seed, Walked())
    except Failure as failure:
        print(*_trace_of(failure), sep="\n")
        return 1
    print(*narrate(path.scenario, path.schedule), sep="\n")
    return 0


def _trace_of(failure: Failure) -> tuple[str, ...]:
    again = "" if failure.seed is None else f"  (python -m simulation trace {failure.seed})"
    shrunk = shrink(failure)
    return (f"BROKEN {failure}{again}", *narrate(shrunk.scenario, shrunk.schedule))


def _in_processes(work: Callable[[T], R], subjects: Iterable[T]) -> Iterator[R]:
    # The cyclic garbage collector would traverse all the retained state again and again.
    with ProcessPoolExecutor(PROCESSES, initializer=gc.disable) as pool:
        yield from pool.map(work, subjects)


if __name__ == "__main__":
    gc.disable()
    sys.exit(main())
