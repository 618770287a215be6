"""Every page opens in Chromium, with and without JavaScript, at every width and in both schemes."""

import pytest

from tests.browser.conftest import Console, Opens
from webhookctl.console.views import MENU

PATHS = [path for _, path in MENU]


@pytest.mark.parametrize("path", PATHS)
def test_a_page_of_the_menu_opens(still: Console, opens: Opens, path: str) -> None:
    page = opens(still, path)
    assert page.locator("h1").inner_text()
    assert page.locator("nav a[aria-current]").get_attribute("href") == path
