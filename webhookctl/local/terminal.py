"""Lines on the terminal, from several threads and never torn."""

import sys
import threading
from datetime import UTC, datetime
from typing import Final

_LOCK: Final = threading.Lock()


def say(text: str = "") -> None:
    """Prints whole lines at once."""
    with _LOCK:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def clock() -> str:
    """Returns the time of day for the beginning of a line."""
    return f"{datetime.now(UTC).astimezone():%H:%M:%S}"
