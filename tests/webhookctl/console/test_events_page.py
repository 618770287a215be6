"""The list of events: views, filters of time, and how they combine."""

import pytest

from tests.webhookctl.commands.stage import Inbox
from tests.webhookctl.console.browsing import Browser
from webhook_inbox.domain.errors import Permanent, Transient
from webhookctl.console.filters import VIEWS


@pytest.fixture(autouse=True)
def _events(inbox: Inbox) -> None:
    """A dead event of two days ago, one that will be retried, and one that is new."""
    inbox.script("acme.fulfil", Permanent("422 no such order"), Transient("down"))
    inbox.deliver("dead")
    inbox.work()
    inbox.clock.advance(days=2)
    inbox.deliver("failing")
    inbox.work()
    inbox.clock.advance(minutes=10)
    inbox.deliver("new")


def listed(browser: Browser, query: str) -> list[str]:
    page = browser.get(f"/events?{query}")
    assert page.status_code == 200, page.text
    return [each for each in ("dead", "failing", "new") if f">{each}</a>" in page.text]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["failing", "new"]),
        ("status=dead_letter", ["dead"]),
        ("status=dead_letter&since=24h", []),
        ("status=failed", ["failing"]),
        ("since=7d", ["dead", "failing", "new"]),
        ("since=5m", ["new"]),
        ("until=5m", ["failing"]),
        ("since=3d&until=1d", ["dead"]),
        ("since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00Z", ["dead"]),
        ("since=7d&text=no such order", ["dead"]),
        ("since=7d&handler=acme.notify&status=done", ["dead", "failing"]),
        ("since=7d&type=refund*", []),
    ],
)
def test_an_event_meets_every_filter(browser: Browser, query: str, ids: list[str]) -> None:
    assert listed(browser, query) == ids


@pytest.mark.parametrize("query", ["since=yesterday", "until=5 apples", "status=gone"])
def test_a_filter_that_cannot_be_read_names_the_fix(browser: Browser, query: str) -> None:
    answer = browser.get(f"/events?{query}")
    assert answer.status_code == 400
    assert "30m" in answer.text or "choose one of" in answer.text


def test_the_views_are_addresses_and_name_the_present_one(browser: Browser) -> None:
    page = browser.get("/events?status=dead_letter&since=24h").text
    for name, view in VIEWS:
        assert f">{name}</a>" in page
        assert view.query.replace("&", "&amp;") in page
    assert page.count('aria-current="true"') == 1
    assert 'since=24h" aria-current="true">Dead, received in 24 h' in page
    assert "An event is listed if it meets every filter that is set." in page
