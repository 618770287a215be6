"""Completes suggested commands, so that they can be pasted into the shell."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from webhookctl.display.untrusted import quoted
from webhookctl.target import Selection

NAME: Final = "webhookctl"
# The start of a suggested command.
_COMMAND: Final = re.compile(
    rf"\b{NAME} "
    r"(?=(?:complete|handlers|hold|inbox|rejected|replay|secrets|send|skip|sources|verify)\b)"
)


def program(called: str | None = None) -> str:
    """Returns the command that started this process, relative to the working directory."""
    path = Path(called or sys.argv[0])
    if path.name == "__main__.py":
        return f"python -m {NAME}"
    found = shutil.which(NAME)
    if found is not None and path.exists() and Path(found).samefile(path):
        return NAME
    if path.name != NAME:
        return NAME
    here = Path.cwd()
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link to the program stays one
    return quoted(str(absolute.relative_to(here) if here in absolute.parents else path))


def pasteable(text: str, *, called: str, selection: Selection) -> str:
    """Returns a text with its commands completed by this program's name and target."""
    options = {
        "--stack": selection.stack,
        "--profile": selection.profile,
        "--region": selection.region,
    }
    given = [f"{option} {quoted(value)}" for option, value in options.items() if value]
    words = [called, *(["--local"] if selection.local else []), *given]
    return _COMMAND.sub(lambda _: " ".join(words) + " ", text)
