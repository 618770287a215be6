"""Real Chromium before the console on the doubles; the browser is one for all tests.

A page fails its test if the browser reports an error, a violation of the Content-Security-Policy,
or a request to another host.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from moto import mock_aws
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from scripts import browser as chromium
from tests.browser.seeded import RIGHT, Names, SeededInbox, seeded
from tests.webhookctl.commands.conftest import CONFIGURATION, HANDLERS
from tests.webhookctl.commands.stage import client, documents
from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.console import application, guard, server
from webhookctl.console.inbox import ConsoleInbox

# Milliseconds; the pages of the doubles are loaded in a tenth of a second.
PATIENCE = 10_000
# Reported as an error of the page, which fails its test.
REPORTING = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
"""


@dataclass
class Console:
    """A console that is served.

    Attributes:
        inbox: the inbox that it shows.
        session: its secrets and its address.
        faults: the errors that the browser reported for its pages; a test that expects one clears
            them.
    """

    inbox: SeededInbox
    session: guard.Session
    faults: list[str] = field(default_factory=list)

    @property
    def names(self) -> Names:
        """The ids of the events."""
        return self.inbox.names

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.session.port}"


Served = Callable[..., AbstractContextManager[Console]]
Opens = Callable[..., Page]


@pytest.fixture(scope="session", autouse=True)
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An account in moto, and a checkout as the working directory."""
    functions = tmp_path_factory.mktemp("repository") / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "inbox.toml").write_text(CONFIGURATION)
    (functions / "handlers" / "__init__.py").write_text('"""One."""\n\nMODULES = ("orders",)\n')
    (functions / "handlers" / "orders.py").write_text(HANDLERS)
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.chdir(functions.parent)
        for name, secret in (("acme", RIGHT), ("github", "a"), ("stripe", "b")):
            documents().set(SOURCES, name, secret)
        yield


@contextmanager
def serving(inbox: SeededInbox, *, write: bool = True) -> Iterator[Console]:
    """Serves the console of an inbox."""
    shown = ConsoleInbox(inbox.call(), write=write)
    with server.listening(0) as bound:
        session = guard.Session.begin(bound.getsockname()[1], SystemRandomness())
        with server.served(application.application(shown, session), bound):
            yield Console(inbox, session)


@pytest.fixture
def console() -> Iterator[Console]:
    """The console of a fresh inbox, with actions."""
    with serving(seeded(other=client)) as served:
        yield served


@pytest.fixture(scope="session")
def still() -> Iterator[Console]:
    """The console of an inbox that all tests share, which only read it."""
    with serving(seeded(other=client)) as served:
        yield served


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium."""
    found = chromium.chromium()
    assert found is not None, "no Chromium: run `python -m scripts.browser`"
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs a user namespace, which root in a container does not have.
        launched = playwright.chromium.launch(
            executable_path=found.path,
            env={**os.environ, **found.environment},
            args=["--no-sandbox"],
        )
        yield launched
        launched.close()


@contextmanager
def _opening(browser: Browser) -> Iterator[Opens]:
    contexts: list[tuple[BrowserContext, Console]] = []

    def open_(console: Console, path: str = "/", **options: Any) -> Page:
        options = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options}
        context = browser.new_context(base_url=console.origin, **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(REPORTING)
        contexts.append((context, console))
        page = _watched(context.new_page(), console)
        page.goto(console.session.url)
        page.wait_for_url(f"{console.origin}/")
        if path != "/":
            page.goto(path)
        return page

    yield open_
    for context, console in contexts:
        context.close()
        faults, console.faults = console.faults, []
        assert faults == []


@pytest.fixture
def opens(browser: Browser) -> Iterator[Opens]:
    """Opens a page of a console in a browser of its own, which has entered by the link."""
    with _opening(browser) as opening:
        yield opening


@pytest.fixture(scope="module")
def opens_module(browser: Browser) -> Iterator[Opens]:
    """Opens pages that the tests of a module share."""
    with _opening(browser) as opening:
        yield opening


@pytest.fixture
def page(console: Console, opens: Opens) -> Page:
    """The overview of a fresh console."""
    return opens(console)


def _watched(page: Page, console: Console) -> Page:
    def report(kind: str, text: str) -> None:
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
