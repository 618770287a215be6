"""Where things are: the repository, the user's files, and the local runtime's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from webhookctl.local.errors import LocalError


@dataclass(frozen=True, slots=True)
class Project:
    """The directories of one local inbox.

    Attributes:
        root: the repository, with `app.py` and `cdk.json`.
        functions: the directory with `handlers/` and `inbox.toml`.
        state: for what the runtime keeps between starts.
        app: the CDK app to synthesize with; it gets `functions` as context.
    """

    root: Path
    functions: Path
    state: Path
    app: Path

    @classmethod
    def at(cls, root: Path) -> Self:
        """Returns the project of a repository; raises LocalError where there is none."""
        if not (root / "app.py").is_file() or not (root / "functions").is_dir():
            message = f"{root} has no app.py and functions/: change to the repository's directory"
            raise LocalError(message)
        return cls(root, root / "functions", root / ".local", root / "app.py")

    @property
    def build(self) -> Path:
        """Where bundles are kept."""
        return self.functions.parent / ".build"
