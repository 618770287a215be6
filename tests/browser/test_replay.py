"""Replays and the page of an event in Chromium: plan, canary, progress, copies, errors."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import Console
from tests.browser.keyboard import fill, follow
from webhook_inbox.domain.model import Status
from webhookctl.console.views import event_path

REASON = "the ERP is back"


def statuses(console: Console) -> set[Status]:
    return {console.inbox.world.run(f"evt_dead_{n}", "acme.fulfil").status for n in range(3)}


def test_a_group_is_replayed_by_keyboard_and_its_progress_ends_by_itself(
    console: Console, page: Page
) -> None:
    page.goto("/dead-letters")
    group = page.locator("section.group").filter(has_text="3 dead")
    follow(page, group.get_by_role("button"))
    expect(page.locator("main")).to_contain_text("3 runs, and no others")
    assert statuses(console) == {Status.DEAD_LETTER}
    fill(page, page.locator("form.action [name=reason]"), REASON)
    follow(page, page.get_by_role("button", name="Send all 3"))
    expect(page.locator("#replay .done")).to_contain_text("3 sent")
    assert page.locator("[data-live]").count() == 0
    assert statuses(console) == {Status.PENDING}
    page.goto(event_path("acme", "evt_dead_0"))
    expect(page.locator(".status-pending").first).to_be_visible()


def test_the_next_action_of_an_event_is_a_button(console: Console, page: Page) -> None:
    page.goto(event_path("acme", console.names.dead))
    follow(page, page.locator(".next").get_by_role("button", name="Replay the run"))
    expect(page.locator("main")).to_contain_text("1 run, and no others")


def test_an_error_is_beside_the_form_and_what_was_typed_stays(console: Console, page: Page) -> None:
    page.goto(event_path("acme", console.names.dead))
    page.locator(".next").get_by_role("button", name="Replay the run").click()
    page.locator("[name=reason]").fill(REASON)
    page.locator("[name=rate]").fill("1000")
    console.expected = "status of 409"
    page.get_by_role("button", name="Send all").click()
    expect(page.get_by_role("alert")).to_contain_text("not a number from 1 to 500")
    expect(page.locator("[name=reason]")).to_have_value(REASON)
    expect(page.locator("[name=rate]")).to_have_value("1000")


@pytest.mark.parametrize(
    ("title", "words"),
    [("curl", "curl --silent"), ("pytest", "inbox.run("), ("JSON", '"event_id"')],
)
def test_an_event_is_copied(console: Console, page: Page, title: str, words: str) -> None:
    page.goto(event_path("acme", console.names.dead))
    copies = page.locator("details").filter(has_text=f"Copy as {title}")
    copies.locator("summary").click()
    expect(copies.locator("pre")).to_contain_text(words)
    assert words in (copies.get_by_role("button").get_attribute("data-copy") or "")


def test_the_actions_of_an_event_open_their_forms(console: Console, page: Page) -> None:
    page.goto(event_path("acme", console.names.dead))
    follow(page, page.locator(".run").get_by_role("link", name="Close the dead run").first)
    fill(page, page.locator("form.action [name=reason]"), REASON)
    follow(page, page.locator("form.action button"))
    expect(page.locator(".done")).to_contain_text("Close the dead run: done.")
    expect(page.locator("h1")).to_have_text(console.names.dead)
    assert console.inbox.world.run(console.names.dead, "acme.fulfil").status is Status.SKIPPED


def test_deliveries_of_a_filter_are_released(console: Console, page: Page) -> None:
    page.goto("/rejected?source=acme")
    follow(page, page.get_by_role("link", name="Verify these again"))
    fill(page, page.locator("form.action [name=reason]"), REASON)
    follow(page, page.get_by_role("button", name="Release the 1 valid"))
    expect(page.locator(".done")).to_contain_text("1 accepted, 1 invalid")
