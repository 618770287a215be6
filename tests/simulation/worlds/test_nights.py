"""Nights: no run dies of an outage, and what the checks of a night detect."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import simulation.__main__ as commands
from simulation.engine.night import run_night
from simulation.invariants.observer import Violation
from simulation.worlds.nights import NIGHTS, Night
from webhook_inbox.destinations.gate import Gate

# `make simulate` runs all of them in full; the largest take minutes.
LARGE = 1000
SHORT = Night("a short one", runs=5, hours=0.25)


def test_there_are_nights_of_1_20_and_1000_runs_in_both_kinds_of_lane() -> None:
    nights = {(night.runs, night.serial) for night in NIGHTS if night.hours == 12}
    assert nights == {(runs, serial) for runs in (1, 20, LARGE) for serial in (False, True)}


@pytest.mark.parametrize(
    "night",
    [night for night in NIGHTS if night.runs == 1 or night.failing],
    ids=lambda night: night.name,
)
def test_no_run_dies_in_a_night(night: Night) -> None:
    report = run_night(night)
    assert report.calls.total() > night.hours * 25


@pytest.mark.parametrize(
    "night",
    [night for night in NIGHTS if 1 < night.runs < LARGE and not night.failing],
    ids=lambda night: night.name,
)
def test_no_run_of_many_dies_in_a_quarter_of_an_hour(night: Night) -> None:
    report = run_night(replace(night, hours=0.25))
    assert report.calls.total() > 5


def count_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Gate.report

    def counting(self: Gate, *args: Any) -> None:
        report(self, *args)

    monkeypatch.setattr(Gate, "report", counting)
    monkeypatch.setattr(Gate, "waits", lambda _: {})


def deny_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook_inbox.handlers.effects.started._denies", lambda *_, **__: True)


@pytest.mark.parametrize(("fault", "guarantee"), [(count_again, "circuit"), (deny_doubts, "G4")])
def test_a_night_detects_a_fault(
    fault: Callable[[pytest.MonkeyPatch], None], guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(Violation) as caught:
        run_night(SHORT)
    assert caught.value.guarantee == guarantee


def test_the_command_prints_the_figures_of_a_night(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "NIGHTS", (SHORT,))
    monkeypatch.setattr(commands, "_in_processes", map)
    assert commands.main(["nights"]) == 0
    title, line = capsys.readouterr().out.splitlines()
    assert title.split() == ["night", "calls", "counted", "messages", "receives", "seconds"]
    assert line.startswith("a short one ")


def test_the_command_fails_if_a_guarantee_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count_again(monkeypatch)
    monkeypatch.setattr(commands, "NIGHTS", (SHORT,))
    monkeypatch.setattr(commands, "_in_processes", map)
    assert commands.main(["nights", SHORT.name]) == 1
    assert "BROKEN a short one: circuit: " in capsys.readouterr().out


def test_an_unknown_night_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["nights", "a long one"]) == 2
    assert "no such world: a long one" in capsys.readouterr().err
