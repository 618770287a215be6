"""The output and the exit status of `python -m simulation`."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import simulation.__main__ as commands
from simulation.invariants.observer import Observer, Violation
from simulation.search.exhaustive import explore
from simulation.search.random_walks import Walked, walk
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.nights import NIGHTS

ROOT = Path(__file__).parents[2]
QUICK = "a broken module"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "simulation", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the work in this process, since other processes lack the test's changes."""

    def one_after_another(
        work: Callable[[Any], Any], subjects: Iterable[Any], *_: Any
    ) -> Iterator[Any]:
        return map(work, subjects)

    monkeypatch.setattr(commands, "_in_processes", one_after_another)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, in_this_process: None) -> None:
    """A guarantee that every attempt of a handler breaks."""

    def begins(self: Observer, run: Any, *_: Any, **__: Any) -> None:
        raise Violation("G2", f"{run}: as told")

    monkeypatch.setattr(Observer, "attempt_began", begins)


def test_worlds_are_named_line_by_line() -> None:
    done = run("worlds")
    assert (done.returncode, done.stderr) == (0, "")
    names = [world.name for world in (*SMALL_WORLDS, *NIGHTS)]
    assert done.stdout.splitlines() == names


def test_a_drawn_schedule_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["trace", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "the world has converged"
    steps = [line for line in lines[:-1] if not line.startswith(" ")]
    assert len(steps) == len(walk(3, Walked()).schedule)


def test_seeds_are_walked_by_other_processes_and_counted() -> None:
    done = run("walk", "--seeds", "0:3")
    assert (done.returncode, done.stderr) == (0, "")
    walked = Walked()
    for seed in range(3):
        walk(seed, walked)
    assert done.stdout == f"3 random schedules walked, {walked.steps:,} steps, 0 broken\n"


def test_a_world_is_explored_and_its_counts_are_printed() -> None:
    done = run("explore", QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    (scenario,) = [world for world in SMALL_WORLDS if world.name == QUICK]
    found = explore(scenario)
    title, line, total = done.stdout.splitlines()
    assert title.split() == ["world", "states", "schedules", "converged", "seconds"]
    assert line.startswith(QUICK)
    counts = [f"{n:,}" for n in (found.states, found.schedules, found.converged)]
    assert line.removeprefix(QUICK).split()[:3] == counts
    assert total == f"{found.schedules:,} schedules through {found.states:,} states"


@pytest.mark.usefixtures("in_this_process")
def test_a_search_that_was_cut_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["explore", "--states", "20", QUICK]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("  (cut)")


@pytest.mark.usefixtures("in_this_process")
def test_a_wider_world_has_more_states(capsys: pytest.CaptureFixture[str]) -> None:
    states = []
    for more in ("0", "1"):
        assert commands.main(["explore", "--wider", more, QUICK]) == 0
        line = capsys.readouterr().out.splitlines()[1]
        states.append(int(line.removeprefix(QUICK).split()[0].replace(",", "")))
    assert states[0] < states[1]


def test_an_unknown_world_is_an_error_of_usage() -> None:
    done = run("explore", "no such place", QUICK)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no such world: no such place; ")


def test_nothing_to_do_is_an_error_of_usage() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m simulation")


@pytest.mark.usefixtures("broken")
def test_a_broken_world_is_told_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["explore", "one handler always fails"]) == 1
    lines = capsys.readouterr().out.splitlines()
    told = [number for number, line in enumerate(lines) if line.startswith("BROKEN")]
    assert lines[told[0]].startswith("BROKEN one handler always fails: G2: ('acme', 'e1', ")
    assert lines[told[0] + 1].startswith("00:00:00.000  ")
    assert len(told) == 2  # before its trace, and at its end


@pytest.mark.usefixtures("broken")
def test_a_broken_walk_says_which_seed_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["walk", "--seeds", "0:3"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN random: G2:" in out
    assert "(python -m simulation trace " in out
    assert out.splitlines()[-1].endswith(" steps, 1 broken")


@pytest.mark.usefixtures("broken")
def test_a_broken_seed_is_told_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    seed = next(seed for seed in range(9) if commands.main(["trace", str(seed)]) == 1)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(f"(python -m simulation trace {seed})") for line in lines)
    assert lines[-1].startswith("BROKEN G2: ")
