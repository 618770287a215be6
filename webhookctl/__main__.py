"""The entry point; turns every error into one line."""

import sys
import traceback
from collections.abc import Sequence

from webhookctl.app import app
from webhookctl.display.suggestions import Program
from webhookctl.display.untrusted import printable, printable_lines
from webhookctl.errors import explain
from webhookctl.invocation import World

FAILED = 1


def main(arguments: Sequence[str] | None = None, *, world: World | None = None) -> None:
    """Runs a command and exits: 0 success, 1 failure, 2 usage error, 130 interrupted."""
    outside = world or World(program=Program.running())
    for stream in (sys.stdout, sys.stderr):
        _never_fails(stream)
    try:
        app(args=arguments, obj=outside, prog_name="webhookctl")
    except Exception as error:  # noqa: BLE001 - the user gets one line for any error
        if outside.debug:
            sys.stderr.write(printable_lines(traceback.format_exc()))
        sys.stderr.write(f"webhookctl: {printable(explain(error))}\n")
        sys.exit(FAILED)


def _never_fails(stream: object) -> None:
    # Escapes characters that the terminal's encoding lacks.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
