"""Sending a sample from the console, as it is or damaged, and the check that refuses it."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.support.world import SECRET
from tests.webhookctl.commands.conftest import served
from tests.webhookctl.commands.stage import Cli, Inbox, documents
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.ledger.queries import Received
from webhookctl.console.pages import send
from webhookctl.deliveries.damage import EXPLAINED, Damage

__all__ = ["served"]
SAMPLE = "acme/paid__order.json"


@pytest.fixture(autouse=True)
def _samples(inbox: Inbox, checkout: Path, served: str) -> None:
    for name in ("acme", "github", "stripe"):
        documents().set(SOURCES, name, SECRET)
        inbox.vault.rotate(name, SECRET)
    _write(checkout, SAMPLE, {"amount": 42, "currency": "eur"})
    invoice = {"id": "evt_1abc", "type": "invoice.paid", "data": {"object": {"id": "in_1"}}}
    _write(checkout, "stripe/invoice.paid__thin.json", invoice)
    _write(checkout, "github/issues.opened__label.json", {"action": "opened"})


def _write(checkout: Path, name: str, content: object) -> None:
    file = checkout.parent / "events" / "ingest" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def received(inbox: Inbox) -> list[Received]:
    return list(inbox.ledger.received(inbox.now - timedelta(hours=1), inbox.now))


def sent(browser: Browser, damage: Damage, source: str = "acme", sample: str = SAMPLE) -> str:
    answer = browser.submit("/send", source=source, sample=sample, damage=damage)
    assert answer.status_code == 200, answer.text
    return " ".join(answer.text.split())


def test_a_sample_becomes_an_event(browser: Browser, inbox: Inbox) -> None:
    page = sent(browser, Damage.NONE)
    assert "<b>HTTP 202</b>" in page
    assert "Every check passes." in page
    [event] = received(inbox)
    assert f'href="/event?source=acme&amp;id={event.event_id}"' in page


@pytest.mark.parametrize(
    ("damage", "status", "step", "words"),
    [
        (Damage.BODY, 401, "signature valid", "invalid-signature"),
        (Damage.ORDER, 401, "signature valid", "invalid-signature"),
        (Damage.SECRET, 401, "signature valid", "invalid-signature"),
        (Damage.HEADER, 401, "signature found", "missing-signature"),
        (Damage.OLD, 400, "time within its window", "stale"),
        (Damage.FUTURE, 400, "time within its window", "future"),
    ],
)
def test_the_check_that_refuses_a_damaged_sample(
    browser: Browser, damage: Damage, status: int, step: str, words: str
) -> None:
    page = sent(browser, damage)
    assert f"<b>HTTP {status}</b>" in page
    assert f"Refused at “{step}”" in page
    assert words in page
    assert "Fix: " in page
    assert ", not stored" in page


def test_a_refused_sample_links_to_the_rejected_delivery(browser: Browser) -> None:
    page = sent(browser, Damage.SECRET)
    link = page.partition('href="/rejected/delivery?')[2].partition('"')[0].replace("&amp;", "&")
    assert "invalid-signature" in browser.text(f"/rejected/delivery?{link}")


def test_a_sample_sent_twice_is_one_event(browser: Browser, inbox: Inbox) -> None:
    page = sent(browser, Damage.TWICE)
    assert page.index("<b>HTTP 202</b>") < page.index("<b>HTTP 200</b>")
    assert len(received(inbox)) == 1


def test_the_id_in_a_body_is_new_each_time(browser: Browser, inbox: Inbox) -> None:
    for _ in range(2):
        page = sent(browser, Damage.NONE, "stripe", "stripe/invoice.paid__thin.json")
        assert "<b>HTTP 202</b>" in page
    ids = {each.event_id for each in received(inbox)}
    assert len(ids) == 2
    assert "evt_1abc" not in ids


def test_every_damage_is_offered_with_its_explanation(browser: Browser) -> None:
    page = browser.get("/send?source=acme").text
    assert set(EXPLAINED) == set(Damage)
    for each in Damage:
        assert f'value="{each}"' in page
    assert f'value="{SAMPLE}"' in page


@pytest.mark.parametrize("sample", ["../../inbox.toml", "", "github/issues.opened__label.json"])
def test_only_a_listed_sample_is_sent(browser: Browser, sample: str) -> None:
    answer = browser.submit("/send", source="acme", sample=sample, damage="none")
    assert answer.status_code == 409
    assert "is not a sample of acme: choose one listed" in answer.text


def test_an_unknown_damage_is_refused(browser: Browser) -> None:
    answer = browser.submit("/send", source="acme", sample=SAMPLE, damage="all")
    assert answer.status_code == 409
    assert "choose one of none, body" in answer.text


def test_a_source_without_samples_says_where_they_belong(browser: Browser, checkout: Path) -> None:
    (checkout.parent / "events" / "ingest" / SAMPLE).unlink()
    assert "add a body as events/ingest/acme/" in browser.text("/send?source=acme")


def test_against_a_stack_it_is_disabled_with_the_reason(cli: Cli, inbox: Inbox) -> None:
    with browsing(console_of(cli, write=True)) as opened:
        page = opened.get("/send?source=acme").text
        assert '<button disabled aria-describedby="refused">Send</button>' in page
        assert "to the inbox on this machine only" in page
        answer = opened.submit("/send", source="acme", sample=SAMPLE, damage="none")
    assert answer.status_code == 409
    assert "to the inbox on this machine only" in answer.text
    assert received(inbox) == []


def test_old_answers_are_forgotten(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "REMEMBERED", 1)
    for _ in range(2):
        sent(browser, Damage.HEADER)
    assert "Refused at" not in browser.text("/send?source=acme&sent=1")
    assert "Refused at" in browser.text("/send?source=acme&sent=2")
