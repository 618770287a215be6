"""Every mutant applies to the current code, and hunts detect them."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from simulation.mutation import run as mutation
from simulation.mutation.mutants import LIBRARY, MUTANTS, Edit, Mutant, StaleMutant
from simulation.mutation.run import HuntFailed, Hunts, MutantResult, hunt_all
from simulation.search.hunting import Finding, Hunt
from simulation.worlds.core import SMALL_WORLDS
from simulation.worlds.nights import NIGHTS

GUARANTEES = {
    *(f"G{n}" for n in range(1, 10)),
    *("flood", "hold", "order", "pause", "rate", "receives", "circuit", "erasure"),
    "personal",
}
CAUGHT = ("overwrites a stored event", "claims over a live lease")


def mutant(name: str) -> Mutant:
    (found,) = (one for one in MUTANTS if one.name == name)
    return found


def catch(guarantee: str = "") -> Finding:
    return Finding("library", guarantee, "how", "where", 12, 3)


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the copies of the library are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


# -- the list


def test_there_are_many_mutants_and_each_has_its_name() -> None:
    assert len(MUTANTS) >= 30
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_fits_the_code_and_is_python(one: Mutant) -> None:
    text = (LIBRARY / one.file).read_text(encoding="utf-8")
    mutated = one.mutated(text)
    assert mutated != text
    compile(mutated, one.file, "exec")


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_names_guarantees_and_worlds_that_there_are(one: Mutant) -> None:
    assert one.breaks
    assert one.breaks <= GUARANTEES
    assert one.worlds
    assert set(one.worlds) <= {world.name for world in (*SMALL_WORLDS, *NIGHTS)}


def test_mutants_use_defined_names_only(tmp_path: Path) -> None:
    """Otherwise a hunt detects the NameError and not the fault."""
    for one in MUTANTS:
        source = one.mutated((LIBRARY / one.file).read_text(encoding="utf-8"))
        (tmp_path / f"{one.name}.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", tmp_path]
    done = subprocess.run(
        [*command, "--output-format", "concise"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_two_mutants_are_the_same() -> None:
    assert len({(one.file, one.edits) for one in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("guarantee", sorted(GUARANTEES))
def test_every_guarantee_that_is_simulated_has_a_mutant(guarantee: str) -> None:
    assert any(guarantee in one.breaks for one in MUTANTS)


@pytest.mark.parametrize("text", ["nothing of it", "claim(); claim()"])
def test_a_stale_mutant_is_named_with_what_it_looked_for(text: str) -> None:
    stale = Mutant("forgets to claim", "processor.py", (Edit("claim()", ""),), frozenset(), ())
    with pytest.raises(StaleMutant) as caught:
        stale.mutated(text)
    for part in ("forgets to claim", "processor.py", "claim()", f"{text.count('claim()')} times"):
        assert part in str(caught.value)


def test_a_file_that_is_changed_is_compiled_again(tmp_path: Path) -> None:
    one = Mutant("counts up", "count.py", (Edit("- 1", "+ 1"),), frozenset(), ())
    (tmp_path / "count.py").write_text("n = n - 1")
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    (cache / "count.cpython-311.pyc").touch()
    (cache / "counter.cpython-311.pyc").touch()
    one.apply(tmp_path)
    assert (tmp_path / "count.py").read_text() == "n = n + 1"
    assert [path.name for path in cache.iterdir()] == ["counter.cpython-311.pyc"]


# -- hunting


@pytest.mark.parametrize("name", CAUGHT)
def test_a_mutant_is_caught_in_a_process_of_its_own(name: str, copies: Path) -> None:
    before = {path: path.read_bytes() for path in LIBRARY.rglob("*.py")}
    (found,) = hunt_all([mutant(name)])
    assert found.as_expected
    assert found.catch.world in mutant(name).worlds
    assert found.catch.trace > 2
    assert list(copies.iterdir()) == []
    assert {path: path.read_bytes() for path in LIBRARY.rglob("*.py")} == before


def test_the_same_hunt_finds_nothing_where_nothing_was_changed() -> None:
    hunt = Hunt(states=20, seeds=3)
    found = hunt.run(["two handlers"])
    assert (found.guarantee, found.world) == ("", SMALL_WORLDS[-1].name)
    assert found.schedules > 20 * len(SMALL_WORLDS) / 10
    assert Path(found.examined) == LIBRARY


def test_a_hunt_counts_the_schedules_it_needs() -> None:
    one, other = (Hunt(states=states, seeds=0).run([]).schedules for states in (1, 5))
    assert 0 < one < other


def test_a_library_that_cannot_be_loaded_is_told_apart_from_a_caught_fault(copies: Path) -> None:
    edit = Edit("\nclass Ingest:", "\nimport nowhere\nclass Ingest:")
    spoiled = replace(mutant(CAUGHT[0]), file="ingest/ingest.py", edits=(edit,))
    with pytest.raises(HuntFailed, match="nowhere"):
        list(hunt_all([spoiled]))
    assert list(copies.iterdir()) == []


def test_a_hunt_that_is_ended_leaves_nothing_behind(copies: Path) -> None:
    hunts, died = Hunts(), []

    def run() -> None:
        with pytest.raises(HuntFailed):
            hunts.run(None)
        died.append(True)

    thread = Thread(target=run)
    thread.start()
    while not hunts._running and thread.is_alive():
        thread.join(0.01)
    hunts.end()
    thread.join(60)
    assert died == [True]
    assert list(copies.iterdir()) == []
    with pytest.raises(HuntFailed):
        hunts.run(None)


# -- the report


@pytest.mark.parametrize(
    ("expected", "found", "right"),
    [("G1", "G1", True), ("G1", "", False), ("G1", "G2", False), ("G1", "crash", False)],
)
def test_a_mutant_has_to_break_what_it_should(expected: str, found: str, right: bool) -> None:
    one = replace(MUTANTS[0], breaks=frozenset({expected}))
    assert MutantResult(one, catch(found)).as_expected is right


@pytest.mark.parametrize(("found", "right"), [("", True), ("G1", False)])
def test_nothing_may_be_found_without_a_fault(found: str, right: bool) -> None:
    assert MutantResult(None, catch(found)).as_expected is right


@pytest.mark.parametrize(
    ("guarantee", "status", "line"),
    [("G1", 0, "G1"), ("", 1, "SURVIVES"), ("G9", 1, "UNEXPECTED: how")],
)
def test_the_exit_status_tells_of_a_survivor(
    guarantee: str,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def found(mutants: Iterable[Mutant | None]) -> Iterator[MutantResult]:
        for one in mutants:
            yield MutantResult(one, catch(guarantee if one else ""))

    name = "acknowledges before the event is stored"
    monkeypatch.setattr(mutation, "hunt_all", found)
    assert mutation.main([name]) == status
    told = capsys.readouterr().out
    assert name in told
    assert line in told
    assert "(nothing changed)" in told


def test_a_stale_mutant_ends_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = replace(MUTANTS[0], edits=(Edit("no such line", ""),))
    monkeypatch.setattr(mutation, "MUTANTS", (stale,))
    monkeypatch.setattr(mutation, "hunt_all", lambda mutants: map(Hunts().run, list(mutants)[1:]))
    assert mutation.main([]) == 2
    assert stale.name in capsys.readouterr().err
