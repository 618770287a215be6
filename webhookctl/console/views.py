"""Renders pages: templates escape every value; times and durations are spelled by the server."""

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from webhook_inbox.client.times import iso, relative, span, spelled
from webhookctl.console.guard import Session
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.display.untrusted import printable

# Title and path of each page of the menu, in its order.
MENU: Final = (
    ("Overview", "/"),
    ("Events", "/events"),
    ("Dead letters", "/dead-letters"),
    ("Approvals", "/approvals"),
    ("Rejected", "/rejected"),
    ("Handlers", "/handlers"),
    ("Destinations", "/destinations"),
    ("Sources", "/sources"),
    ("Send", "/send"),
    ("Audit", "/audit"),
)
# The messages of actions that are kept until their page is shown.
MESSAGES: Final = 50


def event_path(source: str, event_id: str, **more: str) -> str:
    """Returns the address of an event's page.

    The id is in the query: a browser would remove an id like `..` from a path.
    """
    return f"/event?{urlencode({'source': source, 'id': event_id, **more})}"


class Views:
    """The pages of one console."""

    def __init__(self, inbox: ConsoleInbox, session: Session) -> None:
        self._inbox = inbox
        self._session = session
        self._messages: dict[str, str] = {}
        self._numbers = count(1)
        self._environment = Environment(
            loader=PackageLoader("webhookctl.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            when=self._when, printable=printable, span=span, status=_status, moment=_moment
        )
        self._environment.globals["event_path"] = event_path

    def page(
        self,
        template: str,
        *,
        title: str,
        path: str,
        status: int = 200,
        **values: Any,
    ) -> HTMLResponse:
        """Returns a whole page.

        Args:
            template: the file in templates/.
            title: the page's heading.
            path: the path of its entry in the menu.
            status: the HTTP status.
            values: what the template shows.
        """
        values.setdefault("done", "")
        text = self._environment.get_template(template).render(
            **values, **self._shared(), title=title, path=path
        )
        return HTMLResponse(text, status)

    def after(self, path: str, message: str) -> str:
        """Returns the address of a page that shows a message once, after an action."""
        number = next(self._numbers)
        self._messages[str(number)] = message
        self._messages.pop(str(number - MESSAGES), None)
        return f"{path}{'&' if '?' in path else '?'}{urlencode({'done': number})}"

    def message(self, number: str) -> str:
        """Returns the message of an action, "" where it was shown already."""
        return self._messages.pop(number, "")

    def fragment(self, template: str, **values: Any) -> HTMLResponse:
        """Returns a part of a page, to replace the one with the same id."""
        return HTMLResponse(
            self._environment.get_template(template).render(**values, **self._shared())
        )

    def _shared(self) -> Mapping[str, Any]:
        inbox = self._inbox
        return {
            "inbox": inbox,
            "menu": MENU,
            "form_token": self._session.form_token,
            "refusal": inbox.refusal,
            "now": inbox.clock.now(),
            "dollars": inbox.dollars,
        }

    def _when(self, value: datetime | None) -> Markup:
        """Returns a time as an element whose zone the page's switch chooses."""
        if value is None:
            return Markup("-")
        ago = relative(value, self._inbox.clock.now())
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            iso(value), spelled(value), ago
        )


def _moment(value: str | None) -> datetime | None:
    """Returns a time of JSON data."""
    return None if value is None else datetime.fromisoformat(value)


def _status(value: str) -> Markup:
    """Returns a status as a badge; its text says the same as its colour."""
    word = escape(value.replace("_", " "))
    return Markup('<span class="status status-{}">{}</span>').format(escape(value), word)
