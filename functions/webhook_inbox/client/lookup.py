"""Finds one event by its id, with its conflicts and the present place of its waiting runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from webhook_inbox.client.errors import NotFound, Refused
from webhook_inbox.client.names import require_known
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.times import spelled
from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.pauses import RESUMPTIONS, TENANT_RESUMPTION, Subject, control_key
from webhook_inbox.ledger.schema import conflict_key, dedupe_key
from webhook_inbox.queue.line import TURN, Line

# Tables on a terminal shorten ids so.
ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class EventConflict:
    """A delivery that was rejected, since its id is that of an event with different content (G7).

    Attributes:
        stored_fingerprint: that of the event.
        content: where its content is; no operation shows it.
    """

    source: str
    fingerprint: str
    stored_fingerprint: str
    content: str

    def __str__(self) -> str:
        """Returns one sentence."""
        return (
            f"{self.source}: a delivery with this id and different content was rejected as a"
            f" conflict (fingerprint {self.fingerprint}, stored {self.stored_fingerprint});"
            f" {self.content}"
        )


def the_one(
    scope: Scope, event_id: str, source: str | None, *, with_body: bool = False
) -> Overview:
    """Returns the event.

    Raises:
        NotFound: there is no such event.
        Refused: several sources have an event with this id.
        WrongArgument: there is no such source.
    """
    if not event_id:
        listed = scope.program.command("inbox list")
        raise NotFound(f"EVENT_ID is empty: use an id from `{listed}`")
    found = scope.overviews(event_id, source, with_body=with_body)
    if len(found) > 1:
        names = ", ".join(overview.event.source for overview in found)
        raise Refused(f"{event_id} exists in {names}: choose one with --source")
    if not found:
        raise NotFound(_unknown(scope, dedupe_key(event_id), scope.sources(source)))
    return found[0]


def _unknown(scope: Scope, event_id: str, sources: Sequence[str]) -> str:
    if ELLIPSIS in event_id:
        whole = scope.program.command("inbox list", "--json")
        return f"{event_id} is a shortened id: give the complete one, as in `{whole}`"
    conflicts = [str(each) for name in sources for each in conflicts_of(scope, name, event_id)]
    if conflicts:
        return f"the event has expired; {'; '.join(conflicts)}"
    for name in sources:
        require_known(scope.target, source=name, handler=None)
    return (
        f"no event {event_id} of {', '.join(sources) or 'any source'}: check the id at the"
        f" provider, search with `{scope.program.command('inbox list')}`, or ask the provider to"
        " send it again"
        " (verified events are stored for 35 days)"
    )


def conflicts_of(scope: Scope, source: str, event_id: str) -> Iterator[EventConflict]:
    """Yields the conflicting deliveries with this id."""
    for row in scope.table.query(conflict_key(source, event_id, "").pk):
        yield EventConflict(
            source=source,
            fingerprint=row["fingerprint"],
            stored_fingerprint=row["stored_fingerprint"],
            content=_content(scope, row),
        )


def _content(scope: Scope, row: Item) -> str:
    if "unstored" in row:
        return "its content was not stored, since the event was erased before"
    if "erased_at" in row:
        return "its content was erased"
    if "arriving" in row:
        return "its content is not stored: ingest failed, and the provider sends it again"
    target = scope.target
    large = f", its body in the bucket {target.bucket_name}" if "body_ref" in row else ""
    return (
        f"its content is kept for 35 days in the table {target.table_name}, pk {row['pk']}, sk"
        f" {row['sk']}{large}"
    )


def at_present(scope: Scope, overview: Overview, now: datetime) -> Overview:
    """Returns an event whose waiting runs have their present place in line, or their resumption."""
    runs = (_resumed(scope, run) for run in overview.runs)
    return replace(overview, runs=tuple(_in_line(scope, run, now) for run in runs))


def _in_line(scope: Scope, run: Run, now: datetime) -> Run:
    """Returns a run that waits for its turn, with its present place as its error."""
    if run.waits_for != TURN:
        return run
    line = Line(scope.table, run.handler, run.ordering_key, blocks=True).waiting(now)
    if run.event_id not in line:
        return run
    place = f"it is number {line.index(run.event_id) + 1} of {len(line)} in the line"
    return replace(run, last_error=f"{place} of {run.ordering_key}; the first is {line[0]}")


def _resumed(scope: Scope, run: Run) -> Run:
    """Returns a run that waits for a resumption which has happened, with that as its reason."""
    if run.waits_for not in RESUMPTIONS:
        return run
    subject, name = Subject.HANDLER, run.handler
    if run.waits_for == TENANT_RESUMPTION:
        subject, name = Subject.TENANT, run.tenant
    row = scope.table.get(control_key(name, subject))
    if row is None or row["paused"]:
        return run
    why = f"{name} was resumed by {row['by']} at {spelled(from_ms(row['changed_at']))}"
    return replace(run, waits_for="its turn after the pause", last_error=why)
