"""Waiting for states. No test waits for a time, and none fails because its machine is slow."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

# Ends a test that hangs, and is never what a test asserts: seconds to wait for a state, an answer,
# a thread or a process.
DEADLINE: Final = 600.0
POLL: Final = 0.05


def eventually(
    look: Callable[[], T | None],
    *,
    what: str | Callable[[], str] = "the state",
    seconds: float = DEADLINE,
) -> T:
    """Looks until something is true, and returns it.

    Args:
        look: returns the state, or something false as long as it is another one.
        what: the state, for the message of a failure; a function is called then.
        seconds: the time after which the test hangs.
    """
    end = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > end:
            state = what() if callable(what) else what
            raise AssertionError(f"not within {seconds:.0f} s: {state}")
        time.sleep(POLL)
    return seen
