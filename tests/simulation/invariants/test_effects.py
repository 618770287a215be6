"""The checks of an effect's row and of its sink."""

from typing import Any

import pytest

from simulation.engine.acting import Behavior
from simulation.invariants import effects
from simulation.invariants.observer import Actor, Observer, Violation
from tests.simulation.tiny import RUN

BEHAVIOR = Behavior(journals=True)
WORKER = Actor("processor", "lease-2")
STARTED = {
    "source": RUN[0],
    "event_id": RUN[1],
    "handler": RUN[2],
    "name": "effect",
    "status": "started",
    "idempotency_key": "k",
    "fence": 2,
    "lease_id": "lease-2",
    "started_at": 2000,
    "doubtful_since": 2000,
    "arguments": "",
    "busy_until": 3000,
    "expires_at": 1000,
}
DOUBT = STARTED | {"lease_id": "lease-1", "fence": 1, "started_at": 1000, "doubtful_since": 1000}
FAILED = STARTED | {"status": "failed", "error": "422"}


def check(old: dict[str, Any], new: dict[str, Any], **more: Any) -> None:
    approvals = more.pop("approvals", {})
    executions = more.pop("executions", 0)
    effects.changed(
        Observer(keys={RUN: "k"}, **more),
        WORKER,
        old,
        new,
        now=2000,
        behavior=BEHAVIOR,
        approvals=approvals,
        executions=executions,
    )


def test_a_first_start_may_fail() -> None:
    check(STARTED, FAILED)


def test_no_error_ends_an_older_doubt() -> None:
    with pytest.raises(Violation, match="the doubt about its effect was discarded"):
        check(STARTED | {"doubtful_since": 1000}, FAILED)


def test_what_was_executed_has_not_failed_unless_a_person_decided_since() -> None:
    with pytest.raises(Violation, match="the doubt about its effect was discarded"):
        check(STARTED, FAILED, executions=1)
    check(STARTED, FAILED, executions=1, repeats={RUN: 1})
    with pytest.raises(Violation, match="the doubt about its effect was discarded"):
        check(STARTED, FAILED, executions=2, repeats={RUN: 1})


def test_the_age_of_a_doubt_changes_only_by_a_decision() -> None:
    check(DOUBT, STARTED | {"doubtful_since": 1000})
    with pytest.raises(Violation, match="the start of its effect's doubt was changed"):
        check(DOUBT, STARTED)
    check(DOUBT, STARTED, denied={(RUN, "lease-2")})
    approved = {"effect:effect": {"fingerprint": "doubt:lease-1"}}
    check(DOUBT, STARTED, approvals=approved)
    with pytest.raises(Violation, match="the start of its effect's doubt was changed"):
        check(DOUBT, STARTED | {"doubtful_since": 1000}, approvals=approved)


def test_a_doubt_with_other_arguments_needs_a_decision() -> None:
    old, new = DOUBT | {"arguments": "a"}, STARTED | {"arguments": "b", "doubtful_since": 1000}
    with pytest.raises(Violation, match="was begun with other arguments"):
        check(old, new)
    approved = {"effect:effect": {"fingerprint": "doubt:lease-1:b"}}
    check(old, new | {"doubtful_since": 2000}, approvals=approved)


def test_an_effect_is_executed_once_and_once_more_per_approval() -> None:
    observer = Observer(keys={RUN: "k"})
    effects.executed(observer, "k", 1)
    with pytest.raises(Violation, match="the sink executed k 2 times"):
        effects.executed(observer, "k", 2)
    effects.executed(Observer(keys={RUN: "k"}, repeats={RUN: 1}), "k", 2)
