"""Rejected deliveries: the list, one with its diagnosis, verifying again, and releasing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from botocore.exceptions import BotoCoreError, ClientError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.errors import InboxError, Reason
from webhookctl.commands import rejected
from webhookctl.console import actions
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.tables import RowAction
from webhookctl.console.views import Views, event_path
from webhookctl.diagnosis.diagnose import Diagnosis
from webhookctl.errors import CommandError, explain

PATH: Final = "/rejected"
LISTED: Final = 100
# The deliveries that are verified again at once, in half a second; a release takes as many.
MOST: Final = 500
FILTERS: Final = ("source", "rejected_for", "since", "until")
# The reasons that another secret may remove.
UNSIGNED: Final = {str(each) for each in (Reason.INVALID_SIGNATURE, Reason.NO_SECRET)}
FINE: Final = {str(each) for each in rejected.FINE}


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
        query = request.query_params
        told = self._inbox.read(rejected.list_rejected, **_wanted(query), limit=LISTED)
        return self._views.page(
            "rejected/list.html",
            title="Rejected deliveries",
            path=PATH,
            chosen={name: query.get(name, "") for name in FILTERS},
            sources=sorted(self._inbox.target.urls),
            reasons=list(Reason),
            rows=told.objects,
            full=len(told.objects) == LISTED,
            notes=told.notes,
            partly=told.partly,
            verify=f"{PATH}/verify?{_query(query)}",
            address=_address,
            release=_release,
            secrets=self._secrets(told.objects),
            done=self._views.message(query.get("done", "")),
        )

    def delivery(self, request: Request) -> Response:
        """Returns one delivery with its diagnosis, or on request its headers and body."""
        source, id_ = (request.query_params.get(name, "") for name in ("source", "id"))
        part = request.query_params.get("part", "")
        told = self._inbox.read(rejected.show, id_=id_, source=source, body=bool(part))
        [found] = told.objects
        if part:
            return self._body(found)
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
            released_path=event_path(source, found["released_event_id"] or ""),
        )

    def _diagnosis(self, source: str, id_: str) -> tuple[Diagnosis | None, str]:
        """Returns the diagnosis, or why there is none: the delivery is shown without it."""
        try:
            return self._inbox.examine(rejected.diagnosed, source, id_), ""
        except (CommandError, InboxError, ClientError, BotoCoreError) as error:
            return None, explain(error)

    def _body(self, found: Mapping[str, Any]) -> Response:
        if "body" not in found or len(found["body"]) > BODY_LIMIT:
            return self._views.fragment("rejected/body.html", found=found, tree=None)
        tree = tree_of(found["body"].encode())
        return self._views.fragment("event/body.html", tree=tree, headers=found["headers"])

    def verified(self, request: Request) -> Response:
        """Returns what a release of the filter would do."""
        return self.verify_page(request.query_params, 200, "")

    def verify_page(self, typed: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page of a dry run; it changes nothing."""
        told = self._inbox.read(rejected.release, **_wanted(typed), limit=MOST)
        counts = Counter(each["result"] for each in told.objects)
        failing = [each for each in told.objects if each["reason"]]
        return self._views.page(
            "rejected/verify.html",
            title="Verify again",
            path=PATH,
            status=status,
            error=error,
            reason=typed.get("reason", ""),
            chosen={name: typed.get(name, "") for name in FILTERS},
            counts=counts,
            results=told.objects,
            notes=told.notes,
            valid=counts["valid"],
            most=MOST,
            fine=FINE,
            secrets=self._secrets(failing),
            more=_more(typed, told.objects),
            back=f"{PATH}?{_query(typed)}",
        )

    def _secrets(self, found: Sequence[Mapping[str, Any]]) -> list[RowAction]:
        """Returns the forms of the secrets that may be wrong, one for each source."""
        specs = self._inbox.manifest.sources
        names = sorted({each["source"] for each in found if each["reason"] in UNSIGNED})
        return [
            RowAction(
                f"Set the secret of {name}", actions.SET_SECRET.address(name=specs[name].secret)
            )
            for name in names
            if name in specs
        ]

    def released(self, _: Request, form: Form) -> str:
        """Releases the valid deliveries of a filter."""
        values = {**_wanted(form), "reason": actions.given_reason(form)}
        told = self._inbox.act(rejected.release, **values, limit=MOST, yes=True)
        return self._views.after(f"{PATH}?{_query(form)}", actions.released(told))


def _release(found: Mapping[str, Any]) -> RowAction:
    address = actions.RELEASE.address(source=found["source"], id=found["id"])
    done = "" if found["released_at"] is None else "it is released already"
    return RowAction(actions.RELEASE.title, address, done)


def _wanted(query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of the commands; raises BadFilter for an unknown reason."""
    given: dict[str, Any] = {name: query[name].strip() for name in FILTERS if query.get(name)}
    if reason := given.pop("rejected_for", ""):
        if reason not in set(Reason):
            raise BadFilter(f"reason {reason!r}: choose one of {', '.join(Reason)}")
        given["rejected_for"] = [Reason(reason)]
    return given


def _query(query: Mapping[str, str]) -> str:
    return urlencode({name: query[name] for name in FILTERS if query.get(name)})


def _more(typed: Mapping[str, str], found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the page of the next deliveries, which one source has in the order of their times."""
    if len(found) < MOST or not typed.get("source"):
        return ""
    given = {name: typed[name] for name in FILTERS if typed.get(name)}
    return f"{PATH}/verify?{urlencode({**given, 'since': found[-1]['received_at']})}"


def _address(source: str, id_: str) -> str:
    return f"{PATH}/delivery?{urlencode({'source': source, 'id': id_})}"
