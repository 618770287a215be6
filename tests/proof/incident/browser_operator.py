"""The operator who has the console in a browser, and nothing else."""

import re
from collections.abc import Callable
from typing import Final

from playwright.sync_api import Locator, Page, expect

from tests.browser.driving import PATIENCE
from tests.waiting import eventually

REASON: Final = "resolved in the console"


class BrowserOperator:
    """Reads pages, follows their links and fills their forms in."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.set_default_timeout(PATIENCE)

    def enter(self, link: str) -> None:
        """Opens the link that the session printed."""
        self._page.goto(link)
        expect(self._page.locator("nav")).to_be_visible()

    def open(self, title: str) -> None:
        """Opens a page of the menu."""
        self._page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()

    def sees(self, title: str, text: str) -> bool:
        """Opens a page of the menu and returns whether it has a text."""
        self.open(title)
        return text in self._page.locator("main").inner_text()

    def waits_for(self, title: str, text: str) -> None:
        """Opens a page of the menu until it has a text."""
        assert eventually(lambda: self.sees(title, text)), self._page.locator("main").inner_text()

    def acts(self, title: str, row: str, action: str) -> None:
        """Performs the action of a row of a page, with a reason."""
        self.open(title)
        self._page.get_by_role("row").filter(has_text=row).get_by_role("link", name=action).click()
        self._confirm(action)

    def _confirm(self, button: str | re.Pattern[str]) -> None:
        form = self._page.locator("form.action")
        form.locator("[name=reason]").fill(REASON)
        form.get_by_role("button", name=button).click()
        expect(self._page.locator(".done")).to_be_visible()

    # -- replays

    def replays_group(self, text: str) -> None:
        """Replays the group of dead letters that has a text: one run first, then the rest."""
        self.waits_for("Dead letters", text)
        self._plan(self._page.locator("section.group").filter(has_text=text).first)
        self._sent("Send the canary and wait for its outcome")
        self._shows("#replay", "since then: 1 done")
        self._page.get_by_role("link", name="The selection, and what is left to send").click()
        rest = self._page.get_by_role("button", name=re.compile("^Send all"))
        if rest.is_enabled():
            self._sent(re.compile("^Send all"))

    def replays_until_none_is_dead(self) -> None:
        """Replays each group that has dead runs, until there is none."""

        def none_left() -> bool:
            self.open("Dead letters")
            ready = self._page.locator("section.group button:enabled")
            if ready.count():
                self._plan(self._page.locator("section.group").filter(has=ready.first).first)
                self._sent(re.compile("^Send all"))
                self.open("Dead letters")
            return "No run is failing or dead." in self._page.locator("main").inner_text()

        assert eventually(none_left), self._page.locator("main").inner_text()

    def _plan(self, group: Locator) -> None:
        group.get_by_role("button", name="Replay this group").click()
        self._shows("main", "The selection")

    def _shows(self, place: str, text: str) -> None:
        expect(self._page.locator(place)).to_contain_text(text)

    def _sent(self, button: str | re.Pattern[str]) -> None:
        """Starts a replay, and waits for its end as the page shows it by itself."""
        self._confirm(button)

    # -- rejected deliveries

    def verifies(self) -> str:
        """Verifies the rejected deliveries again and returns what the page says."""
        self.open("Rejected")
        self._page.get_by_role("link", name="Verify these again").click()
        self._shows("main", "Verified with the present secrets")
        return self._page.locator("main").inner_text()

    def sets_secret(self, source: str, value: str) -> None:
        """Sets the secret that the page of rejected deliveries offers."""
        self.open("Rejected")
        self._page.get_by_role("link", name=f"Set the secret of {source}").click()
        self._page.locator("form.action [name=value]").fill(value)
        self._confirm("Set the secret")

    def releases_until(self, holds: Callable[[], bool]) -> None:
        """Releases the valid deliveries until a condition holds."""

        def released() -> bool:
            self.verifies()
            valid = self._page.get_by_role("button", name=re.compile("^Release the [1-9]"))
            if valid.count() and valid.is_enabled():
                self._confirm(re.compile("^Release the"))
            return holds()

        assert eventually(released), self._page.locator("main").inner_text()
