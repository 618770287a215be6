"""CI runs third-party actions at the commits that were reviewed: a tag can be moved."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.y*ml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_an_action_is_pinned_by_its_commit_and_names_its_version(file: Path) -> None:
    used = re.findall(r"uses: *(.+)", file.read_text())
    assert used
    assert [action for action in used if not PINNED.fullmatch(action.strip())] == []
