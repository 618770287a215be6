"""Waiting for what happens by itself, with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Generous: a passing test waits for what it waits for and no longer, however slow the machine.
DEADLINE = 300.0
POLL = 0.05


def eventually(look: Callable[[], T], *, what: str) -> T:
    """Looks until something is there, and returns it."""
    end = time.monotonic() + DEADLINE
    while not (found := look()):
        assert time.monotonic() < end, f"not within {DEADLINE:.0f} s: {what}"
        time.sleep(POLL)
    return found
