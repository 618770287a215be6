"""The console over the doubles; the fixtures of the inbox are those of the commands."""

from collections.abc import Iterator

import pytest

from tests.webhookctl.commands.conftest import _alone, _one_command_tree, checkout, cli, inbox
from tests.webhookctl.commands.stage import Cli
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from webhook_inbox.client import budget, event_page, stats
from webhook_inbox.client.health.checks import HealthChecks
from webhook_inbox.client.health.result import CheckResult
from webhookctl.console import background

__all__ = ["_alone", "_one_command_tree", "checkout", "cli", "inbox"]


class Doctor:
    """Stands for the checks of an inbox, whose own tests examine a stack."""

    def __init__(self) -> None:
        self.findings: list[CheckResult] = []
        self.error: Exception | None = None

    def examine(self, **_: object) -> list[CheckResult]:
        """Returns the findings."""
        if self.error is not None:
            raise self.error
        return self.findings


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """A doctor without findings."""
    made = Doctor()
    # A page shows what is read meanwhile; a test waits for all of it.
    monkeypatch.setattr(background, "WAIT", 20.0)
    monkeypatch.setattr(HealthChecks, "examine", made.examine)
    return made


@pytest.fixture
def browser(cli: Cli, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A client of the console of the inbox on this machine."""
    cli.local = True
    for module in (budget, event_page, stats):
        # A busy machine must not cut a small page short.
        monkeypatch.setattr(module, "monotonic", lambda: 0.0)
    with browsing(console_of(cli)) as opened:
        yield opened
