"""A child process with all its descendants, stopped as one."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

GRACE: Final = 3.0  # seconds between SIGTERM and SIGKILL
# Seconds until what was killed is gone; it takes that long only where the machine is overloaded.
BURIAL: Final = 30.0
POLL: Final = 0.02


class Child:
    """A Python module that runs as the leader of its own process group."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        output: IO[bytes] | int | None = None,
    ) -> None:
        """Starts `python -m command…` under a lifeline.

        Args:
            command: module name and arguments.
            env: the whole environment, nothing is inherited.
            cwd: where it runs.
            output: where its output and errors go; None is our own.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own modules, no shell
            [sys.executable, "-m", "webhookctl.local.processes.lifeline", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The leader's process id, which is the group's as well."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Tells whether the leader lives."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the whole group: SIGTERM, then SIGKILL after the grace. May be called twice."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self.kill()

    def kill(self) -> None:
        """Ends the whole group at once."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await_end(self.pid)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def await_end(group: int, pids: Collection[int] | None = None) -> None:
    """Waits until killed processes of a group are gone, by default all of the group."""
    deadline = time.monotonic() + BURIAL
    while time.monotonic() < deadline:
        alive = members(group)
        if not (alive if pids is None else set(alive) & set(pids)):
            return
        time.sleep(POLL)


def members(group: int) -> list[int]:
    """Returns the ids of the live processes of a process group.

    Zombies are dead already: where nothing reaps orphans they stay listed for ever.
    """
    rows = _from_proc() if Path("/proc/self/stat").exists() else _from_ps()
    return [pid for pid, pgid, state in rows if pgid == group and not state.startswith("Z")]


def _from_proc() -> Iterator[tuple[int, int, str]]:
    # Slim containers have no `ps`.
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may hold spaces: what follows the last one is regular.
            state, _, group, *_ = file.read_text().rpartition(")")[2].split()
            yield int(file.parent.name), int(group), state


def _from_ps() -> Iterator[tuple[int, int, str]]:
    command = ["ps", "-A", "-o", "pid=,pgid=,stat="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    for line in listing.stdout.splitlines():
        pid, group, state = line.split()
        yield int(pid), int(group), state


def commands(pids: Sequence[int]) -> dict[int, str]:
    """Returns the command lines of live processes by id."""
    if not pids:
        return {}
    command = ["ps", "-o", "pid=,command=", "-p", ",".join(map(str, pids))]
    if Path("/proc/self/cmdline").exists():
        return dict(_commands_from_proc(pids))
    listing = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    rows = (line.strip().partition(" ") for line in listing.stdout.splitlines())
    return {int(pid): shown for pid, _, shown in rows}


def _commands_from_proc(pids: Sequence[int]) -> Iterator[tuple[int, str]]:
    for pid in pids:
        with contextlib.suppress(OSError):
            yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
