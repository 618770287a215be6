"""Approvals, handlers, destinations and audit: what they show, and what their state forbids."""

from dataclasses import replace
from itertools import count
from urllib.parse import urlencode

import pytest

from tests.unit.support.holding import effect, hold
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from tests.webhookctl.console.browsing import Browser
from webhook_inbox.client import budget
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec

REASON = {"reason": "as asked"}


def test_an_approval_shows_all_that_is_decided_about(browser: Browser, inbox: Inbox) -> None:
    shows = '{"amount": 4200, "to": "<b>' + "x" * 2000 + '</b>"}'
    request = hold(inbox, type_="paid", shows=shows)
    effect(inbox, request.run, error="ReadTimeout")
    page = browser.get("/approvals").text
    assert "x" * 2000 in page
    assert "&lt;b&gt;" in page
    assert "Arguments of the effect:" in page
    text = browser.text("/approvals")
    assert "it is unknown whether it happened" in text
    assert "Effect refund" in text


def test_a_decision_s_form_shows_what_is_decided(browser: Browser, inbox: Inbox) -> None:
    request = hold(inbox, type_="paid", shows='{"amount": 4200}')
    effect(inbox, request.run, error="ReadTimeout")
    names = {"event_id": "evt-1", "source": "acme", "handler": request.run.handler}
    for path in ("/approvals/approve", "/approvals/happened", "/approvals/deny"):
        page = f"{path}?{urlencode({**names, 'hold': request.id})}"
        assert "4200" in browser.text(page)
        assert "it is unknown whether it happened" in browser.text(page)
    answer = browser.submit("/approvals/deny", **names, hold=request.id, **REASON)
    assert "evt-1: Recorded as denied." in answer.text
    assert "The request is not open" in browser.text(page)


def test_a_policy_s_request_has_no_effect_that_happened(browser: Browser, inbox: Inbox) -> None:
    hold(inbox, type_="paid", subject="policy", reason="more than 1,000")
    text = browser.text("/approvals")
    assert "Subject policy" in text
    assert "Record that it happened no effect of it is in doubt" in text


def test_a_decision_says_what_it_recorded(browser: Browser, inbox: Inbox) -> None:
    request = hold(inbox, type_="paid")
    names = {"event_id": "evt-1", "source": "acme", "handler": request.run.handler}
    answer = browser.submit("/approvals/deny", **names, hold=request.id, **REASON)
    assert "Recorded as denied." in answer.text


def test_a_handler_s_unavailable_action_has_its_reason(browser: Browser) -> None:
    assert "Resume the handler it is not paused" in browser.text("/handlers")
    browser.submit("/handlers/pause", name="acme.fulfil", **REASON)
    text = browser.text("/handlers")
    assert "Pause the handler it is paused already" in text
    assert "as asked" in text


@pytest.fixture
def erp(cli: Cli, inbox: Inbox) -> None:
    """An inbox with a destination."""
    spec = DestinationSpec("erp", "https://erp.example", rate=2.0, breaker=BreakerSpec())
    cli.manifest = replace(MANIFEST, destinations={"erp": spec})


@pytest.mark.usefixtures("erp")
def test_a_destination_s_circuit_is_opened_and_closed(browser: Browser, inbox: Inbox) -> None:
    text = browser.text("/destinations")
    assert "2/s" in text
    assert "Close the circuit the circuit is not open" in text
    answer = browser.submit("/destinations/open", name="erp", **REASON)
    assert "by hand since" in answer.text
    assert "Open the circuit it is open by hand already" in browser.text("/destinations")
    inbox.clock.advance(seconds=5)
    again = browser.submit("/destinations/open", name="erp", **REASON)
    assert (again.status_code, "already open by hand" in again.text) == (409, True)
    assert "Recorded" not in browser.submit("/destinations/close", name="erp", **REASON).text
    assert "closed" in browser.text("/destinations")


def test_the_audit_is_filtered_by_its_url(browser: Browser) -> None:
    browser.submit("/handlers/pause", name="acme.fulfil", **REASON)
    browser.submit("/tenants/pause", name="t-9", reason="another")
    assert "another" in browser.text("/audit")
    assert "another" not in browser.text("/audit?action=resume")
    assert "another" in browser.text("/audit?action=pause&since=1h")
    assert "No actions found" in browser.text("/audit?by=unknown-person")
    assert "No actions found" in browser.text("/audit?event=evt-9")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("action=odd", "choose one of"),
        ("until=1h", "Before needs From"),
        ("since=odd", "odd"),
    ],
)
def test_a_wrong_filter_of_the_audit_has_its_remedy(
    browser: Browser, query: str, words: str
) -> None:
    answer = browser.get(f"/audit?{query}")
    assert answer.status_code in {400, 409}
    assert words in answer.text


def test_a_replay_is_one_row_of_the_audit(browser: Browser, cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    cli("replay", "evt-1", "--handler", "acme.fulfil", "--force", "--reason", "again", "--yes")
    text = browser.text("/audit?action=replay")
    assert "replay, forced" in text
    assert "evt-1" in text
    assert "1 replayed" in text


@pytest.mark.parametrize("path", ["/dead-letters", "/approvals"])
def test_a_page_that_read_a_part_does_not_say_that_nothing_waits(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    # The time is over before the first read.
    clock = count()
    monkeypatch.setattr(budget, "monotonic", lambda: next(clock) * 1000.0)
    assert "None was found in the time of one page" in browser.text(path)
