"""`erase`: erases the payload of an event, or of a tenant's events, and keeps the ledger."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction, EventName
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ledger.erasure import Erasure, ErasureRequest, erase_of_tenant, has_remains
from webhook_inbox.ledger.erasure import erase as erase_payload
from webhook_inbox.ledger.schema import EVENT_LIFE, dedupe_key
from webhookctl.commands.inbox import the_one
from webhookctl.display.output import counted
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Reason, Source, takes_options

WORKERS: Final = 8
HOUR: Final = timedelta(hours=1)
# The copies that an erasure leaves; docs/operate.md says how long each is kept.
NOT_ERASED: Final = (
    "backups of the table (35 days)",
    "rejected deliveries (7 days)",
    "the handlers' logs and what they sent",
    "recorded results of effects and jobs",
    "errors that jobs reported",
    "selections of replays (7 days)",
    "audit reasons",
    "exports",
    "the event's id, type, tenant and ordering keys",
)
# The index by which a tenant's events are found has no event that has expired.
NOT_ERASED_OF_TENANT: Final = (
    "events that have expired (S3 keeps bodies for 49 days)",
    *NOT_ERASED,
)

EventId = Annotated[
    str | None, typer.Argument(metavar="EVENT_ID", help="The event's id; or use --tenant.")
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="All stored events of this tenant instead."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Erase; without it, only show what.")]


@takes_options
def erase(
    call: Invocation,
    *,
    event_id: EventId = None,
    tenant: Tenant = None,
    source: Source = None,
    yes: Yes = False,
    reason: Reason,
    by: By = None,
) -> None:
    """Erase an event's body, headers and error texts for good; a dry run without --yes.

    Its identity, runs and effects stay, so a later delivery is still a duplicate. Runs that have
    not begun end as skipped. The answer says what is left, and when to repeat the command. Backups
    keep the payload for up to 35 days. An erasure of a tenant that was interrupted continues when
    the command is repeated.
    """
    if (event_id is None) == (tenant is None):
        raise typer.BadParameter("use either EVENT_ID or --tenant NAME")
    if tenant is not None:
        return _erase_tenant(call, token(tenant), source, yes=yes, reason=reason, by=by)
    return _erase_event(call, event_id or "", source, yes=yes, reason=reason, by=by)


def _erase_event(
    call: Invocation, event_id: str, source: str | None, *, yes: bool, reason: str, by: str | None
) -> None:
    event, runs = _find(call, event_id, source)
    named, about = f"{event.event_id} of {event.source}", event._asdict()
    if not yes:
        if call.as_json:
            call.output.json({**about, "erased_at": None})
        else:
            texts = f"the error texts of {counted(runs, 'run')}"
            call.output.line(f"{named}: would erase body, headers, and {texts}")
        call.output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")
        return
    who, now = call.actor(by), call.clock.now()
    request = ErasureRequest(event.source, event.event_id, who, reason, now)
    erasure = erase_payload(call.target.table, call.target.blobs, SystemRandomness(), request)
    if erasure is None:
        raise CommandError(f"{named} has expired meanwhile: nothing to erase")
    if call.as_json:
        call.output.json({**about, **_as_json(erasure)})
        return
    call.output.line(f"{named}: erased")
    for note in _notes(erasure):
        call.output.note(note)


def _find(call: Invocation, event_id: str, source: str | None) -> tuple[EventName, int]:
    """Returns the event and the number of its runs; 0 of one that has expired.

    Objects and error texts outlive the event's row by up to 14 days.

    Raises CommandError unless exactly one event matches.
    """
    if event_id and not call.overviews(event_id, source, with_body=False):
        stored = dedupe_key(event_id)
        names = [EventName(each, stored) for each in ([source] if source else call.target.urls)]
        left = [name for name in names if has_remains(call.target.table, call.target.blobs, name)]
        if len(left) == 1:
            return left[0], 0
    event = the_one(call, event_id, source, body=False).event
    return EventName(event.source, event.event_id), len(event.runs)


def _as_json(erasure: Erasure) -> dict[str, object]:
    until = erasure.arriving_until
    return {
        "erased_at": iso(erasure.erased_at),
        "unfinished": list(erasure.unfinished),
        "arriving_until": iso(until) if until else None,
        "batch": erasure.batch or None,
        "not_erased": list(NOT_ERASED),
    }


def _notes(erasure: Erasure) -> Iterator[str]:
    """Yields what is left, and the next action."""
    if erasure.unfinished:
        yield (
            f"In progress or held: {', '.join(erasure.unfinished)}. Erase it again when they have"
            " ended, which erases their error texts as well."
        )
    if erasure.arriving_until:
        yield (
            "A delivery that was received before the erasure may still store its payload. Erase it"
            f" again after {iso(erasure.arriving_until)}."
        )
    if erasure.batch:
        yield (
            f"It is an item of {erasure.batch}, whose body still has its text. Erase that event,"
            " with its other items, as well."
        )
    yield f"Not erased: {', '.join(NOT_ERASED)}."


def _erase_tenant(
    call: Invocation, tenant: str, source: str | None, *, yes: bool, reason: str, by: str | None
) -> None:
    """Erases the payloads of a tenant's events; only counts them without `yes`."""
    found = TenantErasure(call, tenant, source, yes=yes)
    if yes:
        with call.audited(
            AuditedAction.ERASE, by, reason=reason, tenant=tenant, source=source
        ) as outcomes:
            found.read()
            outcomes.update(found.outcomes)
    else:
        found.read()
    if not found.sources:
        raise CommandError(f"no stored event has the tenant {tenant}: nothing to erase")
    found.show()


class TenantErasure:
    """Reads the events of the retention hour by hour, and erases those of a tenant."""

    def __init__(self, call: Invocation, tenant: str, source: str | None, *, yes: bool) -> None:
        self._call = call
        self._tenant = tenant
        self._source = source
        self._yes = yes
        self._now = call.clock.now()
        self.sources = Counter[str]()
        self.outcomes = Counter[str]()
        self.batches = set[str]()

    def read(self) -> None:
        """Counts or erases the events; the index may miss one of the last seconds.

        Raises:
            Unavailable: storage failed; a repeated call continues.
        """
        days = EVENT_LIFE.days + 1
        with (
            ThreadPoolExecutor(WORKERS) as pool,
            self._call.output.progress("Day", days) as advance,
        ):
            for day in range(days):
                begin = self._now - timedelta(days=days - day)
                hours = (begin + hour * HOUR for hour in range(1, 25))
                for sources, outcomes in pool.map(self._hour, hours):
                    self.sources.update(sources)
                    self.outcomes.update(outcomes)
                advance(1)

    def _hour(self, begin: datetime) -> tuple[Counter[str], Counter[str]]:
        """Returns the events of an hour by source and by outcome; see `_outcome`."""
        target = self._call.target
        sources, outcomes = Counter[str](), Counter[str]()
        for event in target.ledger().received(begin, begin + HOUR - MILLISECOND):
            if event.tenant == self._tenant and self._source in {None, event.source}:
                sources[event.source] += 1
                if self._yes:
                    erased = erase_of_tenant(target.table, target.blobs, event, now=self._now)
                    outcomes[_outcome(erased)] += 1
                    if erased and erased.batch:
                        self.batches.add(f"{event.source} {erased.batch}")
        return sources, outcomes

    def show(self) -> None:
        """Shows the counts."""
        output, done, total = self._call.output, self.outcomes, self.sources.total()
        if self._call.as_json:
            found = {"tenant": self._tenant, "events": total, "by_source": dict(self.sources)}
            counts = {name: done[name] for name in ("erased", "unfinished", "arriving")}
            left = {"batches": sorted(self.batches), "not_erased": list(NOT_ERASED_OF_TENANT)}
            output.json({**found, **counts, **left})
        else:
            sources = ", ".join(f"{name} {count}" for name, count in sorted(self.sources.items()))
            output.line(f"{self._tenant}: {counted(total, 'event')} ({sources})")
        if not self._yes:
            output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")
        elif not self._call.as_json:
            before = f"; {done['unchanged']} before, or expired" if done["unchanged"] else ""
            erased = done["erased"] + done["unfinished"] + done["arriving"]
            output.line(f"erased: {erased}{before}")
        if done["unfinished"]:
            output.note(
                f"Events with runs in progress or held: {done['unfinished']}. Erase again when"
                " these have ended, which erases their error texts as well."
            )
        if done["arriving"]:
            output.note(
                f"Events with deliveries in progress: {done['arriving']}. Erase again in 5 minutes."
            )
        if self.batches:
            output.note(f"Items of batches that still have their text: {len(self.batches)} batches")
            for batch in sorted(self.batches):
                output.note(f"  {batch}")
        if self._yes and not self._call.as_json:
            output.note(f"Not erased: {', '.join(NOT_ERASED_OF_TENANT)}.")


def _outcome(found: Erasure | None) -> str:
    if found is None:
        return "unchanged"
    if found.unfinished:
        return "unfinished"
    return "erased" if found.arriving_until is None else "arriving"
