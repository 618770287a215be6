"""The entry point; turns every error into one line."""

import io
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException

from webhook_inbox.client.suggestions import Program
from webhookctl.app import app
from webhookctl.display.output import Output
from webhookctl.display.untrusted import printable, printable_lines
from webhookctl.errors import FAILED, error_object, exit_status, explain
from webhookctl.invocation import World


def main(arguments: Sequence[str] | None = None, *, world: World | None = None) -> NoReturn:
    """Runs a command and exits: 0 success, 1 failure, 2 usage error, 130 interrupted.

    141 is a closed pipe, which `display.output` notices.
    """
    outside = world or World(program=Program.running())
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        _never_fails(stream)
    try:
        status = app(args=words, obj=outside, prog_name="webhookctl", standalone_mode=False)
    except TyperException as error:
        status = error.exit_code
        _show(error, words, status=status, text=_usage(error))
    except typer.Abort:
        status = FAILED
        sys.stderr.write("Aborted!\n")
    except Exception as error:  # noqa: BLE001 - the user gets one line for any error
        status = exit_status(error)
        if outside.debug:
            sys.stderr.write(printable_lines(traceback.format_exc()))
        _show(error, words, status=status, text=f"webhookctl: {printable(explain(error))}\n")
    sys.exit(status)


def _show(error: Exception, words: Sequence[str], *, status: int, text: str) -> None:
    if _wants_json(words):
        Output(as_json=True).json(error_object(error, status))
    else:
        sys.stderr.write(text)


def _wants_json(words: Sequence[str]) -> bool:
    # A usage error may precede the parsing of `--json`; behind `--` it is an argument.
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def _usage(error: Any) -> str:
    """Returns the usage line and the error; an argument in it may be hostile."""
    text = io.StringIO()
    # Without a file, help without a command goes to standard error as well.
    error.show(file=text)
    return printable_lines(text.getvalue())


def _never_fails(stream: object) -> None:
    # Escapes characters that the terminal's encoding lacks.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
