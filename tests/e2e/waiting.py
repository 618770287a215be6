"""Waiting for what happens by itself, with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE = 60.0
POLL = 0.05


def eventually(look: Callable[[], T], *, what: str, deadline: float = DEADLINE) -> T:
    """Looks until something is there, and returns it."""
    end = time.monotonic() + deadline
    while not (found := look()):
        assert time.monotonic() < end, f"not within {deadline:.0f} s: {what}"
        time.sleep(POLL)
    return found
