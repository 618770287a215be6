"""The tests, checks and figures that docs/proof.md names exist."""

import importlib
import re
from pathlib import Path

import pytest

from simulation.mutation.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proof.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[\w/.]+(?:::\w+)?)`", PAGE)))
CHECKS = sorted(set(re.findall(r"`((?:engine|invariants)\.\w+\.\w+)`", PAGE)))


def test_each_guarantee_names_what_tries_to_break_it() -> None:
    for number in range(1, 11):
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| G{number} |"))
        assert "`tests/" in row
    assert len(CHECKS) >= 8


@pytest.mark.parametrize("name", TESTS)
def test_a_named_test_is_there(name: str) -> None:
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    if function:
        assert f"def {function}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("name", CHECKS)
def test_a_named_check_is_there(name: str) -> None:
    module, _, function = name.rpartition(".")
    found = importlib.import_module(f"simulation.{module}")
    assert hasattr(found, function) or hasattr(found.__dict__.get("Observer"), function)


def test_it_counts_no_more_mutants_than_there_are() -> None:
    (counted,) = re.findall(r"lists (\d+) deliberate faults", PAGE)
    assert 70 <= int(counted) <= len(MUTANTS)


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z]{4,}$", PAGE, re.MULTILINE)
