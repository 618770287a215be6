"""`dlq list`: the messages of each dead-letter queue, and the dead runs that they belong to."""

from typing import Annotated, Final

import typer

from webhookctl.command_tree import CommandTree
from webhookctl.display.dead_letters import print_summary
from webhookctl.invocation import Invocation, takes_options

app: Final = CommandTree(help="List the dead-letter queues.")


@app.callback()
def dlq() -> None:
    """List the dead-letter queues."""


@app.command("list")
@takes_options
def list_dlqs(
    call: Invocation,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead runs read.")] = 1000,
) -> None:
    """List the messages of each dead-letter queue, and the dead runs by handler and error.

    Messages are counted by SQS and not received, since receiving would hide them. Dead runs are
    counted in the ledger, oldest event first, up to --limit.
    """
    summary = call.client.dead_letters.summarize(limit=limit)
    if call.as_json:
        call.output.results([*summary.lanes, *summary.causes])
        return
    print_summary(call.output, summary, call.clock.now())
    if summary.causes:
        replay = call.program.command("replay", "--handler", summary.causes[0].handler)
        call.output.note(f"Once the cause is fixed, see what a replay would send: `{replay}`.")
