"""Notices edits by looking: no library, and the same on every system and file system."""

from collections.abc import Mapping
from pathlib import Path

Snapshot = Mapping[Path, tuple[int, int]]


class Watch:
    """Looks at a directory whenever it is asked to."""

    def __init__(self, directory: Path) -> None:
        """Takes the present state as the known one."""
        self._directory = directory
        self._known = self._look()
        self._last = self._known

    def changed(self) -> bool:
        """Tells whether something changed and has now been the same for two looks.

        An editor's save is several steps; the first of them is no good version.
        """
        now = self._look()
        settled = now == self._last
        self._last = now
        if not settled or now == self._known:
            return False
        self._known = now
        return True

    def _look(self) -> Snapshot:
        found = {}
        for file in self._directory.rglob("*"):
            if "__pycache__" in file.parts or file.name.startswith("."):
                continue
            try:
                status = file.stat()
            except OSError:
                continue  # gone between the two calls
            if file.is_file():
                found[file] = (status.st_mtime_ns, status.st_size)
        return found
