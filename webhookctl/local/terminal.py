"""Prints lines to the terminal from several threads."""

import sys
import threading
from datetime import UTC, datetime
from typing import Final

_LOCK: Final = threading.Lock()


def say(text: str = "") -> None:
    """Prints text without interleaving other threads' lines."""
    with _LOCK:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def clock() -> str:
    """Returns the local time of day, which begins a line."""
    return f"{datetime.now(UTC).astimezone():%H:%M:%S}"
