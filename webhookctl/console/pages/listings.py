"""The pages that are one or two tables: each shows what a command lists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.destinations import DestinationStatus
from webhook_inbox.client.handlers import HandlerState
from webhook_inbox.client.tenants import TenantState
from webhook_inbox.client.times import iso
from webhook_inbox.domain.printable import counted
from webhookctl.console import actions
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.tables import Cell, Row, RowAction, event, text
from webhookctl.console.views import Views
from webhookctl.display.pauses import pause_text


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a page."""

    columns: Sequence[str]
    rows: Sequence[Row]
    empty: str
    title: str = ""

    @property
    def acts(self) -> bool:
        """True if any row has an action."""
        return any(row.actions for row in self.rows)


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of the listings."""

    def page(
        request: Request,
        title: str,
        sections: Sequence[Section],
        buttons: Sequence[RowAction] = (),
    ) -> Response:
        return views.page(
            "table.html",
            title=title,
            path=request.url.path,
            sections=sections,
            buttons=buttons,
            done=views.message(request.query_params.get("done", "")),
        )

    def handlers(request: Request) -> Response:
        client = inbox.reading()
        columns = ("Handler", "Source", "Types", "Order", "Waiting", "Paused")
        rows = [_handler(each) for each in client.handlers.list()]
        paused = [_tenant(each) for each in client.tenants.list()]
        tenants = Section(
            ("Tenant", "Waiting", "Paused"), paused, "No tenant is paused.", "Paused tenants"
        )
        pause = RowAction(actions.PAUSE_TENANT.title, actions.PAUSE_TENANT.path)
        return page(request, "Handlers", [Section(columns, rows, "No handlers."), tenants], [pause])

    def destinations(request: Request) -> Response:
        columns = ("Destination", "Address", "Circuit", "Rate", "Waiting", "Oldest", "Next probe")
        rows = [_destination(each) for each in inbox.reading().destinations.list()]
        empty = "The deployed inbox has no destinations."
        return page(request, "Destinations", [Section(columns, rows, empty)])

    return [
        Route("/handlers", pages.view(handlers)),
        Route("/destinations", pages.view(destinations)),
    ]


def _handler(each: HandlerState) -> Row:
    cells = (each.handler, each.source, ", ".join(each.types or ()), each.order)
    paused = "it is paused already" if each.paused else ""
    running = "" if each.paused else "it is not paused"
    pause, resume = actions.PAUSE_HANDLER, actions.RESUME_HANDLER
    return Row(
        (*map(text, cells), Cell(each.waiting), text(pause_text(each))),
        [
            RowAction(pause.title, pause.address(name=each.handler), paused),
            RowAction(resume.title, resume.address(name=each.handler), running),
        ],
    )


def _tenant(each: TenantState) -> Row:
    action = actions.RESUME_TENANT
    return Row(
        (text(each.tenant), Cell(each.waiting), text(pause_text(each))),
        [RowAction(action.title, action.address(name=each.tenant))],
    )


def _destination(each: DestinationStatus) -> Row:
    name, hand, oldest = each.destination, each.opened_by_hand, each.oldest
    opened = "it is open by hand already" if hand else ""
    closed = "" if hand or each.circuit not in {"closed", None} else "the circuit is not open"
    least = "" if each.waiting_is_complete else "at least "
    return Row(
        (
            text(name),
            text(each.base_url),
            text(", ".join(_circuit(each))),
            text(_rate(each)),
            text(f"{least}{each.waiting}"),
            event(oldest.source, oldest.event_id) if oldest else text(None),
            Cell(each.next_probe, "time"),
        ),
        [
            RowAction(actions.OPEN.title, actions.OPEN.address(name=name), opened),
            RowAction(actions.CLOSE.title, actions.CLOSE.address(name=name), closed),
        ],
    )


def _circuit(each: DestinationStatus) -> Iterator[str]:
    hand = each.opened_by_hand
    yield each.circuit or "none"
    if hand:
        yield f"by hand since {iso(hand.at)} by {hand.by}: {hand.reason}"
    if each.failures:
        yield counted(each.failures, "failure")
    if each.paused_until:
        yield f"paused by its answer until {iso(each.paused_until)}"


def _rate(each: DestinationStatus) -> str:
    queue = f", queue until {iso(each.queue_until)}" if each.queue_until else ""
    return f"{each.rate or '-'}{queue}"
