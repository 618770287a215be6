"""A child process and its descendants, stopped as one process group."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

import psutil

GRACE: Final = 3.0  # seconds between SIGTERM and SIGKILL
KILL_LIMIT: Final = 30.0  # seconds until killed processes are gone, on an overloaded machine
POLL: Final = 0.02
# Variables without an account, a proxy or a profile.
INHERITED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "PYTHONUTF8")


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
        """Starts `python -m command…` under a lifeline, with `env` as its whole environment.

        `output` receives standard output and error; None shares the parent's.
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
        """The leader's process id, which is also the group's id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True while the leader runs."""
        return self._process.poll() is None

    def stop(self, *, grace: float = GRACE) -> None:
        """Ends the group: SIGTERM, then SIGKILL after `grace` seconds. May be called twice."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await_end(self.pid)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def inherited() -> dict[str, str]:
    """Returns the variables of this process that a child may have: none with credentials."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


def await_end(group: int, pids: Collection[int] | None = None) -> None:
    """Waits until killed processes of a group are gone; by default all of them."""
    deadline = time.monotonic() + KILL_LIMIT
    while time.monotonic() < deadline:
        alive = set(members(group))
        if not (alive if pids is None else alive & set(pids)):
            return
        time.sleep(POLL)


def members(group: int) -> list[int]:
    """Returns the ids of a group's live processes.

    Zombies do not count: they stay listed where no init process reaps orphans.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def command_line(pid: int) -> str:
    """Returns a process's command line; "" where the process has ended."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""
