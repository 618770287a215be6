"""The console over the doubles; the fixtures of the inbox are those of the commands."""

from collections.abc import Iterator

import pytest

from tests.webhookctl.commands.conftest import _alone, _one_command_tree, checkout, cli, inbox
from tests.webhookctl.commands.stage import Cli
from tests.webhookctl.console.browsing import Browser, browsing, console_of

__all__ = ["_alone", "_one_command_tree", "checkout", "cli", "inbox"]


@pytest.fixture
def browser(cli: Cli) -> Iterator[Browser]:
    """A client of the console of the inbox on this machine."""
    cli.local = True
    with browsing(console_of(cli)) as opened:
        yield opened
