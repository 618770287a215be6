"""The sources: last events, secrets, ignored types; and waiting for the first event."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import Cli, Inbox, documents
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from webhook_inbox.client.times import iso
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.console import sources


@pytest.fixture(autouse=True)
def _secrets(inbox: Inbox, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout
    # A busy machine must not cut the search short.
    monkeypatch.setattr(sources, "SECONDS", 60.0)
    for name in ("acme", "github"):
        documents().set(SOURCES, name, SECRET)


def wizard(inbox: Inbox, source: str = "acme", part: str = "") -> str:
    since = iso(inbox.now) or ""
    return f"/sources/first?source={source}&since={since}{part}".replace("+", "%2B")


def forged(inbox: Inbox) -> None:
    """Sends a delivery with a signature of another secret."""
    headers = {"x-acme-signature": "0" * 64, "x-acme-timestamp": f"{inbox.now:%s}"}
    headers |= {"x-acme-id": "evt-1", "x-acme-type": "paid"}
    inbox.clock.advance(seconds=1)
    inbox.ingest.receive(Delivery("acme", "POST", "/webhooks/acme", "", headers, b"{}", inbox.now))


def test_a_source_shows_its_last_event_and_its_secret(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    page = browser.get("/sources").text
    assert "<code>https://inbox.example/webhooks/acme</code>" in page
    assert 'data-copy="https://inbox.example/webhooks/acme"' in page
    text = browser.text("/sources")
    assert "ago : paid" in text
    assert "Verified with the current value" in text
    assert "acme: one value" in text
    assert "stripe: not set" in text
    assert "none in the last 7 d" in text
    assert "kept with the event, 35 d" in text


def test_the_value_that_verified_the_last_event(browser: Browser, inbox: Inbox) -> None:
    inbox.vault.rotate("acme", "the-next-secret")
    inbox.deliver("evt-1", secret=SECRET)
    assert "Verified with the previous value" in browser.text("/sources")


def test_ignored_types_are_counted(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("evt-1", source="github", type_="star")
    assert "Ignored since yesterday star: 1" in browser.text("/sources")


def test_unreadable_secrets_hide_nothing_else(cli: Cli) -> None:
    cli.manifest = None
    with browsing(console_of(cli)) as opened:
        page = opened.text("/sources")
    assert "The secrets cannot be read" in page
    assert "https://inbox.example/webhooks/acme" in page


def test_the_wizard_waits_then_links_to_the_event(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("before")
    inbox.clock.advance(seconds=5)
    address = wizard(inbox)
    text = browser.text(address)
    assert "Waiting since" in text
    assert "1. Register this URL" in text
    assert "acme, one value" in text
    assert "The handlers take the types paid, refunded." in text
    inbox.clock.advance(seconds=5)
    inbox.deliver("evt-1")
    page = browser.get(f"{address}&part=progress").text
    assert page.startswith('<div id="progress"')
    assert '<a href="/event?source=acme&amp;id=evt-1">paid</a>' in page
    assert "acme works" in page


def test_the_wizard_says_why_the_delivery_was_rejected(browser: Browser, inbox: Inbox) -> None:
    address = wizard(inbox)
    forged(inbox)
    text = browser.text(f"{address}&part=progress")
    assert "Rejected" in text
    assert "invalid-signature" in text
    assert "ause: " in text
    assert "Fix: " in text
    page = browser.get(f"{address}&part=progress").text
    link = page.partition('href="/rejected/delivery?')[2].partition('"')[0].replace("&amp;", "&")
    assert "invalid-signature" in browser.text(f"/rejected/delivery?{link}")


def test_an_event_precedes_an_earlier_rejection(browser: Browser, inbox: Inbox) -> None:
    address = wizard(inbox)
    forged(inbox)
    inbox.deliver("evt-2")
    assert "Arrived" in browser.text(f"{address}&part=progress")


def test_the_wizard_says_that_a_type_is_not_stored(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("old", source="github", type_="fork")
    inbox.clock.advance(seconds=5)
    address = wizard(inbox, "github")
    assert "Waiting since" in browser.text(address)
    inbox.clock.advance(seconds=5)
    inbox.deliver("evt-1", source="github", type_="star")
    assert "a delivery of star was acknowledged" in browser.text(f"{address}&part=progress")


def test_the_wizard_of_a_provider_says_where_its_secret_is(browser: Browser, inbox: Inbox) -> None:
    text = browser.text(wizard(inbox, "github"))
    assert "Register this URL at GitHub" in text
    assert "At the provider: free text that you choose in the webhook" in text
    assert "are acknowledged and not stored" in text
    assert "a provider cannot reach" in text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("source=nope", 409, "no source nope is deployed"),
        ("source=acme&since=yesterday", 400, "not a time in ISO 8601"),
        ("source=acme&since=2026-01-01T00:00:00", 400, "add the zone"),
    ],
)
def test_a_wrong_address_is_refused(browser: Browser, query: str, status: int, words: str) -> None:
    answer = browser.get(f"/sources/first?{query}")
    assert answer.status_code == status
    assert words in answer.text


def test_without_a_time_it_waits_from_now_on(browser: Browser, inbox: Inbox) -> None:
    inbox.deliver("before")
    inbox.clock.advance(seconds=timedelta(minutes=1).total_seconds())
    assert "Waiting since 0 s ago" in browser.text("/sources/first?source=acme")
