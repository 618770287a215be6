"""Runs the checks concurrently; one that cannot be read is unknown, and the others go on."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from webhook_inbox.adapters.aws.remedies import explain_failure
from webhook_inbox.client.health.doctor import (
    alarms,
    functions,
    ledger,
    logs,
    queues,
    secrets,
    stack,
)
from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.domain.errors import InboxError

ExaminationCheck = Callable[[Examination], CheckResult | Iterable[CheckResult]]

# In the order in which they are printed: what stops the inbox precedes what waits in it.
CHECKS: Final[dict[str, ExaminationCheck]] = {
    "stack": stack.stack,
    "drift": stack.drift,
    "code": functions.code,
    "clock": stack.clock,
    "secrets": secrets.secrets,
    "destinations": secrets.placeholders,
    "event sources": functions.mappings,
    "schedule": functions.schedule,
    "reconciler": functions.reconciler,
    "logs": logs.errors,
    "queues": queues.work,
    "DLQs": queues.dead,
    "recovery": queues.recovery,
    "paused": ledger.paused,
    "circuits": ledger.circuits,
    "held": ledger.waiting,
    "alarms": alarms.alarms,
    "alarm addresses": alarms.subscriptions,
}
WORKERS: Final = 8


def findings(exam: Examination, *, start_drift: bool = False) -> Iterator[CheckResult]:
    """Yields the results of all checks, in a stable order."""
    checks = CHECKS | ({"drift": stack.start_drift} if start_drift else {})
    with ThreadPoolExecutor(WORKERS) as pool:
        for results in pool.map(partial(_run, exam), checks.keys(), checks.values()):
            yield from results


def _run(exam: Examination, name: str, check: ExaminationCheck) -> list[CheckResult]:
    try:
        found = check(exam)
        return [found] if isinstance(found, CheckResult) else list(found)
    except InboxError as error:
        remedy = explain_failure(error) or ""
        return [CheckResult(name, Level.UNKNOWN, "not checked", remedy=remedy)]
