"""Rejected deliveries: the list, one with its diagnosis, verifying again, and releasing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.diagnosis.diagnose import Diagnosis
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.rejected import Rejection, RejectionFilter, ReleaseOutcome, ReleaseResult
from webhook_inbox.client.times import iso, moment
from webhook_inbox.domain.errors import InboxError, Reason
from webhookctl.checkout import Checkout
from webhookctl.console import actions
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import PARTLY, ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.sources import diagnosis_of
from webhookctl.console.tables import RowAction
from webhookctl.console.views import Views, event_path
from webhookctl.display.event import body_object
from webhookctl.display.rejected import full_minutes_note
from webhookctl.errors import CommandError, explain

PATH: Final = "/rejected"
LISTED: Final = 100
# The deliveries that are verified again at once, in half a second; a release takes as many.
MOST: Final = 500
TIMES: Final = ("since", "until")
FILTERS: Final = ("source", "rejected_for", *TIMES)
# The reasons that another secret may remove.
UNSIGNED: Final = {Reason.INVALID_SIGNATURE, Reason.NO_SECRET}
FINE: Final = {each for each in ReleaseOutcome if each.is_fine}


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of rejected deliveries."""
    its = RejectedPages(inbox, views)
    return [
        Route(PATH, pages.view(its.listed), methods=["GET"]),
        Route(f"{PATH}/delivery", pages.view(its.delivery), methods=["GET"]),
        Route(f"{PATH}/verify", pages.view(its.verified), methods=["GET"]),
        Route(f"{PATH}/release-all", pages.action(its.released, its.verify_page), methods=["POST"]),
    ]


class RejectedPages:
    """The pages of rejected deliveries."""

    def __init__(self, inbox: ConsoleInbox, views: Views) -> None:
        self._inbox = inbox
        self._views = views

    def listed(self, request: Request) -> Response:
        """Returns the list."""
        query, client = request.query_params, self._inbox.reading()
        wanted = self._filter_of(query)
        found = client.rejected.list(wanted, limit=LISTED)
        rows = list(found)
        full = client.rejected.full_minutes(wanted, since=rows[-1].received_at if rows else None)
        notes = [full_minutes_note(each) for each in full]
        return self._views.page(
            "rejected/list.html",
            title="Rejected deliveries",
            path=PATH,
            chosen={name: query.get(name, "") for name in FILTERS},
            sources=sorted(self._inbox.target.urls),
            reasons=list(Reason),
            rows=rows,
            full=found.full,
            notes=[*notes, PARTLY] if client.is_cut else notes,
            partly=client.is_cut,
            verify=f"{PATH}/verify?{_query(query)}",
            address=_address,
            release=_release,
            secrets=self._secrets(rows),
            done=self._views.message(query.get("done", "")),
        )

    def delivery(self, request: Request) -> Response:
        """Returns one delivery with its diagnosis, or on request its headers and body."""
        source, id_ = (request.query_params.get(name, "") for name in ("source", "id"))
        part = request.query_params.get("part", "")
        rejected = self._inbox.reading().rejected
        found = rejected.get(id_, source=source)
        if part:
            return self._body(found, rejected.body(id_, source=source))
        diagnosis, undiagnosed = self._diagnosis(source, id_)
        return self._views.page(
            "rejected/delivery.html",
            title=f"Rejected delivery {id_}",
            path=PATH,
            found=found,
            diagnosis=diagnosis,
            undiagnosed=undiagnosed,
            offered=[_release(found), *self._secrets([found])],
            body_path=f"{_address(source, id_)}&part=body",
            released_path=event_path(source, found.released_event_id or ""),
        )

    def _diagnosis(self, source: str, id_: str) -> tuple[Diagnosis | None, str]:
        """Returns the diagnosis, or why there is none: the delivery is shown without it."""
        try:
            return diagnosis_of(self._inbox, source, id_), ""
        except (CommandError, InboxError) as error:
            return None, explain(error)

    def _body(self, found: Rejection, body: bytes) -> Response:
        text = body_object(body).get("body")
        if text is None or len(text) > BODY_LIMIT:
            is_text = text is not None
            return self._views.fragment("rejected/body.html", found=found, is_text=is_text)
        return self._views.fragment("event/body.html", tree=tree_of(body), headers=found.headers)

    def verified(self, request: Request) -> Response:
        """Returns what a release of the filter would do."""
        return self.verify_page(request.query_params, 200, "")

    def verify_page(self, typed: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page of a dry run; it changes nothing."""
        client = self._inbox.reading()
        manifest = Checkout.required().source_manifest(client.target.stage)
        results = list(
            client.rejected.verify(self._filter_of(typed), limit=MOST, manifest=manifest)
        )
        counts = Counter(each.result for each in results)
        failing = [each for each in results if each.reason]
        return self._views.page(
            "rejected/verify.html",
            title="Verify again",
            path=PATH,
            status=status,
            error=error,
            reason=typed.get("reason", ""),
            chosen={name: typed.get(name, "") for name in FILTERS},
            counts=counts,
            results=results,
            notes=[PARTLY] if client.is_cut else [],
            valid=counts[ReleaseOutcome.VALID],
            most=MOST,
            fine=FINE,
            secrets=self._secrets(failing),
            more=_more(typed, results),
            back=f"{PATH}?{_query(typed)}",
        )

    def _secrets(self, found: Sequence[Rejection | ReleaseResult]) -> list[RowAction]:
        """Returns the forms of the secrets that may be wrong, one for each source."""
        specs = self._inbox.manifest.sources
        names = sorted({each.source for each in found if each.reason in UNSIGNED})
        return [
            RowAction(
                f"Set the secret of {name}", actions.SET_SECRET.address(name=specs[name].secret)
            )
            for name in names
            if name in specs
        ]

    def released(self, _: Request, form: Form) -> str:
        """Releases the valid deliveries of a filter."""
        values = {"reason": actions.given_reason(form), "wanted": self._filter_of(form)}
        text = self._inbox.changing(partial(actions.release, limit=MOST), values)
        return self._views.after(f"{PATH}?{_query(form)}", text)

    def _filter_of(self, query: Mapping[str, str]) -> RejectionFilter:
        """Returns the filter; raises BadFilter for an unknown reason and for a wrong time."""
        given = {name: query.get(name, "").strip() for name in FILTERS}
        reason, now = given["rejected_for"], self._inbox.clock.now()
        if reason and reason not in set(Reason):
            raise BadFilter(f"reason {reason!r}: choose one of {', '.join(Reason)}")
        try:
            low, high = (moment(given[each], now) if given[each] else None for each in TIMES)
        except WrongArgument as error:
            raise BadFilter(str(error)) from error
        if low is not None and low > (high or now):
            raise BadFilter(f"from {given['since']} is not before {given['until'] or 'now'}")
        return RejectionFilter((), (Reason(reason),) if reason else (), low, high, given["source"])


def _release(found: Rejection) -> RowAction:
    address = actions.RELEASE.address(source=found.source, id=found.id)
    done = "" if found.released_at is None else "it is released already"
    return RowAction(actions.RELEASE.title, address, done)


def _query(query: Mapping[str, str]) -> str:
    return urlencode({name: query[name] for name in FILTERS if query.get(name)})


def _more(typed: Mapping[str, str], found: Sequence[ReleaseResult]) -> str:
    """Returns the page of the next deliveries, which one source has in the order of their times."""
    if len(found) < MOST or not typed.get("source"):
        return ""
    given = {name: typed[name] for name in FILTERS if typed.get(name)}
    return f"{PATH}/verify?{urlencode({**given, 'since': iso(found[-1].received_at)})}"


def _address(source: str, id_: str) -> str:
    return f"{PATH}/delivery?{urlencode({'source': source, 'id': id_})}"
