"""The banner of a session: URLs, secrets and commands to try."""

import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from webhook_inbox.client.local_session import FILE as STATE
from webhook_inbox.client.suggestions import NAME, Command, Program, quoted
from webhook_inbox.configuration.addresses import kind_of
from webhookctl.deliveries.samples import samples_of
from webhookctl.display.output import folded
from webhookctl.display.untrusted import printable_lines
from webhookctl.local.dev_secrets import FILE
from webhookctl.local.runtime import Runtime

SUGGESTIONS: Final = 3
# Columns of a suggested command; longer ones continue on a second line.
WIDTH: Final = 78


def banner(
    runtime: Runtime, *, seconds: float, program: Program | None = None, console: str = ""
) -> str:
    """Returns the banner; shows fake secrets only.

    Args:
        runtime: the session's.
        seconds: the time that the start took.
        program: begins the suggested commands; by default `webhookctl --local`.
        console: the URL of the console, or how to install it.
    """
    words = (program or Program((NAME, "--local"))).words
    return "\n".join(
        [
            "",
            f"Ready in {seconds:.1f} s. Webhook URLs",
            *_addresses(runtime),
            "",
            *_secrets(runtime),
            "Try next",
            *_suggestions(runtime, words),
            "",
            f"Console: {console}",
            f"Requests of the handlers to the sink: {runtime.sink_url}/effects",
            _end(runtime),
            f"AWS on this machine: {runtime.ministack.endpoint}"
            f" (credentials in {runtime.project.state.name}/{STATE})",
            "Changes in functions/ reload automatically. Press Ctrl-C to stop.",
            *_warnings(runtime),
        ]
    )


def _end(runtime: Runtime) -> str:
    kept = runtime.settings.kept
    if kept is None:
        return "Events and effects are deleted when the session ends; --keep DIR keeps them."
    return (
        f"Ctrl-C saves events and secrets in {kept.directory} for the next start, effects are saved"
        " at once; after kill -9 the next start has the events and secrets of the last Ctrl-C, and"
        " all effects."
    )


def _addresses(runtime: Runtime) -> Iterator[str]:
    for name, source in runtime.manifest.sources.items():
        yield f"  {runtime.front.url}/webhooks/{name}  ({source.provider})"
    for host in sorted(runtime.settings.hosts):
        yield f"  https://{host}/webhooks/SOURCE  (tunnel)"


def _secrets(runtime: Runtime) -> Iterator[str]:
    known = runtime.given | runtime.replaced
    yield f"Secrets (fake ones are stored in {runtime.project.state.name}/{FILE})"
    for name, source in runtime.manifest.sources.items():
        shown = runtime.secrets[source.secret]
        yield f"  {name}  {'(as given)' if source.secret in known else shown}"
    yield ""


def _suggestions(runtime: Runtime, program: tuple[str, ...]) -> Iterator[str]:
    samples = [
        (sample.relative_to(runtime.project.root), name)
        for name, source in runtime.manifest.sources.items()
        for sample in sorted(samples_of(runtime.project.root, name, source.provider))[:1]
    ]
    for file, name in samples[:SUGGESTIONS]:
        words = ("send", quoted(str(file)), "--source", name, "--times", "3")
        yield from _command(*program, *words)
    yield from _command(*program, "inbox", "list")


def _command(*words: str) -> Iterator[str]:
    return (f"  {line}" for line in folded(Command(words), WIDTH))


def _warnings(runtime: Runtime) -> Iterator[str]:
    for each in runtime.manifest.destinations.values():
        if not each.in_sink and kind_of(each.base_url) != "loopback":
            yield f"Warning: this session calls {each.base_url} for destination {each.name};"
            yield f'  base_url = "sink" in [stages.local.destinations.{each.name}] prevents it'


_LOCK: Final = threading.Lock()


def say(text: str = "") -> None:
    """Prints text without interleaving other threads' lines."""
    with _LOCK:
        sys.stdout.write(f"{printable_lines(text)}\n")
        sys.stdout.flush()


def clock() -> str:
    """Returns the local time of day, which begins a line."""
    return f"{datetime.now(UTC).astimezone():%H:%M:%S}"
