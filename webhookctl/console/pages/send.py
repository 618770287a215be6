"""Sends a sample of a source, on request damaged, and shows which check refuses it."""

from collections.abc import Mapping
from itertools import count
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.sending import (
    SentSample,
    samples,
    send_sample,
    sending_refused,
)
from webhookctl.console.views import Views
from webhookctl.deliveries.damage import EXPLAINED, Damage
from webhookctl.errors import CommandError, explain

PATH: Final = "/send"
# The samples whose answers are remembered.
REMEMBERED: Final = 20


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of the page."""
    its = SendPage(inbox, views)
    return [
        Route(PATH, pages.view(its.shown), methods=["GET"]),
        Route(PATH, pages.action(its.sent, its.page), methods=["POST"]),
    ]


class SendPage:
    """The page, and the answers that it remembers."""

    def __init__(self, inbox: ConsoleInbox, views: Views) -> None:
        self._inbox = inbox
        self._views = views
        self._answers: dict[str, SentSample] = {}
        self._numbers = count(1)

    def shown(self, request: Request) -> Response:
        """Returns the page."""
        return self.page(request.query_params, 200, "")

    def page(self, chosen: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page with what was chosen."""
        sources = sorted(self._inbox.target.urls)
        source = chosen.get("source") or next(iter(sources), "")
        number = chosen.get("sent", "")
        found, unread = _samples(source)
        return self._views.page(
            "send.html",
            title="Send a sample",
            path=PATH,
            status=status,
            error=error or unread,
            sources=sources,
            source=source,
            samples=list(found),
            sample=chosen.get("sample", ""),
            damages=EXPLAINED,
            damage=chosen.get("damage", ""),
            refused=sending_refused(self._inbox),
            sent=self._answers.get(number),
        )

    def sent(self, _: Request, form: Form) -> str:
        """Sends a sample and returns the address of its answer."""
        source, sample = form.get("source", ""), form.get("sample", "")
        damage = form.get("damage", "")
        if damage not in set(Damage):
            raise CommandError(f"damage {damage!r}: choose one of {', '.join(Damage)}")
        number = next(self._numbers)
        self._answers[str(number)] = send_sample(self._inbox, source, sample, Damage(damage))
        self._answers.pop(str(number - REMEMBERED), None)
        self._inbox.changed()
        values = {"source": source, "sample": sample, "damage": damage, "sent": number}
        return f"{PATH}?{urlencode(values)}"


def _samples(source: str) -> tuple[Mapping[str, object], str]:
    try:
        return samples(source), ""
    except CommandError as error:
        return {}, explain(error)
