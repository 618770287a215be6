"""The runbook's sections and their commands, for the tests that check and follow them."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

from tests.docs.blocks import blocks
from tests.docs.pages import RUNBOOK, anchors

_HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
PROGRAM: Final = "webhookctl --stack NAME "


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: its anchor, its text, and the commands of its blocks, in order."""

    anchor: str
    text: str
    commands: tuple[str, ...]


def sections() -> dict[str, Section]:
    """Returns the sections by anchor; a section ends at the next heading of any level."""
    page = RUNBOOK.read_text(encoding="utf-8")
    starts = [
        (page.count("\n", 0, found.start()) + 1, found[0]) for found in _HEADING.finditer(page)
    ]
    ends = [line for line, _ in starts[1:]] + [page.count("\n") + 2]
    lines, found = page.splitlines(), {}
    for (start, heading), end in zip(starts, ends, strict=True):
        [anchor] = anchors(heading)
        assert anchor not in found, anchor
        commands = tuple(
            line
            for block in blocks(RUNBOOK)
            if block.language == "sh" and start < block.line < end
            for line in block.text.splitlines()
        )
        found[anchor] = Section(anchor, "\n".join(lines[start : end - 1]), commands)
    return found


def words_of(command: str, **given: str) -> list[str]:
    """Returns the words of a command behind its target, without a redirection of its input.

    A word in capitals that is in `given` is replaced by its value.
    """
    assert command.startswith(PROGRAM), command
    words = shlex.split(command.removeprefix(PROGRAM).partition(" < ")[0])
    return [given.get(word, word) for word in words]
