"""The pages that are one or two tables: each shows what a command lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhookctl.commands import audit, destinations, handlers, hold, inbox, rejected, rotation
from webhookctl.commands import tenants as tenant_commands
from webhookctl.console import actions
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.tables import Cell, Row, RowAction, event, text, time
from webhookctl.console.views import Views

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a page."""

    columns: Sequence[str]
    rows: Sequence[Row]
    empty: str
    title: str = ""

    @property
    def acts(self) -> bool:
        """Whether any row has an action."""
        return any(row.actions for row in self.rows)


@dataclass(frozen=True, slots=True)
class Listing:
    """A page's content."""

    sections: Sequence[Section]
    notes: Sequence[str] = ()
    intro: str = ""
    buttons: Sequence[RowAction] = field(default_factory=tuple)


def _approvals(shown: ConsoleInbox) -> Listing:
    told = shown.read(hold.list_holds, limit=200)
    columns = ("Since", "Event", "Handler", "Subject", "Reason", "Shows")
    return Listing([Section(columns, [_hold(each) for each in told.objects], "No run waits.")])


def _hold(each: Object) -> Row:
    names = {name: each[name] for name in ("event_id", "source", "handler", "hold")}
    doubt = each["subject"].startswith("effect:")
    offered = (actions.APPROVE, *((actions.HAPPENED,) if doubt else ()), actions.DENY)
    return Row(
        (
            time(each["held_at"]),
            event(each["source"], each["event_id"]),
            text(each["handler"]),
            text(each["subject"]),
            text(each["reason"]),
            text(each["shows"]),
        ),
        [RowAction(one.title, one.address(**names)) for one in offered],
    )


def _handlers(shown: ConsoleInbox) -> Listing:
    told = shown.read(handlers.list_handlers)
    paused = shown.read(tenant_commands.list_tenants)
    return Listing(
        [
            Section(
                ("Handler", "Source", "Types", "Order", "Waiting", "Paused"),
                [_handler(each) for each in told.objects],
                "No handlers.",
            ),
            Section(
                ("Tenant", "Waiting", "Paused"),
                [_tenant(each) for each in paused.objects],
                "No tenant is paused.",
                "Paused tenants",
            ),
        ],
        buttons=[RowAction(actions.PAUSE_TENANT.title, actions.PAUSE_TENANT.path)],
    )


def _handler(each: Object) -> Row:
    action = actions.RESUME_HANDLER if each["paused"] else actions.PAUSE_HANDLER
    cells = (each["handler"], each["source"], ", ".join(each["types"] or ()), each["order"])
    return Row(
        (*map(text, cells), Cell(each["waiting"]), text(_pause(each))),
        [RowAction(action.title, action.address(name=each["handler"]))],
    )


def _tenant(each: Object) -> Row:
    action = actions.RESUME_TENANT
    return Row(
        (text(each["tenant"]), Cell(each["waiting"]), text(_pause(each))),
        [RowAction(action.title, action.address(name=each["tenant"]))],
    )


def _pause(each: Object) -> str:
    if not each["paused"]:
        return ""
    return f"since {each['paused_at']} by {each['paused_by']}: {each['reason']}"


def _destinations(shown: ConsoleInbox) -> Listing:
    told = shown.read(destinations.list_destinations)
    columns = ("Destination", "Address", "Circuit", "Failures", "Rate", "Waiting", "Next probe")
    rows = [_destination(each) for each in told.objects]
    return Listing([Section(columns, rows, "The deployed inbox has no destinations.")])


def _destination(each: Object) -> Row:
    hand = each["opened_by_hand"]
    circuit = each["circuit"] or "none"
    if hand:
        circuit += f" by hand since {hand['at']} by {hand['by']}: {hand['reason']}"
    action = actions.OPEN if circuit in {"closed", "none"} else actions.CLOSE
    least = "" if each["waiting_is_complete"] else "at least "
    return Row(
        (
            text(each["destination"]),
            text(each["base_url"]),
            text(circuit),
            Cell(each["failures"]),
            text(each["rate"]),
            text(f"{least}{each['waiting']}"),
            time(each["next_probe"]),
        ),
        [RowAction(action.title, action.address(name=each["destination"]))],
    )


def _rejected(shown: ConsoleInbox) -> Listing:
    told = shown.read(rejected.list_rejected, limit=100)
    columns = ("Received", "Source", "Id", "Reason", "Bytes", "State")
    return Listing([Section(columns, [_one(e) for e in told.objects], "None.")], told.notes)


def _one(each: Object) -> Row:
    names = ("source", "id", "reason")
    shown = (time(each["received_at"]), *(text(each[name]) for name in names))
    release = actions.RELEASE.address(source=each["source"], id=each["id"])
    cells = (*shown, text(each.get("bytes")), text(each.get("state")))
    return Row(cells, [RowAction(actions.RELEASE.title, release)])


def _ignored(each: Object) -> Row:
    kind = text(each["type"] or "(others)")
    return Row((text(each["source"]), kind, Cell(each["count"]), time(each["last_at"])))


def _sources(shown: ConsoleInbox) -> Listing:
    secrets = shown.read(rotation.status)
    ignored = shown.read(inbox.list_ignored)
    urls = [Row((text(n), text(u))) for n, u in sorted(shown.target.urls.items())]
    types = [_ignored(each) for each in ignored.objects]
    names = sorted({name for each in secrets.objects for name in each})
    rows = [Row([text(each.get(name)) for name in names]) for each in secrets.objects]
    return Listing(
        [
            Section(("Source", "URL to register"), urls, "No sources.", "Addresses"),
            Section([n.replace("_", " ") for n in names], rows, "No secrets.", "Secrets"),
            Section(("Source", "Type", "Count", "Last"), types, "None today.", "Ignored types"),
        ]
    )


def _audit(shown: ConsoleInbox) -> Listing:
    told = shown.read(audit.audit, since="7d", limit=200)
    columns = ("Time", "Action", "By", "Reason", "Request", "Result")
    return Listing([Section(columns, [_entry(e) for e in told.objects], "None in 7 days.")])


def _entry(each: Object) -> Row:
    counts = each["counts"]
    result = "not finished" if counts is None else ", ".join(f"{n} {k}" for k, n in counts.items())
    by = f"{each['by']}{' for ' + each['on_behalf_of'] if each['on_behalf_of'] else ''}"
    unverified = " (unverified)" if each["proof"] == "claimed" else ""
    asked = ", ".join(f"{k} {v}" for k, v in each["request"].items() if v)
    cells = (each["action"], by + unverified, each["reason"], asked, result.replace("_", " "))
    return Row((time(each["at"]), *map(text, cells)))


LISTINGS: dict[str, tuple[str, Callable[[ConsoleInbox], Listing]]] = {
    "/approvals": ("Approvals", _approvals),
    "/handlers": ("Handlers", _handlers),
    "/destinations": ("Destinations", _destinations),
    "/rejected": ("Rejected deliveries", _rejected),
    "/sources": ("Sources", _sources),
    "/audit": ("Audit", _audit),
}


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of the listings."""
    return [
        _route(path, title, read, inbox=inbox, views=views, pages=pages)
        for path, (title, read) in LISTINGS.items()
    ]


def _route(
    path: str,
    title: str,
    read: Callable[[ConsoleInbox], Listing],
    *,
    inbox: ConsoleInbox,
    views: Views,
    pages: Pages,
) -> Route:
    def shown(request: Request) -> Response:
        found = read(inbox)
        return views.page(
            "table.html",
            title=title,
            path=path,
            sections=found.sections,
            notes=found.notes,
            intro=found.intro,
            buttons=found.buttons,
            done=views.message(request.query_params.get("done", "")),
        )

    return Route(path, pages.view(shown))
