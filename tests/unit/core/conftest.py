"""One inbox a test, in memory."""

import pytest

from tests.unit.core.world import World


@pytest.fixture
def world() -> World:
    """An inbox with two sources, a handler each, and a clock at midnight."""
    return World()
