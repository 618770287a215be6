"""The sources of an inbox, and how the first delivery of one goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from webhook_inbox import providers
from webhook_inbox.client.times import iso, span
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.provider import Facts
from webhook_inbox.ingest.ignored import IgnoredType, find_ignored
from webhook_inbox.ledger.queries import Ledger, Received
from webhook_inbox.ledger.schema import EVENT_LIFE
from webhookctl.commands import rejected
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.diagnosis.diagnose import Diagnosis
from webhookctl.display.output import counted

# The newest events that are searched for the last one of each source, and how far back.
EVENTS: Final = 5000
BACK: Final = timedelta(days=7)
SECONDS: Final = 0.5
DAY: Final = timedelta(days=1)
# The clock of the functions may be ahead of this machine's.
AHEAD: Final = timedelta(minutes=10)
CURRENT: Final = ("the current value", "the previous value")


@dataclass(frozen=True, slots=True)
class Source:
    """A source.

    Attributes:
        name: its name.
        url: the URL to register at the provider.
        spec: its configuration; None where the deployed one cannot be read.
        facts: the facts about its provider; None for a declared scheme.
        last: its newest event; None if none was found.
        matched: the value of the secret that verified it, "" if it is not known.
        ignored: the types that were acknowledged and not stored since yesterday.
    """

    name: str
    url: str
    spec: SourceSpec | None
    facts: Facts | None
    last: Received | None
    matched: str
    ignored: Sequence[IgnoredType]

    @property
    def retention(self) -> str:
        """How long payloads are kept, in words."""
        if self.spec is not None and self.spec.retention:
            return f"erased after {span(timedelta(seconds=self.spec.retention))}"
        return f"kept with the event, {span(EVENT_LIFE)}"


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources; `searched` says in words how far their last events were searched."""

    every: Sequence[Source]
    searched: str


def sources_of(inbox: ConsoleInbox) -> Sources:
    """Returns the sources with their last events, within a bounded search."""
    manifest = inbox.manifest
    last, searched = _newest(inbox, frozenset(inbox.target.urls))
    return Sources([_source(inbox, manifest, name, last) for name in _names(inbox)], searched)


def _names(inbox: ConsoleInbox) -> list[str]:
    return sorted(inbox.target.urls)


def _newest(inbox: ConsoleInbox, names: frozenset[str]) -> tuple[dict[str, Received], str]:
    now, table = inbox.clock.now(), inbox.bounded(SECONDS)
    found: dict[str, Received] = {}
    read = 0
    arrived = Ledger(table=table).received(now - BACK, now + AHEAD, newest_first=True)
    for event in islice(arrived, EVENTS):
        read += 1
        found.setdefault(event.source, event)
        if names <= found.keys():
            break
    if read == EVENTS or table.cut:
        return found, f"the newest {counted(read, 'event')}, which is what one page reads"
    return found, f"the last {span(BACK)}"


def _source(
    inbox: ConsoleInbox, manifest: Manifest, name: str, newest: Mapping[str, Received]
) -> Source:
    spec, last, now = manifest.sources.get(name), newest.get(name), inbox.clock.now()
    ignored = find_ignored(inbox.bounded(), name, since=now - DAY, until=now, now=now)
    facts = None if spec is None else facts_of(spec)
    url = inbox.target.urls[name]
    return Source(name, url, spec, facts, last, _matched(inbox, last), ignored)


def facts_of(spec: SourceSpec) -> Facts | None:
    """Returns the facts about a source's provider; None where there are none."""
    try:
        return providers.load(spec).facts
    except ConfigurationError:
        return None  # Deployed with a later version, which knows its provider.


def _matched(inbox: ConsoleInbox, last: Received | None) -> str:
    if last is None:
        return ""
    found = inbox.ledger.overview(last.source, last.event_id, now=inbox.clock.now())
    return "" if found is None else CURRENT[min(found.event.verified_with, 1)]


@dataclass(frozen=True, slots=True)
class FirstDelivery:
    """How far the first delivery of a source came since a person began to wait for it.

    Attributes:
        event: the newest event.
        ignored: the type that was acknowledged and not stored, without an event.
        refused: the newest rejected delivery, as `rejected list` shows it, without an event.
    """

    event: Received | None = None
    ignored: IgnoredType | None = None
    refused: Mapping[str, Any] | None = None


def first_delivery(inbox: ConsoleInbox, source: str, since: datetime) -> FirstDelivery:
    """Returns what arrived since a time; the newest event precedes everything else."""
    now, table = inbox.clock.now(), inbox.bounded(SECONDS)
    arrived = Ledger(table=table).received(since, now + AHEAD, newest_first=True)
    event = next((each for each in islice(arrived, EVENTS) if each.source == source), None)
    if event is not None:
        return FirstDelivery(event=event)
    told = inbox.read(rejected.list_rejected, source=source, since=iso(since), limit=1)
    if told.objects:
        return FirstDelivery(refused=told.objects[0])
    types = find_ignored(table, source, since=since, until=now, now=now)
    later = (each for each in types if each.last_at >= since)
    return FirstDelivery(ignored=next(later, None))


def diagnosis_of(inbox: ConsoleInbox, source: str, id_: str) -> Diagnosis:
    """Returns what `verify` says about a rejected delivery with the present secrets."""
    return inbox.examine(rejected.diagnosed, source, id_)
