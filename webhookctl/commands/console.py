"""`console`: serves the inbox as pages for the browser."""

from typing import Annotated

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options


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
    try:
        from webhookctl.console import application, guard, inbox, server  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(
            f"{error.name} is not installed: pip install 'webhook-inbox[console]'"
        ) from error
    shown = inbox.ConsoleInbox(call, write=write or call.target.local)
    with server.listening(port) as bound:
        session = guard.Session.begin(bound.getsockname()[1], SystemRandomness())
        call.output.line(session.url)
        call.output.note("Press Ctrl-C to stop.")
        server.serve(application.application(shown, session), bound)
