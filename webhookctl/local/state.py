"""The state file, by which `webhookctl --local` finds a running session."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = "state.json"


@dataclass(frozen=True, slots=True)
class State:
    """A running session: its URLs, the stack's outputs, the manifest, and its process groups.

    `front` is the URL of the local API, `endpoint` that of ministack, which takes only
    `credentials`.
    """

    pid: int
    endpoint: str
    credentials: Mapping[str, str]
    front: str
    sink: str
    outputs: Mapping[str, str]
    manifest: Mapping[str, Any]
    children: Mapping[str, int]

    @property
    def alive(self) -> bool:
        """True while the session runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def write(directory: Path, state: State) -> None:
    """Writes the state file atomically, for its user only."""
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f"{FILE}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(directory / FILE)


def read(directory: Path) -> State | None:
    """Returns the running session; None without one, also where its process has ended."""
    try:
        state = State(**json.loads((directory / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return state if state.alive else None


def remove(directory: Path) -> None:
    """Removes the state file; a missing one is no error."""
    (directory / FILE).unlink(missing_ok=True)
