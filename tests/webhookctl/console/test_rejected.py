"""Rejected deliveries in the console: verified again, released once, and explained."""

import re
from html import unescape

import pytest
from botocore.exceptions import ClientError

from tests.webhookctl.commands.stage import Cli, Inbox, documents
from tests.webhookctl.commands.test_rejected import RIGHT, ids, reject, set_secret
from tests.webhookctl.console.browsing import Browser, browsing, console_of
from webhook_inbox.client.rejected import RejectedDeliveries
from webhook_inbox.domain.errors import AccessDenied
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.console.pages import rejected as pages

pytestmark = pytest.mark.usefixtures("checkout")
WRONG = "another-secret"


def address(cli: Cli, number: int = 0) -> str:
    return f"/rejected/delivery?source=acme&id={ids(cli)[number]}"


def test_the_list_is_filtered_by_its_url(browser: Browser, inbox: Inbox) -> None:
    reject(inbox)
    assert "invalid-signature" in browser.text("/rejected?source=acme&since=1h")
    assert "No rejected deliveries found" in browser.text("/rejected?rejected_for=stale")
    answer = browser.get("/rejected?rejected_for=odd")
    assert (answer.status_code, "choose one of" in answer.text) == (400, True)


def test_verifying_again_tells_what_a_release_would_do_and_changes_nothing(
    browser: Browser, inbox: Inbox
) -> None:
    set_secret("acme", WRONG)
    reject(inbox)
    before = inbox.rows("rejected#")
    page = browser.get("/rejected/verify?source=acme")
    assert "1 invalid" in page.text
    assert "no delivery is valid: correct the secret first" in page.text
    assert "/sources/secret?name=acme" in page.text
    set_secret("acme", RIGHT)
    assert "Release the 1 valid" in browser.text("/rejected/verify?source=acme")
    assert inbox.rows("rejected#") == before


def test_the_valid_ones_of_a_filter_are_released_once(
    browser: Browser, inbox: Inbox, cli: Cli
) -> None:
    set_secret("acme", RIGHT)
    for number in range(3):
        reject(inbox, f"evt-{number}", body=b'{"n": %d}' % number)
    inbox.deliver("forged", secret="of-a-stranger")
    for _ in range(2):
        answer = browser.submit("/rejected/release-all", source="acme", reason="right again")
        assert answer.status_code in {200, 409}
    inbox.work()
    assert [inbox.overview(f"evt-{n}").status for n in range(3)] == ["done"] * 3
    assert "done" in browser.text("/event?source=acme&id=evt-0")
    rows = cli("audit", "--json", "--action", "release").objects
    assert {row["reason"] for row in rows} == {"right again"}
    counts = sorted((row["counts"] for row in rows), key=str)
    assert counts == [{"accepted": 3, "invalid": 1}, {"invalid": 1, "released": 3}]


def test_one_delivery_is_explained_and_released(browser: Browser, inbox: Inbox, cli: Cli) -> None:
    set_secret("acme", WRONG)
    reject(inbox)
    page = browser.text(address(cli))
    assert "A release would refuse it" in page
    assert "Fix:" in page
    form = {"source": "acme", "id": ids(cli)[0], "reason": "right again"}
    answer = browser.submit("/rejected/release", **form)
    assert answer.status_code == 409
    assert "nothing was released; still refused: invalid-signature" in answer.text
    assert 'value="right again"' in answer.text
    answer = browser.submit("/sources/secret", name="acme", value=RIGHT, reason="was wrong")
    assert answer.status_code == 200
    assert RIGHT not in answer.text
    assert documents().read(SOURCES)["acme"][0] == RIGHT
    assert "It is valid" in browser.text(address(cli))
    assert "1 accepted" in browser.submit("/rejected/release", **form).text
    assert "it is released already" in browser.text(address(cli))
    page = browser.get("/event?source=acme&id=evt-1").text
    assert f"/rejected/delivery?source=acme&amp;id={ids(cli)[0]}" in page


def test_a_delivery_is_shown_although_the_secrets_cannot_be_read(
    browser: Browser, inbox: Inbox, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    reject(inbox)

    def refused(*_: object, **__: object) -> None:
        error = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetSecretValue")
        raise AccessDenied("secretsmanager", "GetSecretValue", "no") from error

    monkeypatch.setattr(RejectedDeliveries, "diagnose", refused)
    page = browser.text(address(cli))
    assert "invalid-signature" in page
    assert "request this permission, or choose another --profile" in page


def test_headers_and_body_are_shown_on_request_without_the_signature(
    browser: Browser, inbox: Inbox, cli: Cli
) -> None:
    reject(inbox, body=b'{"name": "<b>Ada</b>"}')
    assert "Ada" not in browser.get(address(cli)).text
    part = browser.get(f"{address(cli)}&part=body").text
    assert "&lt;b&gt;Ada" in part
    assert "(stored, not shown)" in part


def test_a_secret_needs_a_value_and_a_reason(browser: Browser) -> None:
    answer = browser.submit("/sources/secret", name="acme", value=" ", reason="")
    assert (answer.status_code, "value, reason: fill it in" in answer.text) == (409, True)


def test_without_write_the_page_reads_and_no_form_acts(inbox: Inbox, cli: Cli) -> None:
    set_secret("acme", RIGHT)
    reject(inbox)
    with browsing(console_of(cli, write=False)) as browser:
        page = browser.get("/rejected/verify?source=acme").text
        assert "Release the 1 valid" in page
        assert "read-only: start `webhookctl console` with --write" in page
        answer = browser.submit("/rejected/release-all", source="acme", reason="x")
    assert answer.status_code == 403


def test_the_next_deliveries_of_a_source_are_verified(
    browser: Browser, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST", 2)
    set_secret("acme", RIGHT)
    for number in range(3):
        reject(inbox, f"evt-{number}", body=b'{"n": %d}' % number)
        inbox.clock.advance(seconds=1)
    assert "choose a source to verify the next ones" in browser.text("/rejected/verify")
    page = browser.get("/rejected/verify?source=acme").text
    more = re.search('href="([^"]+)">Verify the next ones', page)
    assert more is not None
    assert "evt-0" in page
    assert "evt-2" not in page
    assert "evt-2" in browser.get(unescape(more[1])).text
