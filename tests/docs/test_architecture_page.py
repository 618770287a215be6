"""The table "Where to look" of the architecture page names at most two files for a question."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("\n## Where to look\n")[2].partition("\n## ")[0]
ROWS = [line for line in TABLE.splitlines() if "`" in line]
# A file, and the name in it to look for.
PLACE = re.compile(r"`([\w/]+\.\w+)` \(`(\w+)`")


def source(name: str) -> Path:
    """Returns a file that the page names, below the library if the name has no root."""
    below = ROOT / "functions" / "webhook_inbox" / name
    return below if below.exists() else ROOT / name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_question_is_answered_by_two_files_at_most(row: str) -> None:
    places = PLACE.findall(row)

    assert 1 <= len(places) <= 2
    for file, name in places:
        defined = rf"^ *(?:def|class) {name}\b|^{name}\b.*="
        assert re.search(defined, source(file).read_text(encoding="utf-8"), re.MULTILINE)
