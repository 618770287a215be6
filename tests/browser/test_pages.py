"""Every page opens in Chromium: accessible in both schemes, at every width, without JavaScript."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from scripts.browser import axe
from tests.browser.driving import Console, Opens
from tests.browser.seeded import Names
from tests.browser.subjects import SUBJECTS
from webhookctl.console import actions
from webhookctl.console.views import MENU, event_path

Place = Callable[[Names], str]
PLACES: dict[str, Place] = {
    **{path: lambda _, path=path: path for _, path in MENU},
    "/events?status": lambda _: "/events?status=dead_letter&handler=acme.fulfil&text=evt",
    "/rejected/delivery": lambda names: f"/rejected/delivery?source=acme&id={names.rejected}",
    "/rejected/verify": lambda _: "/rejected/verify?source=acme",
    "/events?nothing": lambda _: "/events?type=never",
    **{
        f"/event {name}": lambda names, name=name: event_path("acme", getattr(names, name))
        for name in ("done", "retrying", "dead", "doubtful", "asking")
    },
    **{
        each.path: lambda names, each=each: each.address(**SUBJECTS[each.path](names))
        for each in actions.ACTIONS
    },
}
# A shortage of contrast differs by scheme; all else that axe finds is in the document.
CONTRAST = {"runOnly": ["color-contrast"]}


def faults_of(page: Page, **options: Any) -> list[str]:
    """Returns what axe finds that is serious or critical."""
    page.evaluate(axe())
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{each['id']}: {node['html']} {node['any'] and node['any'][0]['message']}"
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


def overflow(page: Page) -> int:
    """Returns by how many pixels the page is wider than its window."""
    root = "document.documentElement"
    return int(page.evaluate(f"{root}.scrollWidth - {root}.clientWidth"))


@pytest.fixture(scope="module")
def shared(still: Console, opens_module: Opens) -> Page:
    """One page for all tests here."""
    return opens_module(still)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_page_is_accessible_in_both_schemes_and_fits_every_width(
    still: Console, shared: Page, place: Place
) -> None:
    page = shared
    still.faults.clear()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(place(still.names))
    assert answer is not None
    assert answer.status == 200, page.locator("main").inner_text()
    assert page.locator("h1").inner_text()
    assert page.locator("nav a[aria-current]").count() == 1
    assert faults_of(page) == []
    page.emulate_media(color_scheme="dark")
    assert faults_of(page, **CONTRAST) == []
    # 640 pixels are those of a window of 1,280 at a zoom of 200 %.
    for width in (1280, 640, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) == 0, width
    assert still.faults == []


def test_every_page_opens_without_javascript(still: Console, opens: Opens) -> None:
    page = opens(still, java_script_enabled=False)
    for place in PLACES.values():
        page.goto(place(still.names))
        assert page.locator("h1").count() == 1
        assert page.locator("nav a").count() == len(MENU)
