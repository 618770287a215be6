"""The directories of a local inbox."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from webhookctl.errors import CommandError


@dataclass(frozen=True, slots=True)
class Project:
    """The directories of one local inbox.

    Attributes:
        root: the repository, with `app.py` and `cdk.json`.
        functions: the directory with `handlers/` and `inbox.toml`.
        state: the runtime's own files, kept between starts.
    """

    root: Path
    functions: Path
    state: Path

    @classmethod
    def at(cls, root: Path) -> Self:
        """Returns the project of a repository; raises CommandError for any other directory."""
        if not (root / "app.py").is_file() or not (root / "functions").is_dir():
            raise CommandError(
                f"{root} has no app.py and functions/: change to the repository's directory"
            )
        return cls(root, root / "functions", root / ".local")

    @property
    def build(self) -> Path:
        """The cache of bundles."""
        return self.functions.parent / ".build"
