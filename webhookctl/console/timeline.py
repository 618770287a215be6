"""Places what happened to an event on one axis, to scale, for an SVG of fixed size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.client.holds import HeldRun
from webhook_inbox.domain.model import Attempt, Overview, Status
from webhook_inbox.domain.timestamps import from_ms
from webhookctl.display.event import names_of
from webhookctl.display.history import action_line, history_of
from webhookctl.display.runs import waits_of
from webhookctl.explain.effects import effects_of

# The axis, in the units of the SVG's viewBox.
WIDTH: Final = 1000
# A bar of less would not be visible.
NARROWEST: Final = 3
LEAST: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Span:
    """Something that happened; with equal times it is a point.

    Attributes:
        lane: its row: a handler, or "" for the event itself.
        kind: receipt, attempt, effect, wait, held or action.
        label: what it was, with its outcome.
        outcome: the class of its colour.
        detail: the error or the reason, "" without one.
    """

    lane: str
    kind: str
    label: str
    outcome: str
    start: datetime
    end: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A span with its place on the axis."""

    span: Span
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All spans in the order of their start, from the receipt to the last one's end."""

    start: datetime
    end: datetime
    lanes: Sequence[tuple[str, Sequence[Placed]]]

    @property
    def length(self) -> timedelta:
        """The time that the axis covers."""
        return self.end - self.start

    @property
    def spans(self) -> list[Span]:
        """All spans by time: the same facts as a list."""
        found = [placed.span for _, lane in self.lanes for placed in lane]
        return sorted(found, key=lambda span: (span.start, span.kind))


def timeline_of(overview: Overview, now: datetime) -> Timeline:
    """Returns the timeline of an event."""
    names = ["", *names_of(overview)]
    spans = {name: sorted(_spans(overview, name, now), key=lambda s: s.start) for name in names}
    start = overview.event.received_at
    every = [span for lane in spans.values() for span in lane]
    start = min([start, *(span.start for span in every)])
    end = max([start + LEAST, *(span.end for span in every)])
    lanes = [(name, [_placed(span, start, end) for span in spans[name]]) for name in names]
    return Timeline(start, end, [(name, lane) for name, lane in lanes if lane])


def _spans(overview: Overview, handler: str, now: datetime) -> Iterator[Span]:
    event = overview.event
    if not handler:
        yield Span("", "receipt", "received", "accepted", event.received_at, event.received_at)
    for each in history_of(overview, handler):
        if isinstance(each, Attempt):
            label = f"attempt {each.number}: {each.outcome}"
            times = (each.started_at, each.ended_at)
            yield Span(handler, "attempt", label, each.outcome, *times, each.error)
        else:
            yield Span(handler, "action", action_line(each), "action", each.at, each.at)
    if handler:
        yield from _effects(overview, handler, now)
        yield from _waits(overview, handler, now)
        yield from _held(overview, handler, now)


def _effects(overview: Overview, handler: str, now: datetime) -> Iterator[Span]:
    for effect in effects_of(overview, handler, now=now):
        row = effect.row
        if "started_at" not in row:
            continue
        began = from_ms(row["started_at"])
        ended = row.get("committed_at", row.get("failed_at"))
        end = began if ended is None else max(began, from_ms(ended))
        state = str(effect.standing).replace(" ", "-")
        error = str(row.get("error", ""))
        label = f"effect {effect.name}: {effect.standing}"
        yield Span(handler, "effect", label, state, began, end, error)


def _waits(overview: Overview, handler: str, now: datetime) -> Iterator[Span]:
    for row in waits_of(overview, handler):
        ended = from_ms(row["ended_at"]) if "ended_at" in row else now
        label, began = f"wait {row['name']}: {row['status']}", from_ms(row["since"])
        yield Span(handler, "wait", label, "wait", began, max(began, ended))


def _held(overview: Overview, handler: str, now: datetime) -> Iterator[Span]:
    for run in overview.runs:
        if run.handler != handler or run.status is not Status.HELD:
            continue
        hold = HeldRun.of(run)
        began = hold.held_at or now
        yield Span(handler, "held", f"waits for approval: {hold.subject}", "held", began, now)


def _placed(span: Span, start: datetime, end: datetime) -> Placed:
    scale = (WIDTH - NARROWEST) / (end - start).total_seconds()
    x = (span.start - start).total_seconds() * scale
    width = max((span.end - span.start).total_seconds() * scale, NARROWEST)
    return Placed(span, round(x, 2), round(min(width, WIDTH - x), 2))
