"""The command line's tree: a command for each thing an operator does."""

from typing import Final

import typer

from webhookctl.commands import check, dev, inbox, replay, secrets, send
from webhookctl.invocation import Invocation, takes_options

# Plain help: it reads the same on a terminal, in a pipe and in an issue.
app: Final = typer.Typer(
    name="webhookctl",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
@takes_options
def webhookctl(call: Invocation) -> None:
    """Operate a webhook inbox: one on this machine (--local) or in AWS (--stack NAME)."""


app.command("dev")(dev.dev)
app.add_typer(secrets.app, name="secrets")
app.command("send")(send.send)
app.add_typer(inbox.app, name="inbox")
app.command("replay")(replay.replay)
app.command("check")(check.check)
