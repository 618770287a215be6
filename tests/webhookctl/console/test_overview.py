"""The overview: what needs a person, the health in one line, the plots, the newest events."""

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from tests.webhookctl.console.conftest import Doctor
from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.client import budget
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.domain.errors import Permanent, Transient, Unavailable
from webhookctl.console import attention
from webhookctl.console.attention import Finding, Need, health

WARNING = CheckResult(
    "circuit",
    Level.WARNING,
    "crm is open",
    remedy="`webhookctl destinations list` shows what waits for it",
)


def test_an_idle_inbox_is_healthy(browser: Browser) -> None:
    text = browser.text("/")
    assert "0 Dead runs 0 Waiting for approval 0 Rejected in 24 h 0 Open circuits 0 Paused" in text
    assert "Healthy : nothing waits for a person" in text
    assert "Every check of webhookctl doctor is ok." in text


def test_what_needs_a_person_links_to_its_page(browser: Browser, inbox: Inbox) -> None:
    inbox.fails("acme.fulfil", Permanent("422 no such order"))
    inbox.deliver("evt-1")
    inbox.work()
    page = browser.get("/").text
    assert '<a href="/dead-letters" class="is-open"><b>1</b> Dead runs</a>' in page
    assert "Needs you : dead runs: 1." in browser.text("/")


def test_a_finding_has_its_remedy_and_its_page(browser: Browser, doctor: Doctor) -> None:
    doctor.findings = [WARNING]
    page = browser.get("/").text
    assert '<a href="/destinations">circuit</a>: crm is open' in page
    assert "`webhookctl destinations list` shows what waits for it" in page
    assert "Needs you : findings of doctor: 1." in browser.text("/")


def test_a_doctor_that_fails_hides_nothing_else(browser: Browser, doctor: Doctor) -> None:
    doctor.error = Unread("the stack's resources cannot be listed: request the right x:y")
    text = browser.text("/")
    assert "Cannot tell : the stack&#39;s resources cannot be listed: request the right" in text
    assert "0 Dead runs" in text


def test_counts_that_cannot_be_read_say_why() -> None:
    unread = Need("Dead runs", "/dead-letters", None, error="the ledger failed")
    told = health([unread], [], "")
    assert (told.word, told.why) == ("cannot tell", "Dead runs: the ledger failed")


def test_what_waits_precedes_what_cannot_be_read() -> None:
    """A person must act either way; a check without the right to read it is no reason to wait."""
    found = [Finding("unknown", "alarms", "not checked", "request the right x:y", "")]
    told = health([Need("Paused", "/handlers", 2, least=True)], found, "")
    assert (told.word, told.why) == ("needs you", "paused: at least 2")
    told = health([Need("Paused", "/handlers", 0)], found, "")
    assert (told.word, told.why) == ("cannot tell", "alarms: request the right x:y")


def test_a_count_of_nothing_that_was_cut_off_is_no_count(
    browser: Browser, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LATEST", -1.0)
    monkeypatch.setattr(attention, "SECONDS", -1.0)
    text = browser.text("/")
    assert "Cannot tell" in text
    assert "waiting for approval: the count took too long: open the page" in text.lower()


def test_running_checks_are_no_health() -> None:
    assert health([], None, "").word == "cannot tell"


def test_an_unreachable_ledger_is_no_healthy_inbox(
    browser: Browser, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise Unavailable("DynamoDB", "Query", "down")

    monkeypatch.setattr(type(inbox.table), "query", down)
    monkeypatch.setattr(type(inbox.table), "query_index", down)
    with browsing(browser.shown) as again:
        page = again.get("/?part=summary")
    assert page.status_code == 200
    assert "Cannot tell" in page.text
    assert "<b>?</b> Dead runs" in page.text


def test_the_window_is_in_the_address(browser: Browser) -> None:
    assert "Last 24h" in browser.text("/")
    page = browser.get("/?window=7d").text
    assert '<a href="/?window=7d" aria-current="true">7d</a>' in page
    assert 'data-live="/?part=summary&amp;window=7d"' in page
    refused = browser.get("/?window=2y")
    assert refused.status_code == 400
    assert "choose one of 1h, 24h, 7d" in refused.text


def test_the_plots_have_a_table_and_say_of_which_events_they_are(
    browser: Browser, inbox: Inbox
) -> None:
    inbox.script("acme.fulfil", Transient("down"))
    inbox.deliver("evt-1")
    inbox.work()
    inbox.pass_minutes(3)
    text = browser.text("/?window=1h")
    assert "Throughput number per minute" in text
    assert "Of the 1 event received in this window, read from the local ledger." in text
    page = browser.get("/?window=1h").text
    assert "attempts that will be retried: at most 1; runs dead: at most 0." in page
    assert "style=" not in page


def test_the_newest_events_are_below(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    page = browser.get("/").text
    assert page.index("Needs a person") < page.index("<svg") < page.index("evt-1")


@pytest.mark.usefixtures("doctor")
def test_the_plots_of_a_stack_say_what_they_are_of(cli: Cli) -> None:
    with browsing(console_of(cli)) as opened:
        answer = opened.text("/")
    # CloudWatch has none here, as of a stack without a dashboard.
    assert "Of the 0 events received in this window, read from the ledger." in answer
