"""Real Chromium before the console on the doubles; the browser is one for all tests."""

import os
from collections.abc import Iterator

import pytest
from moto import mock_aws
from playwright.sync_api import Browser, Page

from tests.browser.driving import Console, Opens, launched, opening, serving
from tests.browser.seeded import RIGHT, seeded
from tests.webhookctl.commands.conftest import CONFIGURATION, HANDLERS
from tests.webhookctl.commands.stage import client, documents
from webhook_inbox.domain.secret_document import SOURCES


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
    with launched() as started:
        yield started


@pytest.fixture
def opens(browser: Browser) -> Iterator[Opens]:
    """Opens a page of a console in a browser of its own, which has entered by the link."""
    with opening(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def opens_module(browser: Browser) -> Iterator[Opens]:
    """Opens pages that the tests of a module share."""
    with opening(browser) as opened:
        yield opened


@pytest.fixture
def page(console: Console, opens: Opens) -> Page:
    """The overview of a fresh console."""
    return opens(console)
