"""The ledger: paused handlers, circuits, and the runs that wait for a person or are overdue."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final

from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.times import iso, span
from webhook_inbox.destinations.circuit import Phase, breaker_key, circuit_from
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.printable import counted
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.pauses import RESUMPTIONS, controls
from webhook_inbox.ledger.schema import live

# The open runs that are read per partition of the due index.
PER_SHARD: Final = 50
# The reconciler sends a run that waits in the ledger within a minute of its due time.
LATE: Final = timedelta(minutes=5)
OVERDUE: Final = timedelta(minutes=30)
# The subject of a run that is held because of an effect whose result is unknown.
EFFECT: Final = "effect:"
# The statuses of runs that continue by themselves at their due time.
TIMED: Final = frozenset({Status.FAILED, Status.DEFERRED})


def paused(exam: Examination) -> Iterator[CheckResult]:
    """Yields a warning for each paused handler and tenant."""
    found = [each for each in controls(exam.scope.table).values() if each.paused]
    for each in found:
        resume = exam.program.command(f"{each.subject}s resume", argument=each.name)
        yield CheckResult.judged(
            "paused",
            f"{each.name} since {iso(each.at)} by {each.by}: {each.reason}",
            warning=f"resume it with `{resume}`",
        )
    if not found:
        yield CheckResult.judged("paused", "no handler, no tenant")


def circuits(exam: Examination) -> Iterator[CheckResult]:
    """Yields a warning for each circuit that is not closed."""
    names = [name for name, spec in exam.target.manifest.destinations.items() if spec.breaker]
    keys = [breaker_key(name) for name in names]
    rows = {row["pk"]: row for row in exam.scope.table.get_many(keys)} if keys else {}
    listed = exam.program.command("destinations list")
    found = 0
    for name, key in zip(names, keys, strict=True):
        phase = circuit_from(live(rows.get(key.pk), exam.now)).phase(to_ms(exam.now))
        if phase is not Phase.CLOSED:
            found += 1
            yield CheckResult.judged(
                "circuit", f"{name} is {phase}", warning=f"`{listed}` shows what waits for it"
            )
    if not found:
        yield CheckResult.judged("circuits", f"{len(names)} closed")


def waiting(exam: Examination) -> Iterator[CheckResult]:
    """Yields the runs that wait for a person, and the oldest due time.

    Reads at most `PER_SHARD` open runs of each partition of the due index, earliest first.
    """
    ledger = exam.scope.ledger()
    pages = [
        list(islice(ledger.due_runs(bucket=bucket), PER_SHARD + 1))
        for bucket in ledger.due_buckets()
    ]
    least = "at least " if any(len(page) > PER_SHARD for page in pages) else ""
    runs = [run for page in pages for run in page]
    held = [run for run in runs if run.status is Status.HELD]
    yield _held(exam, held, least)
    yield _oldest(exam, runs)


def _held(exam: Examination, held: Sequence[Run], least: str) -> CheckResult:
    doubts = sum(str(run.held.get("subject", "")).startswith(EFFECT) for run in held)
    told = f"{least}{counted(len(held), 'run')} held"
    told += f", {doubts} of them for an effect" if doubts else ""
    untold = sum("unannounced" in run.held for run in held)
    told += f"; people were not told about {untold} of them" if untold else ""
    listed = exam.program.command("hold list")
    return CheckResult.judged(
        "held", told, warning=f"`{listed}` shows what each waits for" if held else ""
    )


def _oldest(exam: Examination, runs: Sequence[Run]) -> CheckResult:
    # The runs of a paused handler or tenant have a due time too, and wait for a person.
    late = [
        (run.next_attempt_at, run.handler, run.event_id)
        for run in runs
        if run.status in TIMED and run.waits_for not in RESUMPTIONS
        if run.next_attempt_at is not None and run.next_attempt_at <= exam.now
    ]
    if not late:
        return CheckResult.judged("oldest due", "no run is overdue")
    at, handler, event_id = min(late)
    age = exam.now - at
    inspect = exam.program.command("inbox inspect", argument=event_id)
    remedy = f"`{inspect}` shows why it waits"
    return CheckResult(
        "oldest due",
        Level.FAILURE if age > OVERDUE else Level.WARNING if age > LATE else Level.OK,
        f"{span(age)} overdue: {handler}",
        remedy=remedy if age > LATE else "",
    )
