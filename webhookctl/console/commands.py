"""Runs a command of this program in the console's process, and returns what `--json` prints."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import typer

from webhookctl.display.output import Advance, Output
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation


@dataclass
class Told(Output):
    """The results of a command: the objects of its `--json`, and its notes."""

    as_json: bool = True
    objects: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    what: str = ""
    done: int = 0
    total: int = 0
    stopped: bool = False
    partly: bool = False

    def json(self, data: Mapping[str, Any]) -> None:
        """Keeps an object."""
        self.objects.append(dict(data))

    def note(self, text: str) -> None:
        """Keeps a note."""
        self.notes.append(text)

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Advance]:
        """Keeps the counts; a command that was told to stop is interrupted as by Ctrl-C."""
        self.what, self.done, self.total = what, 0, total

        def advance(count: int) -> None:
            self.done += count
            if self.stopped:
                raise KeyboardInterrupt

        yield advance


def told(call: Invocation, command: Callable[..., None], **values: Any) -> Told:
    """Runs a command with these values of its options; the others have their defaults.

    Raises:
        CommandError: the command refused or failed, with the text that it would print.
    """
    result = Told()
    perform(call, command, result, values)
    return result


def perform(
    call: Invocation, command: Callable[..., None], result: Told, values: dict[str, Any]
) -> None:
    """Runs a command as `told` does, with a result that can be read meanwhile."""
    quiet = replace(call, as_json=True, printer=result)
    # The part of a command that reads standard input no more is a function.
    run = getattr(command, "perform", lambda call, values: command(call, **values))
    try:
        run(quiet, values)
    except typer.BadParameter as error:
        raise CommandError(error.format_message()) from error
    except typer.Exit:
        # The command said why in its objects and notes.
        pass
