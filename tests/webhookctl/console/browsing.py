"""The console over the doubles, for a client in this process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.testclient import TestClient

from tests.webhookctl.commands.stage import STACK, Cli
from webhook_inbox.adapters.memory import SeededRandomness
from webhook_inbox.client.connection import Selection
from webhookctl.console.application import application
from webhookctl.console.guard import Session
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.invocation import Invocation
from webhookctl.invocation import World as Outside

PORT: Final = 8790
ADDRESS: Final = f"http://127.0.0.1:{PORT}"
TAGS: Final = re.compile(r"<[^>]+>")


class Browser(TestClient):
    """A client that has entered the console.

    Attributes:
        shown: the inbox that the console shows.
        session: its session.
    """

    shown: ConsoleInbox
    session: Session

    def text(self, path: str) -> str:
        """Returns a page's text without its markup."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return " ".join(TAGS.sub(" ", answer.text).split())

    def submit(self, path: str, **fields: str) -> Any:
        """Posts a form as the console's own page does, and follows the redirect."""
        form = {"form_token": self.session.form_token, **fields}
        return self.post(path, data=form, headers={"origin": ADDRESS})


def console_of(cli: Cli, *, write: bool = True) -> ConsoleInbox:
    """Returns the console's inbox over the doubles."""
    selection = Selection(local=True) if cli.local else Selection(stack=STACK)
    outside = Outside(cli._connect, cli.clock, program=cli.program)
    return ConsoleInbox(Invocation(outside, selection), write=write)


@contextmanager
def browsing(shown: ConsoleInbox) -> Iterator[Browser]:
    """Opens the console's link."""
    session = Session.begin(PORT, SeededRandomness(1).token)
    browser = Browser(application(shown, session), base_url=ADDRESS)
    browser.shown, browser.session = shown, session
    assert browser.get(session.url).status_code == 200
    yield browser
