"""The repository's own handlers, as whoever starts from them would test theirs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from webhook_inbox.testing import Fake, Inbox

FUNCTIONS = Path(__file__).parents[3] / "functions"


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(FUNCTIONS)


@pytest.fixture
def production() -> Callable[..., Inbox]:
    """Returns the inbox with the values that production has."""

    def make(**fakes: Fake) -> Inbox:
        return Inbox(FUNCTIONS, stage="prod", destinations=fakes)

    return make
