"""`console`: serves the inbox as pages for the browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from webhook_inbox.client.names import known_manifest
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp

INSTALL: Final = "pip install 'webhook-inbox[console]'"


@takes_options
def console(
    call: Invocation,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free port.")] = 8790,
    write: Annotated[
        bool, typer.Option("--write", help="Allow actions; against a stack, pages only read.")
    ] = False,
) -> None:
    """Serve the inbox as pages for the browser, on this machine only and with your credentials.

    Nothing is deployed. Prints the URL, which has the session's token; Ctrl-C ends the session.
    """
    with _prepared(call, port, write=write or call.target.local) as (url, app, bound):
        from webhookctl.console import server  # noqa: PLC0415

        call.output.line(url)
        if not call.target.local:
            call.output.note(_cost(call))
        call.output.note("Press Ctrl-C to stop.")
        server.serve(app, bound)


def _cost(call: Invocation) -> str:
    from webhookctl.console.costs import hourly  # noqa: PLC0415 - as below

    manifest = known_manifest(call.target)
    dollars = hourly(
        sources=len(call.target.urls),
        lanes=len(call.target.queue_urls),
        handlers=len(manifest.handlers),
    )
    return (
        f"An open overview reads AWS for about {dollars:.2f} dollars an hour; the foot of each page"
        " has the reads so far."
    )


@contextmanager
def beside(call: Invocation) -> Iterator[str]:
    """Serves the console of the inbox on this machine in a thread, and yields its URL.

    Raises:
        CommandError: the extra `console` is not installed.
    """
    with _prepared(call, 0, write=True) as (url, app, bound):
        from webhookctl.console import server  # noqa: PLC0415

        with server.served(app, bound):
            yield url


@contextmanager
def _prepared(
    call: Invocation, port: int, *, write: bool
) -> Iterator[tuple[str, "ASGIApp", "socket"]]:
    try:
        # The other commands neither need the extra nor wait for its import.
        from webhookctl.console import application, guard, inbox, server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(f"{error.name} is not installed: {INSTALL}") from error
    shown = inbox.ConsoleInbox(call, write=write)
    with server.listening(port) as bound:
        session = guard.Session.begin(bound.getsockname()[1])
        yield session.url, application.application(shown, session), bound
