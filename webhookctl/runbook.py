"""The runbook: its sections, from the page that the wheel contains."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_PARTS: Final = re.compile(r"^```(\w+)\n(.*?)^```$|\n{2,}", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#]*)(?:#([^)]+))?\)")
_STEP: Final = re.compile(r"(?:\d+\.|-) ")
# The form of every command of the page.
PROGRAM: Final = "webhookctl --stack NAME"
COMMANDS: Final = "sh"


@dataclass(frozen=True, slots=True)
class RunbookPart:
    """A paragraph, or a block: `sh` with a command on each line, or `text` with their output."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class RunbookSection:
    """A section: its heading, and its Markdown without it."""

    title: str
    markdown: str

    def parts(self) -> list[RunbookPart]:
        """Returns the blocks and the paragraphs, which are plain text of one line each."""
        found, last = list[RunbookPart](), 0
        for mark in [*_PARTS.finditer(self.markdown), None]:
            between = self.markdown[last : mark.start() if mark else None]
            found += [RunbookPart(_plain(text)) for text in _paragraphs(between)]
            if mark is None:
                return found
            if mark[1]:
                found.append(RunbookPart(mark[2].rstrip("\n"), mark[1]))
            last = mark.end()
        return found


@cache
def sections() -> Mapping[str, RunbookSection]:
    """Returns the sections by their anchor, such as `dead-letter-burst`, in the page's order."""
    page = _file().read_text(encoding="utf-8")
    heads = list(_HEADING.finditer(page))
    ends = [head.start() for head in heads[1:]] + [len(page)]
    found = [
        RunbookSection(head[2], page[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    ]
    return {_anchor(each.title): each for each in found if each.markdown}


def _file() -> Path:
    """Returns the page: in this package, or in a clone beside it."""
    within = _HERE / "runbook.md"
    return within if within.is_file() else _HERE.parent / "docs" / "runbook.md"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")


def _paragraphs(text: str) -> list[str]:
    """Returns the paragraphs and the steps of a list, without their line breaks."""
    found = list[str]()
    for line in text.strip().splitlines():
        if found and not _STEP.match(line):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line.strip())
    return found


def _plain(text: str) -> str:
    """Returns a paragraph without emphasis, and with each link's section or page behind it."""
    return re.sub(r"\*\*?([^*]+)\*\*?", r"\1", _LINK.sub(_target, text))


def _target(link: re.Match[str]) -> str:
    page, section = link[2], link[3]
    if not page:
        return f"{link[1]} (`runbook {section}`)"
    return f"{link[1]} (docs/{page}{f'#{section}' if section else ''})"
