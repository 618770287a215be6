"""Applies each mutant to a copy of the library and checks that a hunt detects it.

    mutant ─► changed copy of the library ─► hunt in a separate process ─► detected, or not

The exit status is 1 if a mutant survives or breaks a guarantee that it does not list, or if a hunt
finds a broken guarantee in the unchanged library.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final, NamedTuple

from simulation.mutation.mutants import LIBRARY, MUTANTS, Mutant, StaleMutant
from simulation.search.hunting import STATES, Finding

AT_ONCE: Final = 2
ROOT: Final = LIBRARY.parents[1]
CONTROL: Final = "(nothing changed)"
# `explore` and `walk` search the unchanged library further than any hunt.
CONTROL_STATES: Final = 1_500


class HuntFailed(Exception):
    """A hunt ended without a result, or examined another copy of the library."""


class MutantResult(NamedTuple):
    """The result of one hunt; `mutant` is None for the unchanged library."""

    mutant: Mutant | None
    catch: Finding

    @property
    def as_expected(self) -> bool:
        """True if an expected guarantee was broken, or none in the unchanged library."""
        expected = self.mutant.breaks if self.mutant else {""}
        return self.catch.guarantee in expected

    def __str__(self) -> str:
        name = self.mutant.name if self.mutant else CONTROL
        found = self.catch
        if not found.guarantee:
            return (
                f"{name:68}{'none' if self.mutant is None else 'SURVIVES':10}{found.schedules:9,}"
            )
        place = f"{found.world:36}{found.schedules:9,}{found.trace:7}"
        mark = "" if self.as_expected else f"  UNEXPECTED: {found.text}"
        return f"{name:68}{found.guarantee:10}{place}{mark}"


class Hunts:
    """Runs hunts in separate processes and kills them on request."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ending = False
        self._lock = Lock()

    def run(self, mutant: Mutant | None) -> MutantResult:
        """Runs a hunt in a copy of the library that contains this fault.

        Raises:
            StaleMutant: the mutant no longer matches the code.
            HuntFailed: the hunt returned no result.
        """
        with _copied() as library:
            if mutant is not None:
                mutant.apply(library)
            return MutantResult(mutant, self._hunt(library, mutant))

    def end(self) -> None:
        """Kills the running hunts and prevents further ones."""
        with self._lock:
            self._ending = True
            for process in self._running:
                process.kill()

    def _hunt(self, library: Path, mutant: Mutant | None) -> Finding:
        with self._lock:
            if self._ending:
                raise HuntFailed("no further hunt may start")
            process = _started(library, mutant)
            self._running.add(process)
        output, errors = process.communicate()
        with self._lock:
            self._running.discard(process)
        return _read(library, output, errors)


@contextmanager
def _copied() -> Iterator[Path]:
    with TemporaryDirectory(prefix="mutant-") as folder:
        library = Path(folder).resolve() / LIBRARY.name
        # Compiled files are copied too; Python compares time and size to find those out of date.
        shutil.copytree(LIBRARY, library)
        yield library


def _started(library: Path, mutant: Mutant | None) -> subprocess.Popen[str]:
    bounds = [str(CONTROL_STATES)] if mutant is None else [str(STATES), *mutant.worlds]
    path = os.pathsep.join([str(library.parent), str(ROOT)])
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-m", "simulation.search.hunting", *bounds],
        cwd=library.parent,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read(library: Path, output: str, errors: str) -> Finding:
    try:
        catch = Finding(**json.loads(output))
    except (ValueError, TypeError) as error:
        raise HuntFailed(f"a hunt returned no result:\n{errors}") from error
    if Path(catch.examined) != library:
        raise HuntFailed(f"a hunt examined {catch.examined} instead of {library}")
    return catch


def hunt_all(mutants: Iterable[Mutant | None]) -> Iterator[MutantResult]:
    """Hunts in the mutants, two at a time, and yields the results in order."""
    hunts = Hunts()
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(hunts.run, mutants)
    finally:
        hunts.end()
        pool.shutdown(cancel_futures=True)


def main(parts: Sequence[str]) -> int:
    """Runs the mutants whose name contains one of the parts, or all; returns the exit status."""
    chosen = [m for m in MUTANTS if not parts or any(part in m.name for part in parts)]
    # SIGTERM is handled like Ctrl-C, so that no hunt and no copy of the library remains.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _report(chosen)
    except (StaleMutant, HuntFailed) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(chosen: Sequence[Mutant]) -> int:
    began = time.perf_counter()
    print(f"{'mutant':68}{'breaks':10}{'world':36}{'schedules':>9}{'trace':>7}")
    wrong = 0
    # The unchanged library comes first because its hunt takes longest.
    for one in hunt_all([None, *chosen]):
        print(one, flush=True)
        wrong += not one.as_expected
    seconds = time.perf_counter() - began
    print(f"{len(chosen)} mutants, {wrong} not as expected, {seconds:.0f} s")
    return 1 if wrong else 0
