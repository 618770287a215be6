"""The page of an approval link in Chromium: without scripts, in both schemes, and its form."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page

from ingest import approvals
from tests.browser.test_pages import CONTRAST, faults_of, overflow
from tests.functions.invocations import http_event
from tests.functions.test_approvals import Requests, Stage
from webhook_inbox.handlers.approvals.request_row import Word


class Served(ThreadingHTTPServer):
    """Hands a browser's requests to the route, as API Gateway does."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.stage = stage

    def link(self, person: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/approvals/{self.stage.token(person)}"


class Handler(BaseHTTPRequestHandler):
    server: Served

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        event = http_event(self.path, method=self.command, headers=headers, body=body)
        answer = self.server.stage.approving.answer(event)
        page = answer["body"].encode()
        self.send_response(answer["statusCode"])
        for name, value in {**answer["headers"], "content-length": str(len(page))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page)

    do_POST = do_GET  # noqa: N815 - http.server's name

    def log_message(self, *_: object) -> None:
        """Writes nothing."""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(approvals, "ApprovalRequests", Requests)
    with Served(Stage()) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    opened, faults = context.new_page(), []
    opened.on("console", lambda message: faults.append(message.text))
    yield opened
    context.close()
    # An answer of 403 is no fault of the page.
    assert [fault for fault in faults if "403" not in fault] == []


def test_the_page_is_accessible_in_both_schemes_and_fits_a_phone(
    served: Served, page: Page
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(served.link("ann"))
    assert faults_of(page) == []
    page.emulate_media(color_scheme="dark")
    assert faults_of(page, **CONTRAST) == []
    for width in (1280, 640, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) == 0, width


def test_a_person_decides_by_the_keyboard_and_only_with_both_choices(
    served: Served, page: Page
) -> None:
    page.goto(served.link("ann"))
    # Neither Enter in the empty form nor with one choice sends anything.
    page.locator("input[name=confirm]").focus()
    page.keyboard.press("Enter")
    page.locator("input[value=approve]").press("Space")
    page.keyboard.press("Enter")
    assert served.stage.decided == []

    page.locator("input[name=confirm]").press("Space")
    page.locator("button").press("Enter")

    page.locator("text=Recorded: you approved this request.").wait_for()
    assert served.stage.decided == [("ann", Word.APPROVE, "")]
    # The browser sends the form again, with the origin of the page.
    page.reload()
    page.locator("text=Nothing was recorded now.").wait_for()
    assert len(served.stage.decided) == 1


def test_a_form_of_another_site_decides_nothing(served: Served, page: Page) -> None:
    link = served.link("ann")
    with page.expect_navigation(url=link):
        page.goto(
            "data:text/html,<form method=post action='"
            + link
            + "'><input name=decision value=approve><input name=confirm value=yes></form>"
            "<script>document.forms[0].submit()</script>"
        )

    assert "sent from another site" in page.inner_text("main")
    assert served.stage.decided == []
