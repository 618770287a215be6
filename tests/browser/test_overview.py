"""The overview in Chromium: its plots, its window, and that nothing moves while it is live."""

import pytest
from playwright.sync_api import expect

from tests.browser.driving import Console, Opens
from tests.browser.test_live import SHIFTS, connection, timed
from tests.waiting import eventually
from webhook_inbox.domain.errors import Permanent

# Milliseconds; more than the period of the summary's polling.
POLL = 5_500


@pytest.mark.parametrize("width", [1280, 360])
def test_counts_and_plots_change_in_place(console: Console, opens: Opens, width: int) -> None:
    page = opens(console, viewport={"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    page.clock.install()
    page.goto("/?window=1h")
    connection(page, "live")
    expect(page.locator(".plot")).to_have_count(3)
    for plot in page.locator(".plot .axes svg").all():
        # A plot that is being replaced has no box.
        assert eventually(plot.bounding_box)["width"] > 150
    world = console.inbox.world
    world.fails("acme.fulfil", Permanent("422 no such order"))
    world.deliver("evt_dead_new")
    world.work()
    page.clock.run_for(POLL)
    connection(page, "live")
    assert page.evaluate("window.shifts") == 0


def test_an_opened_table_stays_open_while_the_page_is_live(still: Console, opens: Opens) -> None:
    page = timed(opens, still, "/?window=1h")
    page.get_by_text("Throughput as a table").click()
    page.mouse.click(1, 1)
    with page.expect_response("**/*part=summary*"):
        page.clock.run_for(POLL)
    expect(page.locator(".plot details").first).to_have_attribute("open", "")


def test_the_window_is_a_link_that_the_keyboard_reaches(still: Console, opens: Opens) -> None:
    page = opens(still)
    page.goto("/")
    link = page.get_by_role("link", name="7d")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url("/?window=7d")
    expect(page.get_by_role("heading", name="Last 7d")).to_be_visible()


def test_without_scripts_the_page_is_whole(still: Console, opens: Opens) -> None:
    page = opens(still, java_script_enabled=False)
    page.goto("/?window=24h")
    expect(page.get_by_role("link", name="Dead runs")).to_be_visible()
    expect(page.locator(".plot .axes svg")).to_have_count(3)
