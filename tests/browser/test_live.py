"""A page stays current without moving, says when it is stale, and serves many tabs at once."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.driving import Console, Opens, serving
from tests.browser.seeded import seeded
from tests.webhookctl.commands.stage import client
from webhookctl.console.costs import LIST_SECONDS
from webhookctl.console.views import event_path

# Milliseconds; more than the period of the page's polling.
POLL = LIST_SECONDS * 1000 + 500
TABS = 8
# Counts what moves without the user's input.
SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


def connection(page: Page, state: str) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", state)


def timed(opens: Opens, console: Console, path: str) -> Page:
    """Opens a page whose timers a test advances."""
    page = opens(console)
    page.clock.install()
    page.goto(path)
    connection(page, "live")
    return page


@pytest.mark.parametrize("width", [1280, 360])
def test_new_events_wait_behind_a_button_and_nothing_moves(
    console: Console, opens: Opens, width: int
) -> None:
    world = console.inbox.world
    page = opens(console, viewport={"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    page.clock.install()
    page.goto("/events")
    connection(page, "live")
    first = page.locator("#list tbody tr").first
    expect(first).to_contain_text("in_1")
    world.deliver("evt_new_1", body=b'{"address": "3 High St"}')
    page.clock.run_for(POLL)
    button = page.get_by_role("button", name="Show 1 new event")
    expect(button).to_be_visible()
    expect(first).to_contain_text("in_1")
    # A row that is shown changes in place.
    retrying = page.locator(f'tr[data-key="acme/{console.names.retrying}"]')
    expect(retrying).to_contain_text("failed")
    world.behaviours.pop("acme.fulfil")
    world.pass_minutes(2)
    page.clock.run_for(POLL)
    expect(retrying).to_contain_text("done")
    assert page.evaluate("window.shifts") == 0
    button.click()
    expect(first).to_contain_text("evt_new_1")
    expect(button).to_be_hidden()


def test_a_page_says_that_it_connects_is_live_and_since_when_it_is_stale(opens: Opens) -> None:
    with serving(seeded(other=client)) as console:
        page = opens(console)
        page.clock.install()
        page.route("**/*part=list*", lambda route: None)
        page.goto("/events")
        connection(page, "connecting")
        page.unroute("**/*part=list*")
        page.reload()
        connection(page, "live")
        # The server ends here.
        console.expected = "Failed to load resource: net::|Failed to fetch"
    page.clock.run_for(POLL)
    connection(page, "stale")
    expect(page.locator("#connection")).to_have_text(re.compile(r"stale since \d+:\d\d:\d\d"))
    told = page.locator("#connection").inner_text()
    page.clock.run_for(POLL)
    # The time is that of the last answer.
    expect(page.locator("#connection")).to_have_text(told)


def test_a_hidden_tab_asks_for_nothing(console: Console, opens: Opens) -> None:
    page = timed(opens, console, "/events")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'visibilityState', { value: 'hidden', writable: true })"
    )
    page.clock.run_for(3 * POLL)
    assert asked == []


def test_the_zone_of_all_times_is_switched_and_kept(still: Console, opens: Opens) -> None:
    page = opens(still, timezone_id="Asia/Tokyo")
    page.goto("/audit")
    switch = page.get_by_role("button", name="UTC")
    first = page.locator("main time").first
    expect(first).to_have_attribute("title", re.compile("Z$"))
    switch.click()
    expect(page.locator("#zone")).to_have_text("Asia/Tokyo")
    expect(page.locator("#zone")).to_have_attribute("aria-pressed", "true")
    expect(first).to_have_attribute("title", re.compile(r"9:\d\d:\d\d AM$"))
    page.goto("/events")
    expect(page.locator("#zone")).to_have_text("Asia/Tokyo")


def test_eight_tabs_are_live_at_once(still: Console, opens: Opens) -> None:
    page = opens(still)
    tabs = [page.context.new_page() for _ in range(TABS)]
    for tab in tabs:
        tab.goto("/events")
    for tab in tabs:
        tab.bring_to_front()
        connection(tab, "live")


def test_the_payload_is_loaded_on_request_as_a_tree(still: Console, opens: Opens) -> None:
    page = opens(still, event_path("acme", still.names.done))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.get_by_text("1 High St")).to_have_count(0)
    assert asked == []
    page.get_by_text("Show headers and body").click()
    expect(page.locator(".tree")).to_contain_text('"1 High St"')
    expect(page.locator(".headers")).to_contain_text("x-acme-id")
    assert len(asked) == 1


def test_a_payload_that_was_opened_before_the_script_ran_is_loaded(
    still: Console, opens: Opens
) -> None:
    page = opens(still)
    held: list[Route] = []
    # Playwright sets an attribute of the function, which the list's own method does not take.
    page.route("**/console.js", lambda route: held.append(route))  # noqa: PLW0108
    page.goto(event_path("acme", still.names.done), wait_until="commit")
    page.get_by_text("Show headers and body").click()
    [script] = held
    script.continue_()
    expect(page.locator(".tree")).to_contain_text('"1 High St"')


def test_a_payload_without_javascript_is_a_file_and_never_a_page(
    still: Console, opens: Opens
) -> None:
    page = opens(still, java_script_enabled=False, accept_downloads=True)
    page.goto(event_path("acme", still.names.done))
    page.get_by_text("Show headers and body").click()
    with page.expect_download() as download:
        page.get_by_text("Download the body").click()
    assert b"1 High St" in download.value.path().read_bytes()
