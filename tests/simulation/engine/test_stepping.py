"""Programs are suspended at each call, resumed, run again and discarded."""

import gc
import sys
from itertools import count
from typing import Any

import pytest

from simulation.engine import stepping
from simulation.engine.stepping import Answer, Ask, Call, Crashed, Nondeterminism, Stepping
from webhook_inbox.domain.errors import ConditionFailed, Unavailable


def adds(ask: Ask) -> int:
    """Calls twice; its second call depends on the first answer."""
    first = ask(Call("port", "first"))
    second = ask(Call("port", "second", (first,)))
    return int(first + second)


@pytest.fixture
def steps() -> Stepping:
    return Stepping()


# -- stopped and resumed


def test_a_program_stops_at_each_call_and_ends_with_its_result(steps: Stepping) -> None:
    start = steps.begin("adds", adds)
    assert start.call == Call("port", "first")
    middle = steps.advance(start, Answer(3))
    assert middle.call == Call("port", "second", (3,))
    end = steps.advance(middle, Answer(4))
    assert (end.call, end.result) == (None, 7)


def test_one_place_is_left_in_as_many_ways_as_there_are_answers(steps: Stepping) -> None:
    start = steps.begin("adds", adds)
    ends = [
        steps.advance(steps.advance(start, Answer(first)), Answer(second)).result
        for first in (1, 2)
        for second in (10, 20)
    ]
    assert ends == [11, 21, 12, 22]


def test_an_error_is_raised_in_the_middle_of_the_program_with_its_arguments(
    steps: Stepping,
) -> None:
    def copes(ask: Ask) -> Any:
        try:
            return ask(Call("table", "put"))
        except ConditionFailed as failed:
            return failed.old

    node = steps.advance(steps.begin("copes", copes), Answer(({"sk": "event"},), ConditionFailed))
    assert node.result == {"sk": "event"}


def test_a_program_that_raises_ends_as_crashed(steps: Stepping) -> None:
    node = steps.advance(steps.begin("adds", adds), Answer(("sqs", "Send", "no"), Unavailable))
    assert node.call is None
    assert isinstance(node.result, Crashed)
    assert isinstance(node.result.error, Unavailable)


def test_a_program_that_raises_before_its_first_call_ends_as_crashed(steps: Stepping) -> None:
    def fails(ask: Ask) -> None:
        raise ZeroDivisionError

    assert isinstance(steps.begin("fails", fails).result.error, ZeroDivisionError)


# -- remembered


def test_the_same_answers_lead_to_the_same_place_without_running_anything(
    steps: Stepping,
) -> None:
    begun = []

    def counted(ask: Ask) -> int:
        begun.append(1)
        return adds(ask)

    behaviors = [
        steps.advance(steps.advance(steps.begin("counted", counted), Answer(1)), Answer(2))
        for _ in range(3)
    ]
    assert behaviors[0] is behaviors[1] is behaviors[2]
    assert len(begun) == 1


def test_programs_of_different_keys_share_nothing(steps: Stepping) -> None:
    one, other = steps.begin("one", adds), steps.begin("other", adds)
    assert one is not other
    assert one.number != other.number
    assert steps.advance(one, Answer(1)) is not steps.advance(other, Answer(1))


# -- run again


def walk_all(steps: Stepping) -> list[tuple[Call | None, Any]]:
    start = steps.begin("adds", adds)
    middles = [steps.advance(start, Answer(first)) for first in range(4)]
    ends = [steps.advance(middle, Answer(second)) for middle in middles for second in range(4)]
    return [(node.call, node.result) for node in (start, *middles, *ends)]


def test_stacks_that_were_not_kept_are_run_again_and_make_the_same_calls(
    steps: Stepping, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = walk_all(steps)
    monkeypatch.setattr(stepping, "MAX_STOPPED", 0)
    assert walk_all(Stepping()) == kept
    assert [result for _, result in kept[-4:]] == [3, 4, 5, 6]


def test_no_more_stacks_are_kept_than_may_be(
    steps: Stepping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "MAX_STOPPED", 2)
    nodes = [steps.begin(number, adds) for number in range(5)]
    assert list(steps._stopped) == [node.number for node in nodes[-2:]]


def test_a_place_held_by_a_caller_outlives_that_all_is_forgotten(steps: Stepping) -> None:
    middle = steps.advance(steps.begin("adds", adds), Answer(3))
    steps.forget()
    assert steps.advance(middle, Answer(4)).result == 7
    assert steps.begin("adds", adds).number > middle.number


def test_forgetting_is_due_when_too_many_places_are_remembered(
    steps: Stepping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "MAX_NODES", 5)
    start = steps.begin("adds", adds)
    for first in range(4):
        steps.advance(start, Answer(first))
    assert not steps.crowded
    steps.advance(start, Answer(4))
    assert steps.crowded
    steps.forget()
    assert not steps.crowded


def roams(numbers: "count[int]") -> stepping.Program:
    """Goes round the ports: its first call is another whenever it is run."""

    def run(ask: Ask) -> None:
        ask(Call("port", f"call {next(numbers)}"))

    return run


def hurries(numbers: "count[int]") -> stepping.Program:
    """Makes its call the first time only."""

    def run(ask: Ask) -> int:
        return int(ask(Call("port", "call"))) if next(numbers) == 0 else 7

    return run


@pytest.mark.parametrize("program", [roams, hurries])
def test_a_program_that_goes_round_the_ports_is_found_out(steps: Stepping, program: Any) -> None:
    start = steps.begin("roams", program(count()))
    steps.forget()
    with pytest.raises(Nondeterminism, match="instead of Call"):
        steps.advance(start, Answer(1))


# -- thrown away


def stubborn(log: list[str]) -> stepping.Program:
    """Tries to go on, whatever ends it."""

    def run(ask: Ask) -> None:
        try:
            ask(Call("port", "wait"))
        except BaseException:  # noqa: BLE001 - that is what it is about
            log.append("ended")
            ask(Call("port", "effect"))
            log.append("had its effect")
        finally:
            log.append("cleans up")
            ask(Call("port", "effect"))
            log.append("had its effect")

    return run


def test_an_abandoned_stack_gets_no_call_through(steps: Stepping) -> None:
    log: list[str] = []
    node = steps.begin("stubborn", stubborn(log))
    steps.forget()
    assert log == ["ended", "cleans up"]
    assert node.call == Call("port", "wait")
    assert node.next == {}


def test_abandoned_programs_end_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    log: list[str] = []

    def leave() -> None:
        left = Stepping()
        left.begin("stubborn", stubborn(log))
        left.advance(left.begin("adds", adds), Answer(1))

    leave()
    gc.collect()
    assert complaints == []
    assert "had its effect" not in log
