"""`webhookctl dev`: runs the inbox on this machine until Ctrl-C."""

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from watchfiles import watch

from webhook_inbox.client import local_session
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.suggestions import Program
from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.commands.console import beside
from webhookctl.display.untrusted import printable
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, World
from webhookctl.local.banner import banner, clock, say
from webhookctl.local.deployment.synth import Project
from webhookctl.local.kept import Kept
from webhookctl.local.ports import require_free
from webhookctl.local.runtime import Runtime, Settings

INTERVAL: Final = 500  # milliseconds between two checks of the runtime
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED: Final = 128  # exit status of a process that a signal ended, minus the signal


class Stopped(BaseException):
    """A signal requested the end of the session."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_dev(
    root: Path,
    *,
    port: int,
    sink_port: int,
    secrets: Mapping[str, str],
    hosts: frozenset[str],
    keep: Path | None = None,
    fresh: bool = False,
) -> int:
    """Runs the inbox of a repository until a signal and returns the exit status.

    0 after a normal end; 1, with one line on standard error, where it cannot start or continue;
    128 + signal where a signal arrives before it is ready. Sources without a secret get fake ones;
    `hosts` are the names of tunnels to the local API, and `keep` is the directory that keeps events
    until the next start; `fresh` empties it first.
    """
    try:
        with _signals():
            kept = Kept(keep) if keep is not None else None
            settings = Settings(port, sink_port, secrets, hosts, kept=kept)
            project = Project.at(root)
            with _held(project, kept, fresh=fresh):
                return _run(project, settings)
    except (CommandError, ConfigurationError) as error:
        sys.stderr.write(f"webhookctl dev: {printable(error)}\n")
        return 1
    except Stopped as stopped:
        return SIGNALLED + stopped.number


@contextmanager
def _held(project: Project, kept: Kept | None, *, fresh: bool) -> Iterator[None]:
    if kept is None:
        yield
        return
    if kept.directory.is_relative_to(project.functions.resolve()):
        raise CommandError(
            f"--keep {kept.directory} is in functions/, which is deployed: name another directory"
        )
    with kept.held():
        if fresh:
            kept.clear()
        yield


def _run(project: Project, settings: Settings) -> int:
    begun = time.monotonic()
    _require_alone(project, settings)
    say("Starting …")
    runtime = Runtime(project, settings, _tell)
    ready = False
    try:
        runtime.start()
        ready = True
        program = Program.running().on(Selection(local=True))
        with _console() as link:
            seconds = time.monotonic() - begun
            say(banner(runtime, seconds=seconds, program=program, console=link))
            _serve(runtime)
    except (Stopped, KeyboardInterrupt):  # watchfiles replaces what a signal handler raises
        if not ready:
            raise
    finally:
        # A second Ctrl-C must not interrupt the clean-up: it would leave processes behind.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        runtime.stop()
    say("Stopped")
    return 0


@contextmanager
def _console() -> Iterator[str]:
    call = Invocation(World(program=Program.running()), Selection(local=True))
    with ExitStack() as closing:
        try:
            link = closing.enter_context(beside(call))
        except CommandError as error:
            link = str(error)
        yield link


def _serve(runtime: Runtime) -> None:
    told: set[str] = set()
    edited, reloaded = True, True  # the first round applies edits made while the stack deployed
    for changes in watch(runtime.project.functions, rust_timeout=INTERVAL, yield_on_timeout=True):
        runtime.check()
        if changes or edited:
            reloaded = _reload(runtime, told, failed_before=not reloaded)
        edited = False


def _reload(runtime: Runtime, told: set[str], *, failed_before: bool) -> bool:
    """Applies an edit; returns whether the running code is that of functions/.

    `told` are the warnings of the previous version, which are not printed again.
    """
    try:
        differed = runtime.reload()
        found = warnings(runtime.project.functions, runtime.manifest)
    except (CommandError, ConfigurationError) as error:
        _tell(f"not reloaded, the previous version keeps running: {error}")
        return False
    for text in found:
        if text not in told:
            _tell(f"warning: {text}")
    told.clear()
    told.update(found)
    if failed_before and not differed:
        _tell("functions/ is valid again and matches the running version")
    return True


def _require_alone(project: Project, settings: Settings) -> None:
    running = local_session.read(project.state)
    if running is not None:
        raise CommandError(
            f"already running (process {running.pid}, {running.front}): stop that session first"
        )
    if settings.port == settings.sink_port:
        raise CommandError(f"--port and --sink-port are both {settings.port}: use different ports")
    _require_free(settings.port, purpose="the local API", option="--port")
    _require_free(settings.sink_port, purpose="the sink", option="--sink-port")


def _require_free(port: int, *, purpose: str, option: str) -> None:
    """Raises CommandError where `port` is taken, with the directory of the session that has it.

    A free port is not chosen instead: the address is registered with providers and tunnels.
    """
    try:
        require_free(port, purpose=purpose, option=option)
    except CommandError as error:
        found = local_session.holder(port)
        if found is None:
            raise
        directory, pid = found
        raise CommandError(
            f"port {port} for {purpose} is in use by the session in {directory} (process {pid}):"
            f" choose another with {option}, or stop that session"
        ) from error


def _tell(text: str) -> None:
    say(text if text[:2].isdigit() else f"{clock()} {text}")


@contextmanager
def _signals() -> Iterator[None]:
    """Raises `Stopped` in the main thread upon a signal that ends a session."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
