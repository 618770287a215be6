"""The sources, and a page that waits for the first event of one."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.cached import Cached
from webhook_inbox.client.diagnosis.diagnose import Diagnosis
from webhook_inbox.client.names import unknown
from webhook_inbox.client.secrets import SecretStatus
from webhook_inbox.client.sources import facts_of
from webhook_inbox.client.times import iso
from webhookctl.console import actions
from webhookctl.console import sources as shown
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.sources import diagnosis_of, source_states
from webhookctl.console.tables import RowAction
from webhookctl.console.views import Views
from webhookctl.errors import CommandError, explain

PATH: Final = "/sources"
FIRST: Final = f"{PATH}/first"
# Secrets and metrics cost calls to AWS: they are at most a minute old.
SECONDS: Final = 60
LOCAL_SECONDS: Final = 3
# A diagnosis tries up to 20,000 variants.
DIAGNOSIS_SECONDS: Final = 30


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of sources."""
    its = SourcePages(inbox, views)
    return [
        Route(PATH, pages.view(its.listed), methods=["GET"]),
        Route(FIRST, pages.view(its.first), methods=["GET"]),
    ]


class SourcePages:
    """The pages of sources."""

    def __init__(self, inbox: ConsoleInbox, views: Views) -> None:
        self._inbox = inbox
        self._views = views
        seconds = LOCAL_SECONDS if inbox.begun.selection.local else SECONDS
        self._sources = Cached(partial(source_states, inbox), seconds=seconds)
        self._secrets = Cached[Mapping[str, SecretStatus]](self._read_secrets, seconds=seconds)
        # The last delivery that was diagnosed.
        self._diagnosed: tuple[str, str, Cached[Diagnosis]] | None = None
        for each in (self._sources, self._secrets):
            inbox.on_change(each.forget)

    def _read_secrets(self) -> Mapping[str, SecretStatus]:
        return {each.name: each for each in self._inbox.reading().secrets.status()}

    def _known_secrets(self) -> tuple[Mapping[str, SecretStatus], str]:
        try:
            return self._secrets(), ""
        except Exception as error:  # noqa: BLE001 - the rest of the page needs no secrets
            return {}, explain(error)

    def listed(self, request: Request) -> Response:
        """Returns all sources."""
        secrets, unread = self._known_secrets()
        return self._views.page(
            "sources/list.html",
            title="Sources",
            path=PATH,
            sources=self._sources(),
            searched=shown.searched_text,
            matched=shown.verified_text,
            retention=shown.retention_text,
            secrets=secrets,
            unread=unread,
            wizard=lambda name: f"{FIRST}?{urlencode({'source': name})}",
            set_secret=self._set_secret,
            done=self._views.message(request.query_params.get("done", "")),
        )

    def _set_secret(self, name: str) -> RowAction:
        return RowAction(actions.SET_SECRET.title, actions.SET_SECRET.address(name=name))

    def first(self, request: Request) -> Response:
        """Returns the page that waits for the first event of a source."""
        source, given = (request.query_params.get(name, "") for name in ("source", "since"))
        urls = self._inbox.target.urls
        if source not in urls:
            raise CommandError(unknown("source", source, urls, where="is deployed"))
        since = self._since(given)
        here = f"{FIRST}?{urlencode({'source': source, 'since': iso(since) or ''})}"
        progress = self._progress(source, since, here)
        if request.query_params.get("part") == "progress":
            return self._views.fragment("sources/progress.html", **progress)
        spec = self._inbox.manifest.sources.get(source)
        secrets, unread = self._known_secrets()
        handlers = self._inbox.manifest.handlers.values()
        return self._views.page(
            "sources/first.html",
            title=f"First event of {source}",
            path=PATH,
            url=urls[source],
            spec=spec,
            facts=None if spec is None else facts_of(spec),
            secret=secrets.get(spec.secret) if spec else None,
            unread=unread,
            offered=self._set_secret(spec.secret if spec else source),
            types=sorted({each for h in handlers if h.source == source for each in h.types}),
            **progress,
        )

    def _since(self, given: str) -> datetime:
        # In milliseconds, as the ledger has times.
        now = self._inbox.clock.now()
        if not given:
            return now - timedelta(microseconds=now.microsecond % 1000)
        try:
            found = datetime.fromisoformat(given)
        except ValueError as error:
            raise BadFilter(f"since {given!r}: not a time in ISO 8601") from error
        if found.tzinfo is None:
            raise BadFilter(f"since {given!r}: add the zone, such as Z")
        return found

    def _progress(self, source: str, since: datetime, here: str) -> dict[str, Any]:
        client = self._inbox.reading(shown.SECONDS)
        found = client.sources.first_delivery(source, since)
        diagnosis, undiagnosed = None, ""
        if found.rejected:
            try:
                diagnosis = self._diagnosis(source, found.rejected.id)
            except Exception as error:  # noqa: BLE001 - the rejected delivery is shown without it
                undiagnosed = explain(error)
        return {
            "source": source,
            "since": since,
            "found": found,
            "diagnosis": diagnosis,
            "undiagnosed": undiagnosed,
            "here": here,
            "live": f"{here}&part=progress",
        }

    def _diagnosis(self, source: str, id_: str) -> Diagnosis:
        # Another tab may replace the attribute meanwhile.
        known = self._diagnosed
        if known is None or known[:2] != (source, id_):
            read = partial(diagnosis_of, self._inbox, source, id_)
            known = self._diagnosed = source, id_, Cached(read, seconds=DIAGNOSIS_SECONDS)
        return known[2]()
