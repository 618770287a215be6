"""docs/handlers.md as data and as code: its sections, tables, and a module of each section."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tests.docs.blocks import Block, blocks
from webhook_inbox import Router
from webhook_inbox.testing import Fake, HandlerRun, Inbox

FILE: Final = Path(__file__).resolve().parents[2] / "docs" / "handlers.md"
TEXT: Final = FILE.read_text(encoding="utf-8")
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """The content of a heading.

    Attributes:
        text: the whole content.
        python: its code blocks, which form one module.
        toml: its inbox.toml blocks, which form one file.
    """

    title: str
    text: str
    python: tuple[Block, ...]
    toml: tuple[Block, ...]

    @property
    def inbox_toml(self) -> str:
        """The section's part of an inbox.toml."""
        return "\n".join(block.text for block in self.toml)

    def rows(self, heading: str) -> list[list[str]]:
        """Returns the cells of all tables whose first column has this heading, row by row."""
        found = re.findall(
            rf"^\| ?{re.escape(heading)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", self.text, re.M
        )
        assert found, f"no table of {heading!r} in {self.title!r}"
        lines = "".join(found).splitlines()
        return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]

    def names(self, heading: str) -> list[str]:
        """Returns the code words in the first column of such tables."""
        return [name for cells in self.rows(heading) for name in re.findall(r"`([^`]+)`", cells[0])]


@cache
def sections() -> dict[str, Section]:
    """Returns the page's sections by title."""
    places = [(found.start(), found[1]) for found in _HEADING.finditer(TEXT)]
    ends = [*(start for start, _ in places[1:]), len(TEXT)]
    every, found = blocks(FILE), {}
    for (start, title), end in zip(places, ends, strict=True):
        first, last = (TEXT.count("\n", 0, place) + 1 for place in (start, end))
        own = [block for block in every if first <= block.line <= last]
        python, toml = (
            tuple(block for block in own if block.language == language)
            for language in ("python", "toml")
        )
        found[title] = Section(title, TEXT[start:end], python, toml)
    return found


def built(section: Section) -> ModuleType:
    """Returns the module that a section's blocks form."""
    module = ModuleType("page_" + re.sub(r"\W", "_", section.title))
    for block in section.python:
        # So that a traceback names the page's own line. The module has what its test imports.
        padded = "\n" * block.line + re.sub(r"^from handlers\..*$", "", block.text, flags=re.M)
        exec(compile(padded, str(FILE), "exec"), vars(module))
    return module


@dataclass(slots=True)
class Chapter:
    """A section under test: its module, and which of its handlers were run."""

    section: Section
    module: ModuleType
    ran: set[str] = field(default_factory=set)

    @property
    def routers(self) -> list[Router]:
        """The routers that it defines."""
        return [value for value in vars(self.module).values() if isinstance(value, Router)]

    @property
    def declared(self) -> set[str]:
        """The names of its handlers."""
        return {spec.name for router in self.routers for spec in router.handlers}

    def fake(self, name: str) -> Fake:
        """Returns a fake with the settings of the section's table of this destination."""
        settings: dict[str, Any] = tomllib.loads(self.section.inbox_toml)["destinations"][name]
        return Fake(**settings)

    def inbox(self, *, secrets: dict[str, str] | None = None, **fakes: Fake) -> Inbox:
        """Returns an inbox of its handlers."""
        return Inbox(*self.routers, destinations=fakes, secrets=secrets)

    def run(self, inbox: Inbox, handler: str, event: Any = None, **options: Any) -> HandlerRun:
        """Runs a handler and records that it ran."""
        self.ran.add(handler)
        return inbox.run(handler, event or {}, **options)


Open = Callable[[str], Chapter]
