"""Deliberate faults of the protocol, as data: `mutants.toml`.

Each mutant changes one file of the library so that it breaks a guarantee. The simulation must
detect it; an undetected mutant shows a rule that the simulation does not check.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LIST: Final = Path(__file__).with_suffix(".toml")
LIBRARY: Final = LIST.parents[2] / "functions" / "webhook_inbox"


class StaleMutant(Exception):
    """The text that a mutant replaces does not occur exactly once.

    Remedy: find the code that now implements the rule and edit the mutant to break the rule there.
    """

    def __init__(self, mutant: "Mutant", old: str, found: int) -> None:
        super().__init__(
            f"mutant {mutant.name!r}: {mutant.file} contains this {found} times, not once:\n{old}"
        )


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that occurs exactly once, and its replacement."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        name: the faulty behavior.
        file: the changed file, relative to the library.
        edits: the changes.
        breaks: the guarantees; the simulation must report at least one of them as broken.
        worlds: the small worlds to explore first.
    """

    name: str
    file: str
    edits: tuple[Edit, ...]
    breaks: frozenset[str]
    worlds: tuple[str, ...]

    def mutated(self, text: str) -> str:
        """Returns the text of the file with the fault applied.

        Raises:
            StaleMutant: an edit does not match the text.
        """
        for edit in self.edits:
            found = text.count(edit.old)
            if found != 1:
                raise StaleMutant(self, edit.old, found)
            text = text.replace(edit.old, edit.new)
        return text

    def apply(self, library: Path) -> None:
        """Applies the fault to a copy of the library.

        Raises:
            StaleMutant: an edit does not match.
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
