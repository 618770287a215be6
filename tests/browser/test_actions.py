"""Every action is performed in Chromium, by keyboard alone and without JavaScript."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import Console, Opens
from tests.browser.keyboard import fill, follow
from tests.browser.subjects import SUBJECTS
from tests.webhookctl.commands.stage import documents
from webhook_inbox.client import InboxClient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.console import actions
from webhookctl.console.actions import FormAction

REASON = "agreed in the incident"
TYPED = {
    "reason": REASON,
    "result": '{"refund": 7}',
    "name": "acct_12",
    "value": "a-secret-of-the-test",
}


def client(console: Console) -> InboxClient:
    return console.inbox.call().client


def is_decided(console: Console, event_id: str) -> bool:
    return event_id not in {each.event_id for each in client(console).holds.list()}


def run_status(console: Console, event_id: str, handler: str = "acme.fulfil") -> Status:
    return console.inbox.world.run(event_id, handler).status


def is_paused(console: Console, name: str) -> bool:
    return any(each.paused for each in client(console).handlers.list() if each.handler == name)


def paused_tenants(console: Console) -> set[str]:
    return {each.tenant for each in client(console).tenants.list()}


def circuit(console: Console, name: str) -> str | None:
    found = {each.destination: each.circuit for each in client(console).destinations.list()}
    return found[name]


# Checks that the inbox has the state that each action leaves.
DONE: dict[str, Callable[[Console], bool]] = {
    actions.APPROVE.path: lambda console: (
        is_decided(console, "evt_asking")
        and run_status(console, "evt_asking") is not Status.SKIPPED
    ),
    actions.HAPPENED.path: lambda console: is_decided(console, "evt_doubtful"),
    actions.DENY.path: lambda console: run_status(console, "evt_asking") is Status.SKIPPED,
    actions.PAUSE_HANDLER.path: lambda console: is_paused(console, "acme.fulfil"),
    actions.RESUME_HANDLER.path: lambda console: not is_paused(console, "github.announce"),
    actions.PAUSE_TENANT.path: lambda console: "acct_12" in paused_tenants(console),
    actions.RESUME_TENANT.path: lambda console: "acct_9" not in paused_tenants(console),
    actions.OPEN.path: lambda console: circuit(console, "crm") == "open",
    actions.CLOSE.path: lambda console: circuit(console, "erp") == "closed",
    actions.SKIP.path: lambda console: run_status(console, "evt_dead_0") is Status.SKIPPED,
    actions.ERASE.path: lambda console: (
        console.inbox.world.overview("evt_done").event.erased_at is not None
    ),
    actions.SET_SECRET.path: lambda _: TYPED["value"] in documents().read(SOURCES)["acme"],
    actions.RELEASE.path: lambda console: "evt_rejected" in console.inbox.world.statuses(),
}


# The others begin on the page of an event.
LISTED = [each for each in actions.ACTIONS if each.back != "/events"]


def by_keyboard(page: Page, action: FormAction) -> None:
    """Fills the form of an action in and sends it."""
    for name in action.asks:
        fill(page, page.locator(f"form.action [name={name}]"), TYPED[name])
    follow(page, page.locator("form.action button"))


def reasons(console: Console) -> set[str]:
    """Returns the reasons in the audit."""
    return {each.reason for each in client(console).audit.list()}


@pytest.mark.parametrize("action", LISTED, ids=lambda each: each.path)
def test_an_action_is_performed_by_keyboard(
    console: Console, page: Page, action: FormAction
) -> None:
    assert not DONE[action.path](console)
    subject = SUBJECTS[action.path](console.names)
    address = action.address(**subject).rstrip("?")
    page.goto(action.back)
    link = page.locator(f'a[href="{address}"]')
    follow(page, link)
    expect(page.locator("h1")).to_have_text(action.title)
    by_keyboard(page, action)
    expect(page.locator(".done")).to_contain_text(f"{action.title}: done.")
    assert DONE[action.path](console)
    assert REASON in reasons(console)


@pytest.mark.parametrize("action", LISTED, ids=lambda each: each.path)
def test_an_action_is_performed_without_javascript(
    console: Console, opens: Opens, action: FormAction
) -> None:
    page = opens(console, java_script_enabled=False)
    page.goto(action.address(**SUBJECTS[action.path](console.names)))
    for name in action.asks:
        page.locator(f"form.action [name={name}]").fill(TYPED[name])
    page.locator("form.action button").click()
    expect(page.locator(".done")).to_contain_text(f"{action.title}: done.")
    assert DONE[action.path](console)
