"""The state file, by which `webhookctl --local` finds a running session."""

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from webhook_inbox.client.errors import Refused

DIRECTORY: Final = ".local"  # below the root of a repository
FILE: Final = "state.json"
# Every server of a session listens on loopback, without TLS.
_LOCAL_URL: Final = re.compile(r"http://(127(\.\d{1,3}){3}|\[::1\]|localhost):\d{1,5}")
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
# The start of a process is computed from the clock, which may have been corrected since.
_CORRECTION: Final = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class State:
    """A running session: its URLs, the stack's outputs, the manifest, and its process groups.

    `front` is the URL of the local API, `endpoint` that of ministack, which takes only
    `credentials`. `started` is the start of the process `pid`, in seconds since the epoch.
    """

    pid: int
    started: float
    endpoint: str
    credentials: Mapping[str, str]
    front: str
    sink: str
    outputs: Mapping[str, str]
    manifest: Mapping[str, Any]
    children: Mapping[str, int]

    @property
    def ports(self) -> frozenset[int | None]:
        """The ports of the local API, the sink and ministack."""
        return frozenset(urlsplit(url).port for url in (self.front, self.sink, self.endpoint))

    @property
    def alive(self) -> bool:
        """True while the session runs, as the user.

        The start tells it from a later process with its number, and from one that a file names
        which its author made elsewhere.
        """
        try:
            process = psutil.Process(self.pid)
            moved = abs(process.create_time() - self.started)
            return bool(process.uids().real == os.getuid() and moved < _CORRECTION)
        except psutil.Error:
            return False


def started() -> float:
    """Returns the start of this process, in seconds since the epoch."""
    return float(psutil.Process().create_time())


def write(directory: Path, state: State) -> None:
    """Writes the state file atomically, for its user only."""
    directory.mkdir(parents=True, exist_ok=True)
    # `read` refuses a directory in which others may replace the file; the umask may allow that.
    directory.chmod(stat.S_IMODE(directory.stat().st_mode) & ~_WRITABLE)
    draft = directory / f"{FILE}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(asdict(state), indent=2))
    draft.replace(directory / FILE)


def read(directory: Path) -> State | None:
    """Returns the running session; None without one, also where its process has ended.

    Raises Refused for a file that this user's session cannot have written: the callers send
    secrets to the addresses in it.
    """
    file = directory / FILE
    if not os.path.lexists(file):
        return None
    _require_own(directory, stat.S_ISDIR)
    _require_own(file, stat.S_ISREG)
    try:
        state = State(**json.loads(file.read_text()))
        if not state.alive:
            return None
        _require_local(file, state)
    except (OSError, ValueError, TypeError):
        return None
    return state


def holder(port: int) -> tuple[Path, int] | None:
    """Returns the directory and process of the user's session that listens on `port`, if any.

    Sessions have no common register, so it looks at the working directories of the user's
    processes, and trusts a state file there as `read` does.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, Refused):
            if process.uids().real != os.getuid() or not process.is_running():
                continue
            here = Path(process.cwd())
            for directory in (here, *here.parents):
                found = read(directory / DIRECTORY)
                if found is not None and found.pid == process.pid and port in found.ports:
                    return directory, found.pid
    return None


def remove(directory: Path) -> None:
    """Removes the state file; a missing one is no error."""
    (directory / FILE).unlink(missing_ok=True)


def _require_local(file: Path, state: State) -> None:
    for url in (state.endpoint, state.front, state.sink):
        if not _LOCAL_URL.fullmatch(url):
            raise Refused(
                f"{file} names a server that is not on this machine ({url}), so no session of"
                " `webhookctl dev` wrote it: remove the file"
            )


def _require_own(path: Path, kind: Callable[[int], bool]) -> None:
    """Raises Refused unless only this user can have written the file or directory."""
    found = path.lstat()
    if not kind(found.st_mode):
        why = "is a symbolic link or a special file"
    elif found.st_uid != os.getuid():
        why = "belongs to another user"
    elif found.st_mode & _WRITABLE:
        why = "can be changed by other users"
    else:
        return
    raise Refused(
        f"{path} {why}, so its session is not trusted: remove it, and start `webhookctl dev` in a"
        " repository of your own"
    )
