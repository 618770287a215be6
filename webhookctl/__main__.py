"""`webhookctl`, and the one place where errors end."""

import sys
import traceback
from collections.abc import Sequence

from webhookctl.app import app
from webhookctl.display.output import printable
from webhookctl.display.suggestions import program
from webhookctl.errors import explain
from webhookctl.invocation import World

FAILED = 1


def main(arguments: Sequence[str] | None = None, *, world: World | None = None) -> None:
    """Runs a command and exits: 0 done, 1 failed, 2 wrongly called, 130 interrupted.

    Args:
        arguments: of the process, by default.
        world: what is outside of the process; the real one, by default.
    """
    outside = world or World(program=program())
    for stream in (sys.stdout, sys.stderr):
        _never_fails(stream)
    try:
        app(args=arguments, obj=outside, prog_name="webhookctl")
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets one line
        if outside.debug:
            traceback.print_exc()
        sys.stderr.write(f"webhookctl: {printable(explain(error))}\n")
        sys.exit(FAILED)


def _never_fails(stream: object) -> None:
    # A character that the terminal's encoding lacks is no reason to show nothing.
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
