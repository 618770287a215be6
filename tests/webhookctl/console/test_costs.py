"""The calls to AWS of an open overview in an hour, and their price."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.commands.test_doctor import CALLING, Account, passed
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from webhook_inbox.client import budget, event_page, stats
from webhook_inbox.client.call_costs import AwsCalls, CountedClient
from webhookctl.console import background
from webhookctl.console.costs import LIST_SECONDS, hourly

MINUTES = 6
HOUR = 60 // MINUTES


class Now:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Inline:
    """A thread that ends before it is started."""

    def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...], **_: Any) -> None:
        self._work = target, args

    def start(self) -> None:
        target, args = self._work
        target(*args)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    made = Now()
    for module in (budget, event_page, stats, background):
        monkeypatch.setattr(module, "monotonic", made)
    monkeypatch.setattr(background, "Thread", Inline)
    return made


@pytest.fixture
def stack(
    cli: Cli, inbox: Inbox, now: Now, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Browser, Account]]:
    """The console of a stack with 60 events."""
    assert now
    inbox.deploy(CALLING)
    passed(inbox, age=timedelta(seconds=20))
    account = Account(cli._client)
    monkeypatch.setattr(cli, "_client", account)
    cli.manifest = CALLING
    for number in range(60):
        inbox.deliver(f"evt-{number}")
    with browsing(console_of(cli)) as opened:
        yield opened, account


def test_the_calls_of_an_open_overview_are_bounded(
    stack: tuple[Browser, Account], now: Now
) -> None:
    browser, account = stack
    page = browser.get("/").text
    assert f'data-seconds="{LIST_SECONDS}"' in page
    for second in range(5, MINUTES * 60, 5):
        now.seconds = 1000.0 + second
        browser.get("/?part=summary")
        if second % LIST_SECONDS == 0:
            browser.get("/?part=list")
    calls = Counter({name: count * HOUR for name, count in Counter(account.calls).items()})
    # Figures and ages of queues: one call each, once a minute, however often the page is polled.
    assert calls["get_metric_data"] <= 3 * 60
    assert max(calls.values()) <= 4 * 60
    assert sum(calls.values()) <= 40 * 60
    spent = browser.shown.dollars * HOUR
    estimate = hourly(
        sources=3, lanes=len(browser.shown.target.queue_urls), handlers=len(CALLING.handlers)
    )
    assert spent == pytest.approx(estimate, rel=0.3)


def test_a_second_tab_costs_its_lists_only(stack: tuple[Browser, Account], now: Now) -> None:
    browser, account = stack
    browser.get("/")
    before = list(account.calls)
    now.seconds += 1
    browser.get("/?window=24h")
    browser.get("/?part=summary")
    assert account.calls == before


def test_metrics_are_priced_each_and_requests_by_service() -> None:
    calls = AwsCalls()
    calls.note("cloudwatch", "get_metric_data", {"MetricDataQueries": [{}] * 500})
    assert calls.dollars == pytest.approx(0.005)
    calls.note("sqs", "get_queue_attributes", {})
    calls.note("cloudformation", "list_stack_resources", {})
    assert calls.dollars == pytest.approx(0.005 + 0.4e-6)
    assert calls.counts["sqs", "get_queue_attributes"] == 1


def test_a_counted_client_is_otherwise_the_client() -> None:
    class Client:
        meta = "meta"

        def get(self, *, name: str) -> str:
            return name

    calls = AwsCalls()
    client = CountedClient(Client(), "s3", calls)
    assert (client.meta, client.get(name="a")) == ("meta", "a")
    assert calls.counts == {("s3", "get"): 1}
    with pytest.raises(AttributeError):
        client.absent  # noqa: B018 - reading it is the test


def test_the_estimate_grows_with_the_inbox() -> None:
    small = hourly(sources=1, lanes=1, handlers=1)
    assert 0.001 < small < hourly(sources=50, lanes=3, handlers=30) < 0.1
