"""Deliberate faults of the protocol, as data: `mutants.toml`.

Each is a small change of one file of the library that breaks a guarantee, and that the simulation
therefore has to find. What it does not find is not proven.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LIST: Final = Path(__file__).with_suffix(".toml")
LIBRARY: Final = LIST.parents[2] / "functions" / "webhook_inbox"


class StaleMutant(Exception):
    """The code that a mutant changes is not there any more, or more than once.

    Remedy: read what became of it, and let the mutant break the same rule in today's code.
    """

    def __init__(self, mutant: "Mutant", old: str, found: int) -> None:
        super().__init__(
            f"mutant {mutant.name!r}: {mutant.file} holds this {found} times, not once:\n{old}"
        )


@dataclass(frozen=True, slots=True)
class Edit:
    """What is there exactly once, and what takes its place."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        name: what the inbox then does wrong.
        file: the file that is changed, under the library.
        edits: the changes.
        breaks: the guarantees of which the simulation has to see one broken.
        worlds: the small worlds that are explored first.
    """

    name: str
    file: str
    edits: tuple[Edit, ...]
    breaks: frozenset[str]
    worlds: tuple[str, ...]

    def mutated(self, text: str) -> str:
        """Returns its file's text with the fault in it.

        Raises:
            StaleMutant: an edit does not fit the text.
        """
        for edit in self.edits:
            found = text.count(edit.old)
            if found != 1:
                raise StaleMutant(self, edit.old, found)
            text = text.replace(edit.old, edit.new)
        return text

    def apply(self, library: Path) -> None:
        """Puts the fault into a copy of the library.

        Raises:
            StaleMutant: an edit does not fit.
        """
        path = library / self.file
        path.write_text(self.mutated(path.read_text(encoding="utf-8")), encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def _read(entry: Mapping[str, Any]) -> Mutant:
    return Mutant(
        name=entry["name"],
        file=entry["file"],
        edits=tuple(Edit(old, new) for old, new in entry["edits"]),
        breaks=frozenset(entry["breaks"]),
        worlds=tuple(entry["worlds"]),
    )


MUTANTS: Final = tuple(map(_read, tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]))
