"""The directories of the user's repository, in which a command looks for its files.

A command runs in any directory, also below one of another user or of a project that the user only
unpacked; nothing there may decide which code runs, or to which inbox a secret is sent.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# A directory; in a worktree a file.
GIT: Final = ".git"


def own_directories(start: Path) -> Iterator[Path]:
    """Yields the directory and its parents up to the root of its repository.

    Ends before the first that belongs to another user.
    """
    for directory in (start, *start.parents):
        if not owned(directory):
            return
        yield directory
        if (directory / GIT).exists():
            return


def owned(path: Path) -> bool:
    """Returns whether the file or directory belongs to the user; of a link, the link itself."""
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False
