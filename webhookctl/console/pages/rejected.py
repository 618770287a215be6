"""Rejected deliveries: the list, one with its diagnosis, verifying again, and releasing."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.errors import Reason
from webhookctl.checkout import known_source
from webhookctl.commands import rejected
from webhookctl.console import actions
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.tables import RowAction
from webhookctl.console.views import Views, event_path

PATH: Final = "/rejected"
LISTED: Final = 100
# A release of a filter takes so many deliveries at most.
MOST: Final = 1000
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
            verify=f"{PATH}/verify?{_query(query)}",
            address=_address,
            offered=self._offered,
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
        return self._views.page(
            "rejected/delivery.html",
            title=f"Rejected delivery {id_}",
            path=PATH,
            found=found,
            diagnosis=self._inbox.examine(rejected.diagnosed, source, id_),
            offered=self._offered(found),
            body_path=f"{_address(source, id_)}&part=body",
            released_path=event_path(source, found["released_event_id"] or ""),
        )

    def _body(self, found: Mapping[str, Any]) -> Response:
        if "body" not in found or len(found["body"]) > BODY_LIMIT:
            return self._views.fragment("rejected/body.html", found=found, tree=None)
        tree = tree_of(found["body"].encode())
        return self._views.fragment("event/body.html", tree=tree, headers=found["headers"])

    def _offered(self, found: Mapping[str, Any]) -> list[RowAction]:
        named = {"source": found["source"], "id": found["id"]}
        spec = known_source(self._inbox.target, found["source"])
        kept = found["released_at"] is None
        done = "" if kept else "it is released already"
        secret = actions.SET_SECRET
        none = "" if spec else "the deployed configuration cannot be read"
        offered = [RowAction(actions.RELEASE.title, actions.RELEASE.address(**named), done)]
        if found["reason"] in UNSIGNED:
            name = spec.secret if spec else ""
            offered.append(RowAction(secret.title, secret.address(name=name), none))
        return offered

    def verified(self, request: Request) -> Response:
        """Returns what a release of the filter would do."""
        return self.verify_page(request.query_params, 200, "")

    def verify_page(self, typed: Mapping[str, str], status: int, error: str) -> Response:
        """Returns the page of a dry run; it changes nothing."""
        told = self._inbox.read(rejected.release, **_wanted(typed), limit=MOST)
        counts = Counter(each["result"] for each in told.objects)
        failing = sorted({each["source"] for each in told.objects if each["reason"]})
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
            valid=counts["valid"],
            most=MOST,
            fine=FINE,
            secrets=[
                RowAction(f"Set the secret of {name}", self._secret(name)) for name in failing
            ],
            back=f"{PATH}?{_query(typed)}",
        )

    def _secret(self, source: str) -> str:
        spec = known_source(self._inbox.target, source)
        return actions.SET_SECRET.address(name=spec.secret if spec else source)

    def released(self, _: Request, form: Form) -> str:
        """Releases the valid deliveries of a filter."""
        values = {**_wanted(form), "reason": actions.given_reason(form)}
        told = self._inbox.act(rejected.release, **values, limit=MOST, yes=True)
        return self._views.after(f"{PATH}?{_query(form)}", actions.released(told))


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


def _address(source: str, id_: str) -> str:
    return f"{PATH}/delivery?{urlencode({'source': source, 'id': id_})}"
