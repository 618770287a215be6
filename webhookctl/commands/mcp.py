"""`mcp`: serves the inbox's commands to an agent."""

from dataclasses import replace
from typing import Annotated

import typer

from webhook_inbox.client.client import InboxClient
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options


@takes_options
def mcp(
    call: Invocation,
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Offer the tools that change the inbox as well.")
    ] = False,
    approval: Annotated[
        bool,
        typer.Option("--approval", help="With --write: return the command for a person to run."),
    ] = False,
) -> None:
    """Serve the inbox to an agent over the Model Context Protocol, on standard input and output.

    Read-only without --write. Actions of an agent carry its name in the audit.
    """
    if approval and not write:
        raise typer.BadParameter("--approval needs --write")
    try:
        import anyio  # noqa: PLC0415 - of an extra

        from webhookctl.agents.server import AgentServer  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(
            f"{error.name} is not installed: pip install 'webhook-inbox[mcp]'"
        ) from error
    # Connects now: an agent would show a wrong target as an error of each tool.
    connected = call.client

    def connect() -> InboxClient:
        # An edited inbox.toml changes the stack on this machine; a connection to AWS stays.
        return replace(call, as_json=True).client if call.selection.local else connected

    server = AgentServer(
        connect=connect,
        clock=call.clock,
        program=call.program,
        write=write,
        approval=approval,
    )
    anyio.run(server.serve)
