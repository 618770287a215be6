"""Hostile text, another page on this machine, and the session's secrets, in real Chromium."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import ANYTHING, Console, Opens, serving
from tests.browser.hostile import EVIL, HANDLER, MARKUP, OTHER, UNSEEN, hostile
from tests.browser.seeded import Names, seeded
from tests.webhookctl.commands.stage import client
from webhookctl.console import actions
from webhookctl.console.requests import TOKEN_FIELD
from webhookctl.console.views import MENU, event_path
from webhookctl.display.untrusted import printable

# Templates make none of these elements, so a hostile text would have made it.
INJECTED = "body script, img, iframe, base, object, main meta, [onload], [onerror], [onfocus]"
CONTROLS = {character for character in UNSEEN if printable(character) != character}
FIELDS = {
    "event_id": lambda names: names.dead,
    "source": lambda _: "acme",
    "handler": lambda _: HANDLER,
    "hold": lambda names: names.holds[names.doubtful],
    "name": lambda _: MARKUP,
    "id": lambda names: names.dead,
    "effect": lambda _: EVIL,
}


def addresses(names: Names) -> Iterator[str]:
    """Yields every page, and pages that show what the address has."""
    yield from (path for _, path in MENU)
    evil = {"source": EVIL, "id": EVIL, "status": EVIL, "text": MARKUP, "type": EVIL}
    yield f"/events?{urlencode({'text': MARKUP, 'handler': HANDLER, 'tenant': EVIL})}"
    for path in ("/events", "/event", "/replays", "/replays/plan"):
        yield f"{path}?{urlencode({**evil, 'number': EVIL, 'selection': EVIL, 'since': EVIL})}"
    for event_id in (names.done, names.retrying, names.dead, names.doubtful):
        yield event_path("acme", event_id)
    for each in actions.ACTIONS:
        yield each.address(**{name: FIELDS[name](names) for name in each.names})


def assert_harmless(page: Page) -> None:
    """Asserts that a page has no element of a hostile text, and shows every character."""
    assert page.locator(INJECTED).count() == 0, page.url
    assert page.locator('form:not([action^="/"])').count() == 0, page.url
    assert page.locator('a[href]:not([href^="/"]):not([href^="#"])').count() == 0, page.url
    # As drawn: a field or an attribute keeps its exact characters.
    shown = page.locator("main").inner_text()
    assert not CONTROLS & {*shown}, page.url
    assert not CONTROLS & {*page.title()}, page.url


def test_no_hostile_text_becomes_a_part_of_a_page(opens: Opens) -> None:
    with serving(hostile(other=client)) as console:
        console.expected = "server responded with a status of 4"
        page = opens(console)
        for address in addresses(console.names):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status in {200, 400, 404, 409}, (
                address,
                page.locator("main").inner_text(),
            )
            assert_harmless(page)
            assert console.faults == []
        page.goto(event_path("acme", console.names.dead))
        assert "<script>alert(1)</script>" in page.locator("main").inner_text()
        assert "\\u202e" in page.locator("main").inner_text()
        page.get_by_text("Show headers and body").click()
        expect(page.locator(".tree")).to_contain_text("<script>alert(1)</script>")
        assert_harmless(page)


def test_hostile_text_in_a_form_is_recorded_and_shown_as_text(opens: Opens) -> None:
    with serving(hostile(other=client)) as console:
        page = opens(console, actions.RESUME_HANDLER.address(name=OTHER))
        page.get_by_label("Reason").fill(MARKUP[:400])
        page.locator("form.action button").click()
        expect(page.locator(".done")).to_contain_text("done")
        assert_harmless(page)
        page.goto("/audit")
        expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
        assert_harmless(page)


def test_new_rows_of_a_live_list_are_text_too(opens: Opens) -> None:
    with serving(hostile(other=client)) as console:
        page = opens(console)
        page.clock.install()
        page.goto("/events")
        expect(page.locator("#connection")).to_have_attribute("data-state", "live")
        console.inbox.world.deliver("evt_new" + console.names.dead[8:], type_=EVIL)
        page.clock.run_for(3_500)
        page.get_by_role("button", name="Show 1 new event").click()
        expect(page.locator("#list tbody tr").first).to_contain_text("evt_new")
        assert_harmless(page)


# -- another page of this machine


@contextmanager
def elsewhere(html: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serves a page on another port; yields its address and the headers of its requests."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def posting(console: Console) -> str:
    """Returns a page that posts a form of the console, whose token it has even guessed."""
    fields = {TOKEN_FIELD: console.session.form_token, "name": "acme.fulfil", "reason": "x"}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    return (
        f'<form method="post" action="{console.origin}/handlers/pause">{inputs}</form>'
        "<script>document.forms[0].submit()</script>"
    )


def test_a_page_on_another_port_cannot_act_though_its_form_has_the_cookie(
    console: Console, page: Page
) -> None:
    before = list(console.inbox.world.table.everything())
    console.expected = ANYTHING
    with elsewhere(posting(console)) as (address, _):
        with page.expect_request(f"{console.origin}/handlers/pause") as sent:
            page.goto(address)
        headers = sent.value.all_headers()
    assert headers["cookie"] == f"{console.session.cookie_name}={console.session.cookie}"
    assert headers["sec-fetch-site"] == "same-site"
    answer = sent.value.response()
    assert answer is not None
    assert answer.status == 403
    assert list(console.inbox.world.table.everything()) == before


READING = """async (origin) => {
  const found = {};
  for (const mode of ["cors", "no-cors"]) {
    const asking = fetch(`${origin}/events`, { mode, credentials: "include" });
    found[mode] = await asking.then((answer) => answer.text(), (error) => error.name);
  }
  const load = (tag, name) => new Promise((done) => {
    const element = document.createElement(tag);
    element.onload = () => done("loaded");
    element.onerror = () => done("refused");
    element.src = `${origin}${name}`;
    document.body.append(element);
  });
  found.script = await load("script", "/static/console.js");
  found.image = await load("img", "/events");
  const frame = document.createElement("iframe");
  frame.src = `${origin}/events`;
  await new Promise((done) => { frame.onload = done; document.body.append(frame); });
  found.frame = frame.contentDocument === null ? "" : frame.contentDocument.body.innerText;
  return found;
}"""


def test_a_page_on_another_port_reads_nothing(console: Console, page: Page) -> None:
    console.expected = ANYTHING
    with elsewhere("<p>here</p>") as (address, _):
        page.goto(address)
        found = page.evaluate(READING, console.origin)
    assert found == {
        "cors": "TypeError",
        "no-cors": "TypeError",
        "script": "refused",
        "image": "refused",
        "frame": "",
    }


def test_a_link_from_another_site_enters_nothing(console: Console, page: Page) -> None:
    """`localhost` is another site than 127.0.0.1, so that the cookie stays away."""
    console.expected = ANYTHING
    with elsewhere(f'<a href="{console.origin}/events">open</a>') as (address, _):
        page.goto(address.replace("127.0.0.1", "localhost"))
        with page.expect_response(f"{console.origin}/events") as answer:
            page.get_by_text("open").click()
    assert answer.value.status == 401


# -- the session's secrets


def test_the_token_is_in_no_referrer_no_address_and_no_page(console: Console, opens: Opens) -> None:
    page = opens(console)
    assert console.session.token not in page.url
    told: list[str] = []

    def note(request: object) -> None:
        told.append(json.dumps(request.all_headers()) + request.url)  # type: ignore[attr-defined]

    page.on("request", note)
    page.goto(console.session.url)
    page.wait_for_url(f"{console.origin}/")
    for _, path in MENU:
        page.goto(path)
        assert console.session.token not in page.content()
        assert console.session.cookie not in page.content()
    assert page.evaluate("document.cookie") == ""
    with_token = [each for each in told if console.session.token in each]
    # The link itself, once.
    assert len(with_token) == 1
    assert not any("referer" in each and "token=" in each for each in told)


def test_nothing_is_logged(
    console: Console,
    page: Page,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    page.goto(console.session.url)
    console.expected = "status of 4"
    for path in ("/events", "/event?source=acme&id=none", "/nowhere", "/events?status=odd"):
        page.goto(path)
    logged = "".join(capfd.readouterr()) + caplog.text
    assert console.session.token not in logged
    assert console.session.cookie not in logged
    assert not re.search(r"GET|127\\.0\\.0\\.1", logged)


# -- read-only and production


def test_a_disabled_button_says_why_and_does_nothing(opens: Opens) -> None:
    with serving(seeded(other=client, stage="production"), write=False) as console:
        page = opens(console, actions.PAUSE_HANDLER.address(name="acme.fulfil"))
        button = page.get_by_role("button", name=actions.PAUSE_HANDLER.title)
        expect(button).to_be_disabled()
        expect(button).to_have_accessible_description(re.compile("read-only: start"))
        expect(page.locator("header")).to_contain_text("PRODUCTION")
        assert page.locator("header").evaluate(
            "element => getComputedStyle(element).borderTopColor"
        ) in {"rgb(179, 0, 27)", "rgb(193, 18, 31)"}
        # Enabled by hand, it is refused by the server.
        button.evaluate("element => { element.disabled = false; }")
        page.get_by_label("Reason").fill("x")
        console.expected = "status of 403"
        with page.expect_response("**/handlers/pause") as answer:
            button.click()
        assert answer.value.status == 403
        expect(page.locator("body")).to_have_text(re.compile("^read-only"))
