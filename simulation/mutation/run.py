"""`python -m simulation.mutation`: puts one fault after the other into the protocol.

    mutant ─► copy of the library, changed ─► a hunt in a process of its own ─► caught, or not

Exit status 1 where a fault survives or breaks something else than it should, or where the
library without any fault does not pass the very same hunt.
"""

import argparse
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
from simulation.search.hunting import Finding

AT_ONCE: Final = 2
ROOT: Final = LIBRARY.parents[1]
CONTROL: Final = "(nothing changed)"


class HuntFailed(Exception):
    """A hunt ended without an answer, or hunted somewhere else."""


class MutantResult(NamedTuple):
    """What became of a mutant, None for the library as it is."""

    mutant: Mutant | None
    catch: Finding

    @property
    def as_expected(self) -> bool:
        """Whether the right guarantee was seen broken, or none without a mutant."""
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
    """Runs hunts in processes of their own, and ends them when asked to."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ending = False
        self._lock = Lock()

    def run(self, mutant: Mutant | None) -> MutantResult:
        """Hunts in a copy of the library with this fault in it.

        Raises:
            StaleMutant: the fault does not fit the code any more.
            HuntFailed: the hunt gave no answer.
        """
        with _copied() as library:
            if mutant is not None:
                mutant.apply(library)
            return MutantResult(mutant, self._hunt(library, mutant.worlds if mutant else ()))

    def end(self) -> None:
        """Ends the hunts that are running; none begins any more."""
        with self._lock:
            self._ending = True
            for process in self._running:
                process.kill()

    def _hunt(self, library: Path, worlds: Sequence[str]) -> Finding:
        with self._lock:
            if self._ending:
                raise HuntFailed("there are to be no more hunts")
            process = _started(library, worlds)
            self._running.add(process)
        output, errors = process.communicate()
        with self._lock:
            self._running.discard(process)
        return _read(library, output, errors)


@contextmanager
def _copied() -> Iterator[Path]:
    with TemporaryDirectory(prefix="mutant-") as folder:
        library = Path(folder).resolve() / LIBRARY.name
        # Its compiled files come along: Python knows by the time and the size what has changed.
        shutil.copytree(LIBRARY, library)
        yield library


def _started(library: Path, worlds: Sequence[str]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(library.parent), str(ROOT)])
    return subprocess.Popen(  # noqa: S603 - our own module, no shell
        [sys.executable, "-m", "simulation.search.hunting", *worlds],
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
        raise HuntFailed(f"a hunt gave no answer:\n{errors}") from error
    if Path(catch.library) != library:
        raise HuntFailed(f"a hunt was in {catch.library} instead of {library}")
    return catch


def hunt_all(mutants: Iterable[Mutant | None]) -> Iterator[MutantResult]:
    """Hunts in one mutant after the other, two at a time, and yields them in order."""
    hunts = Hunts()
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield from pool.map(hunts.run, mutants)
    finally:
        hunts.end()
        pool.shutdown(cancel_futures=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line says and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulation.mutation")
    parser.add_argument(
        "names", nargs="*", metavar="PART", help="only mutants with it in their name"
    )
    parts = parser.parse_args(arguments).names
    chosen = [m for m in MUTANTS if not parts or any(part in m.name for part in parts)]
    # Ended as by Ctrl-C: no hunt goes on without us, no copy stays behind.
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
    # Without a fault first, which takes longest: nothing is found where nothing is wrong.
    for one in hunt_all([None, *chosen]):
        print(one, flush=True)
        wrong += not one.as_expected
    seconds = time.perf_counter() - began
    print(f"{len(chosen)} mutants, {wrong} not as expected, {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
