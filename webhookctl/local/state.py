"""The state file: how `webhookctl --local …` finds a running session."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

FILE: Final = "state.json"


@dataclass(frozen=True, slots=True)
class State:
    """A running session.

    Attributes:
        pid: of the session.
        endpoint: of ministack.
        region: that its resources are in.
        front: the stable address, without a path.
        sink: the sink's address.
        outputs: of the stack.
        children: process groups of the session, by name.
    """

    pid: int
    endpoint: str
    region: str
    front: str
    sink: str
    outputs: Mapping[str, str]
    children: Mapping[str, int]

    @property
    def alive(self) -> bool:
        """Tells whether the session still runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def write(directory: Path, state: State) -> None:
    """Writes the state file whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f"{FILE}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(directory / FILE)


def read(directory: Path) -> State | None:
    """Returns the running session, or None; a file left by one that died counts as none."""
    try:
        state = State(**json.loads((directory / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return state if state.alive else None


def remove(directory: Path) -> None:
    """Removes the state file where it is there."""
    (directory / FILE).unlink(missing_ok=True)
