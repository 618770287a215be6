"""The result of a replay or of a dry run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self

from webhook_inbox.domain.error_text import normalised
from webhook_inbox.domain.model import SETTLED, Run, Status, is_batch
from webhook_inbox.domain.replay_cost import estimate

SAMPLE: Final = 10
ERRORS_SHOWN: Final = 10
# Texts that are counted each; the rest is counted together.
ERRORS_COUNTED: Final = 30
ERROR_LENGTH: Final = 160
OTHER_ERRORS: Final = "(other errors)"
NO_ERROR: Final = "(no error)"
_RETRIED: Final = frozenset({Status.FAILED, Status.DEFERRED, Status.PENDING})


class ReplayOutcome(StrEnum):
    """The outcome of a replay for one run."""

    REPLAYED = "replayed"  # reset and sent
    WOULD_REPLAY = "would_replay"  # the same, in a dry run
    ADDED = "added"  # created and sent: its event was stored without it
    WOULD_ADD = "would_add"  # the same, in a dry run
    UNSENT = "unsent"  # reset; the queue failed, and the reconciler sends it
    ALREADY_REPLAYED = "already_replayed"  # replayed or changed since the search or selection began
    FINISHED = "finished"  # done or skipped, and not forced
    IN_USE = "in_use"  # a worker holds its lease
    HELD = "held"  # its event is held (identical body, uncertain type): a person decides by `hold`
    EXPIRED = "expired"  # its event is gone
    MISSING = "missing"  # no event of this id


WOULD_SEND: Final = (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_ADD)
SENT: Final = (ReplayOutcome.REPLAYED, ReplayOutcome.ADDED, ReplayOutcome.UNSENT, *WOULD_SEND)


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run as a report shows it."""

    source: str
    event_id: str
    handler: str
    status: str
    last_error: str

    @classmethod
    def of(cls, run: Run, **more: str) -> Self:
        """Returns what a report shows of a run."""
        return cls(run.source, run.event_id, run.handler, str(run.status), run.last_error, **more)


@dataclass(frozen=True, slots=True)
class SampledRun(ReportedRun):
    """A run of a report's sample, with what the replay does with it."""

    outcome: str


@dataclass(slots=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        matched: the runs found, but for those that were replayed already.
        cursor: what the next request continues from; None at the end.
        failed: what ended the page early; the runs that are counted keep their outcomes, and the
            cursor continues with the rest.
        handlers: the runs to send, by handler.
        errors: the same runs by normalised error.
        retrying: how many of them have a retry pending, or have not begun.
        batches: how many of them split a batch.
        unsearched: events whose body is too large for `where`, or gone.
        selection: the id of the selection that was made or replayed; "" for none.
        position: the cursor behind the page's last run, also at the end.
        outcomes: the latest runs that this replay of a selection has sent, by status.
        failures: up to ten of them that failed again.
    """

    dry_run: bool
    matched: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    sample: list[SampledRun] = field(default_factory=list)
    cursor: str | None = None
    dlq_removed: int = 0
    failed: str = ""
    handlers: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    retrying: int = 0
    repeated: int = 0
    batches: int = 0
    unsearched: int = 0
    selection: str = ""
    position: str = ""
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: list[ReportedRun] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """The runs that were sent, or would be."""
        return sum(self.counts.get(outcome, 0) for outcome in SENT)

    def add(self, outcome: ReplayOutcome, run: Run | None = None) -> None:
        """Counts one run."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if run is None:
            return
        if len(self.sample) < SAMPLE:
            self.sample.append(SampledRun.of(run, outcome=str(outcome)))
        if outcome in SENT:
            self._count(run)

    def _count(self, run: Run) -> None:
        self.handlers[run.handler] = self.handlers.get(run.handler, 0) + 1
        text = normalised(run.last_error)[:ERROR_LENGTH] or NO_ERROR
        if text not in self.errors and len(self.errors) >= ERRORS_COUNTED:
            text = OTHER_ERRORS
        self.errors[text] = self.errors.get(text, 0) + 1
        self.retrying += run.status in _RETRIED
        self.repeated += run.status in SETTLED
        self.batches += is_batch(run.event_id, run.type)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Reads a report from JSON data; fields of other versions are ignored."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        sample = [SampledRun(**each) for each in data.get("sample", ())]
        failures = [ReportedRun(**each) for each in data.get("failures", ())]
        return cls(**known | {"sample": sample, "failures": failures})

    def to_data(self) -> dict[str, Any]:
        """Returns the report as JSON data, with the ten most frequent errors."""
        return {
            **asdict(self),
            "errors": most(self.errors),
            "estimate": asdict(estimate(self.sent)),
        }


def most(errors: Mapping[str, int]) -> dict[str, int]:
    """Returns the most frequent errors, and the number of the others."""
    named = {text: count for text, count in errors.items() if text != OTHER_ERRORS}
    ordered = sorted(named.items(), key=lambda each: (-each[1], each[0]))
    rest = sum(errors.values()) - sum(count for _, count in ordered[:ERRORS_SHOWN])
    return dict(ordered[:ERRORS_SHOWN]) | ({OTHER_ERRORS: rest} if rest else {})
