"""Conditional writes: each clause alone, joined, and what a failure tells."""

import random
from typing import Any

import pytest

from tests.contract.backends import aws_differs
from webhook_inbox.domain.conditions import (
    Absent,
    Condition,
    Either,
    Equals,
    Every,
    Less,
    OneOf,
    Present,
    either,
    every,
)
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key, Table

KEY = Key("event#s#1", "run#h")
MARK = Change(set={"mark": 1})


def row(**attributes: Any) -> Item:
    return {"pk": KEY.pk, "sk": KEY.sk, **attributes}


CASES = [
    # clause, row it is asked of (None: there is none), does it hold
    (Absent("a"), None, True),
    (Absent("a"), row(), True),
    (Absent("a"), row(a=0), False),
    (Absent("a"), row(a=""), False),
    (Absent("pk"), None, True),
    (Absent("pk"), row(), False),
    (Present("a"), None, False),
    (Present("a"), row(), False),
    (Present("a"), row(a=0), True),
    (Present("a"), row(a=b""), True),
    (Equals("a", 1), None, False),
    (Equals("a", 1), row(), False),
    (Equals("a", 1), row(a=1), True),
    (Equals("a", 1), row(a=2), False),
    (Equals("a", 1), row(a="1"), False),
    (Equals("a", ""), row(), False),
    (Equals("a", ""), row(a=""), True),
    (Equals("a", "x"), row(a="X"), False),
    (Equals("status", "done"), row(status="done"), True),
    (Less("a", 5), None, False),
    (Less("a", 5), row(), False),
    (Less("a", 5), row(a=4), True),
    (Less("a", 5), row(a=5), False),
    (Less("a", -5), row(a=-6), True),
    (Less("a", 10), row(a=9), True),
    (OneOf("a", ("x", "y")), None, False),
    (OneOf("a", ("x", "y")), row(), False),
    (OneOf("a", ("x", "y")), row(a="y"), True),
    (OneOf("a", ("x", "y")), row(a="z"), False),
    (OneOf("a", ("x",)), row(a="x"), True),
    (OneOf("a", ("1",)), row(a=1), False),
    (OneOf("a", ("x",)), row(a=["x"]), False),
    (Equals("a", "x"), row(a=b"x"), False),
    (Equals("a", 10**37), row(a=10**37 + 1), False),
    (Less("a", 10**37 + 1), row(a=10**37), True),
    (every(Present("a"), Equals("b", 2)), row(a=1, b=2), True),
    (every(Present("a"), Equals("b", 2)), row(b=2), False),
    (either(Absent("a"), Less("a", 2)), None, True),
    (either(Absent("a"), Less("a", 2)), row(a=1), True),
    (either(Absent("a"), Less("a", 2)), row(a=2), False),
    (every(either(Absent("a"), Equals("a", 1)), Present("b")), row(b=0), True),
    (either(every(Present("a"), Present("b")), Present("c")), row(a=1), False),
    (every(Equals("a", 1)), row(a=1), True),
]


@pytest.mark.parametrize(("condition", "before", "holds"), CASES)
def test_a_write_happens_if_its_condition_holds(
    table: Table, condition: Condition, before: Item | None, holds: bool
) -> None:
    if before is not None:
        table.put(before)

    if holds:
        after: Item | None = table.update(KEY, MARK, when=condition)
        assert after == (before or row()) | {"mark": 1}
    else:
        after = before
        with pytest.raises(ConditionFailed) as failed:
            table.update(KEY, MARK, when=condition)
        assert failed.value.old == before

    assert table.get(KEY) == after


STRANGERS = [
    (Less("a", 5), "4"),
    (Less("a", 5), b"4"),
    (Less("a", 5), True),
    (Less("a", 5), [4]),
    (Equals("a", 1), True),
    (Equals("a", 0), False),
]


@aws_differs(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Condition.html",
    moto="compares as Python does",
)
def test_a_comparison_with_another_type_does_not_hold(table: Table) -> None:
    """AWS: a value of a different type than the one provided does not match."""
    for condition, value in STRANGERS:
        table.put(row(a=value))

        with pytest.raises(ConditionFailed):
            table.update(KEY, MARK, when=condition)


def test_put_overwrites_the_whole_row_if_its_condition_holds(table: Table) -> None:
    table.put(row(a=1, b=2))

    table.put(row(a=3), when=Equals("a", 1))

    assert table.get(KEY) == row(a=3)


def test_put_names_the_row_in_the_way(table: Table) -> None:
    first = row(lease="x", body=b"\x00\xff", runs=["h"], headers={"a": "b"})
    table.put(first)

    with pytest.raises(ConditionFailed) as failed:
        table.put(row(lease="y"), when=Absent("pk"))

    assert failed.value.old == first
    assert table.get(KEY) == first


def test_put_takes_the_place_of_an_expired_row(table: Table) -> None:
    fresh = either(Absent("pk"), Less("expires_at", 1_000))
    table.put(row(expires_at=999), when=fresh)

    table.put(row(expires_at=2_000), when=fresh)

    with pytest.raises(ConditionFailed):
        table.put(row(expires_at=3_000), when=fresh)
    assert table.get(KEY) == row(expires_at=2_000)


def test_a_failed_condition_on_no_row_tells_of_none(table: Table) -> None:
    with pytest.raises(ConditionFailed) as failed:
        table.update(KEY, MARK, when=Present("pk"))

    assert failed.value.old is None
    assert table.get(KEY) is None


def test_the_row_of_a_failed_condition_is_a_copy(table: Table) -> None:
    table.put(row(runs=["a"]))
    with pytest.raises(ConditionFailed) as failed:
        table.put(row(), when=Absent("pk"))

    assert failed.value.old is not None
    failed.value.old["runs"].append("b")

    assert table.get(KEY) == row(runs=["a"])


def test_random_conditions_hold_where_the_core_says_so(table: Table) -> None:
    """The double evaluates what the adapter renders: both must mean the same."""
    randomness = random.Random(20)
    for number in range(120):
        key = Key(KEY.pk, f"run#{number}")
        before = {"pk": key.pk, "sk": key.sk, **_attributes(randomness)}
        condition = _condition(randomness, depth=3)
        table.put(before)
        try:
            table.update(key, MARK, when=condition)
            happened = True
        except ConditionFailed:
            happened = False
        assert happened == condition.holds(before), (condition, before)


def _attributes(randomness: random.Random) -> Item:
    numbers = {name: randomness.randrange(3) for name in "ab" if randomness.random() < 0.7}
    return numbers | {name: randomness.choice("xyz") for name in "cd" if randomness.random() < 0.7}


def _condition(randomness: random.Random, depth: int) -> Condition:
    if depth and randomness.random() < 0.6:
        clauses = tuple(
            _condition(randomness, depth - 1) for _ in range(randomness.randrange(1, 4))
        )
        return Every(clauses) if randomness.random() < 0.5 else Either(clauses)
    number, text = randomness.choice("ab"), randomness.choice("cd")
    leaves: list[Condition] = [
        Absent(number),
        Present(text),
        Equals(number, randomness.randrange(3)),
        Equals(text, randomness.choice("xyz")),
        Less(number, randomness.randrange(4)),
        OneOf(text, tuple(randomness.sample("xyz", 2))),
    ]
    return randomness.choice(leaves)
