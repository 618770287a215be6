"""Shows the comparison of a provider's delivery log with the ledger."""

from typing import Any, Final

from webhook_inbox.client.sources import ASKED, MissingEvent, Reconciliation
from webhook_inbox.domain.printable import counted
from webhookctl.display.json_object import json_object
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import Invocation

COLUMNS: Final = (
    Column("AT"),
    Column("EVENT_ID", Fit.ID),
    Column("TYPE", Fit.NAME),
    Column("ANSWERED"),
)


@json_object.register
def _(found: Reconciliation) -> dict[str, Any]:
    return {
        "source": found.hook.source,
        "since": json_object(found.since),
        "until": json_object(found.until),
        "looked_at": found.looked_at,
        "unwanted": found.unwanted,
        "missing": json_object(found.missing),
    }


@json_object.register
def _(each: MissingEvent) -> dict[str, Any]:
    logged = each.logged
    return {
        "event_id": logged.event_id,
        "type": logged.type,
        "at": json_object(logged.at),
        "answered": logged.answered,
        "redelivery": each.redelivery,
    }


def print_reconciliation(call: Invocation, found: Reconciliation) -> None:
    """Prints the missing events, and what to do next."""
    if call.as_json:
        call.output.results([found])
        return
    if found.missing:
        asked = any(each.redelivery for each in found.missing)
        columns = (*COLUMNS, Column("REDELIVERY", Fit.NOTE)) if asked else COLUMNS
        call.output.table(columns, [_cells(each) for each in found.missing], now=call.clock.now())
    call.output.note(_summary(call, found))


def _cells(each: MissingEvent) -> list[object]:
    logged = each.logged
    cells: list[object] = [logged.at, logged.event_id, logged.type, logged.answered or "-"]
    return [*cells, each.redelivery] if each.redelivery else cells


def _summary(call: Invocation, found: Reconciliation) -> str:
    events = counted(found.looked_at, "event")
    if not found.missing:
        return f"{events} in the log, none missing."
    head = f"{len(found.missing)} of {events} in the log missing."
    if not any(each.redelivery for each in found.missing):
        return f"{head} Add --yes to have the provider send them again."
    asked = sum(each.redelivery == ASKED for each in found.missing)
    again = call.program.command("inbox list", "--source", found.hook.source)
    return f"{head} Requested {asked}; check `{again}` in a minute."
