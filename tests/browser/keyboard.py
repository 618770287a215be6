"""Uses a page by its keyboard alone."""

from playwright.sync_api import Locator, Page

# No page has more stops.
STOPS = 200
# The focused element's outline, in pixels, and whether all of it is in the window.
FOCUS = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    inside: box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0
      && box.right <= innerWidth,
  };
}"""


def tab_to(page: Page, wanted: Locator) -> None:
    """Presses Tab until an element has the focus, which has to be visible."""
    wanted.wait_for()
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            focus = page.evaluate(FOCUS)
            assert focus["outline"] >= 2, wanted
            assert focus["inside"], wanted
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def follow(page: Page, wanted: Locator) -> None:
    """Reaches a link or a button, and opens the page behind it with Enter."""
    tab_to(page, wanted)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def fill(page: Page, field: Locator, text: str) -> None:
    """Reaches a field and types a text."""
    tab_to(page, field)
    page.keyboard.insert_text(text)
