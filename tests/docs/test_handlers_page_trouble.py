"""The last table of docs/handlers.md: each row happens as it says."""

import re
from typing import Final

import pytest

# Imported for the rows that they show.
from tests.docs import trouble_in_declarations, trouble_in_runs
from tests.docs.handlers_page import sections
from tests.docs.trouble import TROUBLES

SHOWN: Final = (trouble_in_declarations, trouble_in_runs)
TITLE: Final = "invalid input and failures"


@pytest.mark.parametrize("row", [cells[0] for cells in sections()[TITLE].rows("what")])
def test_it_ends_as_the_page_says(row: str) -> None:
    [outcome] = [cells[1] for cells in sections()[TITLE].rows("what") if cells[0] == row]

    told = TROUBLES[row]()

    for quoted in re.findall(r"`([^`]+)`", outcome):
        # One word is a name of ours; more are quoted from what is told.
        assert " " not in quoted or quoted.strip("… ") in told


def test_no_row_is_shown_that_the_page_does_not_have() -> None:
    assert TROUBLES.keys() == {cells[0] for cells in sections()[TITLE].rows("what")}
