"""Shows text of providers, callers and exceptions, which may attack the terminal or its reader."""

import re
from typing import Final

from webhook_inbox.domain.printable import printable

__all__: Final = ["printable", "printable_lines"]


def printable_lines(text: str) -> str:
    """Returns a text in which every character shows, with its line breaks and tabs."""
    parts = re.split(r"(\r?\n|\t)", text)
    # Every second part is a separator.
    return "".join(printable(part) if n % 2 == 0 else part[-1] for n, part in enumerate(parts))
