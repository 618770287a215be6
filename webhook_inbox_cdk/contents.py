"""The contents of each function's bundle, and where they are installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import webhook_inbox

CONSTRUCT: Final = Path(__file__).resolve().parent


def _installed(name: str) -> Path:
    """Returns a directory of the wheel: in this package, or in a clone beside it."""
    within = CONSTRUCT / name
    return within if within.is_dir() else CONSTRUCT.parent / name


# The entry points of the four functions, and the locks of what they import.
ENTRY_POINTS: Final = _installed("functions")
LOCKS: Final = _installed("requirements")
LIBRARY: Final = Path(webhook_inbox.__file__).resolve().parent
HANDLERS: Final = "handlers"
# Your handlers' requirements, beside `handlers/`; optional.
REQUIREMENTS: Final = "requirements.txt"


@dataclass(frozen=True, slots=True)
class Contents:
    """The directories and the locks of one function."""

    directories: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def locks(self) -> list[Path]:
        """The files with the requirements of our own code."""
        return [LOCKS / f"{group}.txt" for group in self.groups]

    def requirements(self, functions: Path) -> Path | None:
        """Returns the file with your handlers' requirements, if the function ships handlers."""
        own = functions / REQUIREMENTS
        return own if HANDLERS in self.directories and own.is_file() else None

    def files(self, functions: Path) -> list[Path]:
        """Returns the files with all requirements of the bundle."""
        own = self.requirements(functions)
        return [*self.locks, *([own] if own else [])]


CONTENTS: Final[Mapping[str, Contents]] = {
    "ingest": Contents(("ingest", "webhook_inbox"), ("verification",)),
    "processor": Contents(
        # It splits batches; some providers that batch import the verification libraries.
        ("processor", "webhook_inbox", HANDLERS),
        ("processor", "verification"),
    ),
    "replay": Contents(("replay", "webhook_inbox"), ("replay",)),
    "reconciler": Contents(("reconciler", "webhook_inbox"), ("reconciler",)),
}


def processor_requirements(functions: Path) -> list[Path]:
    """Returns the files with the requirements of the bundle that ships the handlers."""
    return CONTENTS["processor"].files(functions)


def directory_of(name: str, functions: Path) -> Path | None:
    """Returns a directory of a bundle: the project's, or the installed one.

    An app may have an entry point of its own; the handlers are always its own.
    """
    installed = [] if name == HANDLERS else [ENTRY_POINTS / name, LIBRARY.parent / name]
    return next((place for place in (functions / name, *installed) if place.is_dir()), None)
