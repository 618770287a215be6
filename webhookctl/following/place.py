"""Keeps the place of a `listen` in a file, so that the next one continues there."""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from webhookctl.errors import CommandError

DIRECTORY: Final = "webhookctl"
# The XDG base directory specification: where state that outlives a restart is kept.
VARIABLE: Final = "XDG_STATE_HOME"


class PlaceFile:
    """A file of the user's only; another target or address has another one."""

    def __init__(self, *names: str) -> None:
        digest = sha256("\0".join(names).encode(errors="replace")).hexdigest()[:16]
        base = os.environ.get(VARIABLE, "")
        home = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
        self.path = home / DIRECTORY / f"listen-{digest}.json"

    def read(self) -> Mapping[str, Any]:
        """Returns the content; nothing without a file, or if it cannot be used."""
        try:
            data = json.loads(self.path.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        except OSError as error:
            raise CommandError(f"{self.path}: cannot be read: {error.strerror}") from error
        return data if isinstance(data, dict) else {}

    def write(self, data: Mapping[str, Any]) -> None:
        """Replaces the content at once, so that a crash leaves the old or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(json.dumps(data))
        draft.replace(self.path)
