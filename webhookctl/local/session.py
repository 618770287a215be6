"""`webhookctl dev`: the inbox on this machine, until Ctrl-C."""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.local import state
from webhookctl.local.banner import banner
from webhookctl.local.errors import LocalError
from webhookctl.local.http.server import DEFAULT_PORT
from webhookctl.local.ports import require_free
from webhookctl.local.processes.sink import DEFAULT_PORT as DEFAULT_SINK_PORT
from webhookctl.local.project import Project
from webhookctl.local.runtime import Runtime, Settings
from webhookctl.local.terminal import clock, say
from webhookctl.local.watch import Watch

INTERVAL: Final = 0.5
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What a shell says of a process that a signal ended.
SIGNALLED: Final = 128


class Stopped(BaseException):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_dev(
    root: Path,
    *,
    port: int = DEFAULT_PORT,
    sink_port: int = DEFAULT_SINK_PORT,
    secrets: Mapping[str, str] | None = None,
) -> int:
    """Runs the inbox of a repository until a signal comes and returns the exit status.

    0 where it ran and was asked to end; 1, after one line that names the remedy, where it could
    not start or go on; 128 + signal where it was stopped before it was ready.

    Args:
        root: the repository.
        port: of the stable address.
        sink_port: of the sink.
        secrets: values by source; the other sources get fake ones.
    """
    try:
        with _signals():
            return _run(root, Settings(port, sink_port, secrets or {}))
    except (LocalError, ConfigurationError) as error:
        sys.stderr.write(f"webhookctl dev: {error}\n")
        return 1
    except Stopped as stopped:
        return SIGNALLED + stopped.number


def _run(root: Path, settings: Settings) -> int:
    begun = time.monotonic()
    project = Project.at(root)
    _require_alone(project, settings)
    say("starting …")
    runtime = Runtime(project, settings, _tell)
    watch = Watch(project.functions)
    ready = False
    try:
        runtime.start()
        ready = True
        say(banner(runtime, seconds=time.monotonic() - begun))
        _serve(runtime, watch)
    except Stopped:
        # Ctrl-C is how one leaves; before the banner it is an interruption.
        if not ready:
            raise
    finally:
        _deafen()
        runtime.stop()
    say("stopped")
    return 0


def _serve(runtime: Runtime, watch: Watch) -> None:
    broken = False
    while True:
        time.sleep(INTERVAL)
        runtime.check()
        if watch.changed():
            broken = not _reloaded(runtime, was_broken=broken)


def _reloaded(runtime: Runtime, *, was_broken: bool) -> bool:
    """Brings an edit in; returns whether what is in functions/ is what runs now."""
    try:
        differed = runtime.reload()
    except (LocalError, ConfigurationError) as error:
        _tell(f"not reloaded, the old version runs on: {error}")
        return False
    if was_broken and not differed:
        _tell("mended: what is in functions/ is what runs")
    return True


def _require_alone(project: Project, settings: Settings) -> None:
    running = state.read(project.state)
    if running is not None:
        message = f"it runs already (process {running.pid}, {running.front}): stop that one first"
        raise LocalError(message)
    if settings.port == settings.sink_port:
        message = f"--port and --sink-port are both {settings.port}: give them different ones"
        raise LocalError(message)
    require_free(settings.port, purpose="the front", option="--port")
    require_free(settings.sink_port, purpose="the sink", option="--sink-port")


def _tell(text: str) -> None:
    say(text if text[:2].isdigit() else f"{clock()} {text}")


@contextmanager
def _signals() -> Iterator[None]:
    """Turns the signals that end a session into `Stopped`, wherever it is at work."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _deafen() -> None:
    """Lets nothing interrupt the clean-up: a second Ctrl-C would leave processes behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Runs in the working directory, without the rest of the command line interface."""
    parser = argparse.ArgumentParser(description="The inbox on this machine.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--sink-port", type=int, default=DEFAULT_SINK_PORT)
    options = parser.parse_args()
    sys.exit(run_dev(Path.cwd(), port=options.port, sink_port=options.sink_port))


if __name__ == "__main__":
    main()
