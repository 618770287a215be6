"""Drives the console in Chromium.

A page fails its test if the browser reports an error, a violation of the Content-Security-Policy,
or a request to another host.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from scripts import browser as chromium
from tests.browser.seeded import Names, ShownInbox
from tests.waiting import DEADLINE
from webhookctl.console import application, guard, server
from webhookctl.console.inbox import ConsoleInbox

# Milliseconds; the pages of the doubles are loaded in a tenth of a second.
PATIENCE = DEADLINE * 1000
# By default an expectation waits for five seconds, whatever the context says.
expect.set_options(timeout=PATIENCE)
# Reported as an error of the page, which fails its test.
REPORTING = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
"""


NOTHING = "(?!)"
ANYTHING = ""


@dataclass
class Console:
    """A console that is served.

    Attributes:
        inbox: the inbox that it shows.
        session: its secrets and its address.
        expected: what the browser reports because of what the test does, as a regular expression.
            A report may arrive after what it is about, so it cannot be removed afterwards.
        faults: what else the browser reported for its pages.
    """

    inbox: ShownInbox
    session: guard.Session
    expected: str = NOTHING
    faults: list[str] = field(default_factory=list)

    @property
    def names(self) -> Names:
        """The ids of the events."""
        return self.inbox.names

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.session.port}"


Opens = Callable[..., Page]


@contextmanager
def serving(inbox: ShownInbox, *, write: bool = True) -> Iterator[Console]:
    """Serves the console of an inbox."""
    shown = ConsoleInbox(inbox.call(), write=write)
    with server.listening(0) as bound:
        session = guard.Session.begin(bound.getsockname()[1])
        with server.served(application.application(shown, session), bound):
            yield Console(inbox, session)


@contextmanager
def launched() -> Iterator[Browser]:
    """Launches Chromium; an event loop runs in this thread until the end."""
    found = chromium.chromium()
    assert found is not None, "no Chromium: run `python -m scripts.browser`"
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs a user namespace, which root in a container does not have.
        started = playwright.chromium.launch(
            executable_path=found.path,
            env={**os.environ, **found.environment},
            args=["--no-sandbox"],
        )
        yield started
        started.close()


@contextmanager
def opening(browser: Browser) -> Iterator[Opens]:
    contexts: list[tuple[BrowserContext, Console]] = []

    def open_(console: Console, path: str = "/", **options: Any) -> Page:
        options = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options}
        context = browser.new_context(base_url=console.origin, **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(REPORTING)
        contexts.append((context, console))
        page = _watched(context.new_page(), console)
        if path == "/":
            page.goto(console.session.url)
            page.wait_for_url(f"{console.origin}/")
        else:
            session = console.session
            entered = {"name": session.cookie_name, "value": session.cookie, "url": console.origin}
            context.add_cookies([{**entered, "httpOnly": True, "sameSite": "Strict"}])
            page.goto(path)
        return page

    yield open_
    for context, console in contexts:
        context.close()
        faults, console.faults = console.faults, []
        assert faults == []


def _watched(page: Page, console: Console) -> Page:
    def report(kind: str, text: str) -> None:
        if not re.search(console.expected, text):
            console.faults.append(f"{page.url}: {kind}: {text}")

    def asked(url: str) -> None:
        if not url.startswith(console.origin):
            report("request", url)

    page.on(
        "console",
        lambda message: (
            report("console", message.text) if message.type in {"error", "warning"} else None
        ),
    )
    page.on("pageerror", lambda error: report("error", str(error)))
    page.on("request", lambda request: asked(request.url))
    page.on("dialog", lambda dialog: (report("dialog", dialog.message), dialog.dismiss()))
    return page
