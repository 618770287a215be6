"""`completion`: prints the script that completes commands and options in a shell."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from webhookctl.completion_script import script, words_of
from webhookctl.invocation import Invocation, interactive


class Shell(StrEnum):
    """A shell."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion_of(tree: typer.Typer) -> Callable[..., None]:
    """Returns the command for the commands of this tree, itself included."""

    @interactive
    def completion(
        call: Invocation,
        shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    ) -> None:
        """Print the completion script of a shell, for its start file.

        The script starts no process; print it again after an upgrade.
        """
        words = words_of(typer.main.get_command(tree))
        call.output.lines(script(str(shell), words))

    return completion
