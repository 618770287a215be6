"""Tests of `functions/`, this repository's own app; the library's tests use `tests/project`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from webhook_inbox.testing import Fake, Inbox

FUNCTIONS = Path(__file__).parents[2] / "functions"


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(FUNCTIONS)


@pytest.fixture
def production() -> Callable[..., Inbox]:
    """Returns the inbox with the values that production has."""

    def make(**fakes: Fake) -> Inbox:
        return Inbox(FUNCTIONS, stage="prod", destinations=fakes)

    return make
