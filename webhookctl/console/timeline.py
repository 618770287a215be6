"""Places what happened to an event on one axis, to scale, for an SVG of fixed size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.client.effects import RunEffect
from webhook_inbox.client.event_state import EventRun, EventState
from webhook_inbox.client.history import Happening
from webhook_inbox.domain.model import Attempt
from webhookctl.display.history import action_line

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


def timeline_of(state: EventState, now: datetime) -> Timeline:
    """Returns the timeline of an event."""
    received_at = state.event.received_at
    receipt = Span("", "receipt", "received", "accepted", received_at, received_at)
    lanes = {"": [receipt, *_history("", state.history[""])]}
    lanes |= {run.handler: list(_spans(run, now)) for run in state.runs}
    every = [span for lane in lanes.values() for span in lane]
    start = min([received_at, *(span.start for span in every)])
    end = max([start + LEAST, *(span.end for span in every)])
    placed = {
        name: [_placed(span, start, end) for span in sorted(lane, key=lambda s: s.start)]
        for name, lane in lanes.items()
    }
    return Timeline(start, end, [(name, lane) for name, lane in placed.items() if lane])


def _spans(run: EventRun, now: datetime) -> Iterator[Span]:
    yield from _history(run.handler, run.history)
    yield from filter(None, map(_effect, run.effects))
    for wait in run.waits:
        label, ended = f"wait {wait.name}: {wait.status}", max(wait.since, wait.ended_at or now)
        yield Span(run.handler, "wait", label, "wait", wait.since, ended)
    if run.hold is not None:
        label, began = f"waits for approval: {run.hold.subject}", run.hold.held_at or now
        yield Span(run.handler, "held", label, "held", began, now)


def _history(handler: str, history: Sequence[Happening]) -> Iterator[Span]:
    for each in history:
        if isinstance(each, Attempt):
            label = f"attempt {each.number}: {each.outcome}"
            times = (each.started_at, each.ended_at)
            yield Span(handler, "attempt", label, each.outcome, *times, each.error)
        else:
            yield Span(handler, "action", action_line(each), "action", each.at, each.at)


def _effect(effect: RunEffect) -> Span | None:
    if effect.started_at is None:
        return None
    ended = effect.committed_at or effect.failed_at or effect.started_at
    return Span(
        lane=effect.handler,
        kind="effect",
        label=f"effect {effect.name}: {effect.state}",
        outcome=str(effect.state).replace(" ", "-"),
        start=effect.started_at,
        end=max(effect.started_at, ended),
        detail=effect.error or "",
    )


def _placed(span: Span, start: datetime, end: datetime) -> Placed:
    scale = (WIDTH - NARROWEST) / (end - start).total_seconds()
    x = (span.start - start).total_seconds() * scale
    width = max((span.end - span.start).total_seconds() * scale, NARROWEST)
    return Placed(span, round(x, 2), round(min(width, WIDTH - x), 2))
