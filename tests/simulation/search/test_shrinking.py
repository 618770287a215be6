"""A failing schedule is found, shrunk, narrated, and fails again when repeated."""

import re
from dataclasses import replace
from typing import Any

import pytest

from simulation.engine import acting, programs
from simulation.engine.acting import Behavior
from simulation.engine.choices import Choice
from simulation.engine.failure import Failure
from simulation.engine.narrate import narrate
from simulation.engine.stepping import Ask, Call
from simulation.invariants.observer import Observer, Violation
from simulation.search.exhaustive import explore
from simulation.search.random_walks import follow
from simulation.search.shrinking import fails, shrink
from simulation.worlds.scenario import FAILS_AFTER, Budget
from tests.simulation.tiny import TINY
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event

FLAKY = replace(
    TINY,
    outcomes={"mail": (FAILS_AFTER,)},
    faults=("before", "killed"),
    budget=Budget(faults=1, failures=1, jumps=2),
)


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that posts with another key whenever it is tried again."""
    act = acting.act

    def posts_with_two_keys(ask: Ask, behavior: Behavior, event: Event, context: Context) -> None:
        def asked(call: Call) -> Any:
            if call.port == "sink":
                key, *rest = call.args
                call = call._replace(args=(f"{key} {context.attempt}", *rest))
            return ask(call)

        act(asked, behavior, event, context)

    monkeypatch.setattr(programs, "act", posts_with_two_keys)


def found() -> Failure:
    with pytest.raises(Failure) as failure:
        explore(FLAKY)
    return failure.value


@pytest.mark.usefixtures("forgetful")
def test_a_handler_with_two_keys_is_found_and_nothing_can_be_left_out_of_how() -> None:
    shrunk = shrink(found())
    assert shrunk.violation.guarantee == "G4"
    schedule = [choice for choice in shrunk.schedule if choice != ("converges",)]
    assert fails(FLAKY, schedule) is not None
    for number in range(len(schedule)):
        rest = [*schedule[:number], *schedule[number + 1 :]]
        happened: list[Choice] = []
        broken = fails(FLAKY, rest, happened)
        assert broken is None or len(happened) >= len(shrunk.schedule)


@pytest.mark.usefixtures("forgetful")
def test_irrelevant_choices_are_removed() -> None:
    failure = found()
    noisy = replace(failure.scenario, budget=Budget(faults=3, failures=1, jumps=2, passes=2))
    schedule = (("reconciles",), *failure.schedule)
    violation = fails(noisy, schedule)
    assert violation is not None
    shrunk = shrink(Failure(noisy, schedule, violation, seed=7))
    kinds = [choice[0] for choice in shrunk.schedule]
    assert "reconciles" not in kinds
    assert "killed" not in kinds
    assert len(shrunk.schedule) < len(schedule)
    assert shrunk.seed == 7


@pytest.mark.usefixtures("forgetful")
def test_following_the_schedule_breaks_the_same_guarantee_again() -> None:
    shrunk = shrink(found())
    texts = set()
    for _ in range(2):
        with pytest.raises(Violation) as violation:
            list(follow(shrunk.scenario, shrunk.schedule))
        texts.add(str(violation.value))
    assert texts == {str(shrunk.violation)}


@pytest.mark.usefixtures("forgetful")
def test_it_is_told_line_by_line_with_times_and_what_became_of_the_run() -> None:
    shrunk = shrink(found())
    lines = list(narrate(shrunk.scenario, shrunk.schedule))
    assert lines[0] == "00:00:00.000  'first' is sent: acme e1"
    assert lines[-1] == f"BROKEN {shrunk.violation}"
    timed = [line for line in lines if re.match(r"(day \d+ )?\d\d:\d\d:\d\d\.\d{3}  \S", line)]
    rows = [line for line in lines if re.match(r" {14}run#mail of e1 is status \w+", line)]
    assert len(timed) + len(rows) == len(lines) - 1
    assert any("the handler mail begins" in line for line in timed)
    assert any(
        "default-1 is received: mail of e1, generation 0, receive 1" in line for line in timed
    )
    assert any(re.search("status processing, attempt_count 1, .*lease_id", line) for line in rows)


def test_a_schedule_that_breaks_nothing_fails_nothing_and_is_told_to_its_end() -> None:
    happened: list[Choice] = []
    assert fails(FLAKY, [("sends", "first"), ("arrives", "0")], happened) is None
    assert happened == [("sends", "first"), ("converges",)]
    assert list(narrate(FLAKY, [("sends", "first")])) == [
        "00:00:00.000  'first' is sent: acme e1",
        "00:00:00.000  faults stop",
        "the world has converged",
    ]


def test_only_the_same_guarantee_makes_a_schedule_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving something out may break something else, which is another trace."""

    def posted(self: Observer, run: Any, key: str, **_: Any) -> None:
        raise Violation("G4" if run in self.troubled else "G1", "as told")

    monkeypatch.setattr(Observer, "posted", posted)
    schedule = (("sends", "first"), ("step", "ingest 1", "before"), ("converges",))
    violation = fails(FLAKY, schedule)
    assert violation is not None
    assert fails(FLAKY, schedule[:1]).guarantee == "G1"  # type: ignore[union-attr]
    shrunk = shrink(Failure(FLAKY, schedule, violation))
    assert shrunk.violation.guarantee == "G4"
    assert shrunk.schedule == schedule


def test_a_fault_in_the_scenario_s_own_notes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a check may be, breaking it ends the search with a schedule that breaks it."""

    def received(self: Observer, reference: object) -> None:
        raise Violation("G8", "nothing may be received")

    monkeypatch.setattr(Observer, "received", received)
    shrunk = shrink(found())
    assert shrunk.violation.guarantee == "G8"
    assert [choice[0] for choice in shrunk.schedule] in (["sends", "converges"], ["converges"])
