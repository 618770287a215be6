"""Conditions and changes become DynamoDB's expressions."""

import pytest

from webhook_inbox.adapters.aws.dynamodb import Expressions
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
from webhook_inbox.domain.ports import Change


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Absent("a"), "attribute_not_exists(#0)"),
        (Present("a"), "attribute_exists(#0)"),
        (Equals("a", 1), "#0 = :0"),
        (Less("a", 1), "#0 < :0"),
        (OneOf("a", ("x", "y", "z")), "#0 IN (:0, :1, :2)"),
        (every(Present("a"), Absent("b")), "attribute_exists(#0) AND attribute_not_exists(#1)"),
        (either(Equals("a", 1), Less("b", 2)), "#0 = :0 OR #1 < :1"),
        (
            either(every(Equals("a", 1), Less("b", 2)), Present("c")),
            "(#0 = :0 AND #1 < :1) OR attribute_exists(#2)",
        ),
        (
            every(either(Present("a"), Present("b")), either(Absent("a"), Absent("b"))),
            "(attribute_exists(#0) OR attribute_exists(#1))"
            " AND (attribute_not_exists(#0) OR attribute_not_exists(#1))",
        ),
    ],
)
def test_a_condition_is_rendered(condition: Condition, text: str) -> None:
    assert Expressions().condition(condition) == text


@pytest.mark.parametrize(
    "condition",
    [
        every(Present("a")),
        either(every(Present("a"))),
        every(either(every(Present("a")))),
    ],
)
def test_what_joins_one_clause_gets_no_parentheses(condition: Condition) -> None:
    """DynamoDB answers "The expression has redundant parentheses"."""
    assert Expressions().condition(condition) == "attribute_exists(#0)"


def test_one_pair_of_parentheses_is_enough() -> None:
    inner = either(Present("a"), Present("b"))

    text = Expressions().condition(every(every(inner), Present("c")))

    assert text == "(attribute_exists(#0) OR attribute_exists(#1)) AND attribute_exists(#2)"


@pytest.mark.parametrize("condition", [Every(()), Either(()), every(Present("a"), Either(()))])
def test_a_condition_of_no_clauses_is_refused(condition: Condition) -> None:
    with pytest.raises(ValueError, match="joins no clauses"):
        Expressions().condition(condition)


def test_names_are_shared_and_values_are_not() -> None:
    expressions = Expressions()

    expressions.condition(either(Equals("status", "a"), Equals("status", "a"), Less("at", 3)))

    assert expressions.parameters == {
        "ExpressionAttributeNames": {"#0": "status", "#1": "at"},
        "ExpressionAttributeValues": {":0": {"S": "a"}, ":1": {"S": "a"}, ":2": {"N": "3"}},
    }


def test_a_change_is_rendered_in_full() -> None:
    expressions = Expressions()
    change = Change(
        set={"a": 1, "b": "x"},
        default={"c": b"y"},
        add={"d": 2, "e": -1},
        remove=("f", "g"),
    )

    assert expressions.update(change) == (
        "SET #0 = :0, #1 = :1, #2 = if_not_exists(#2, :2) ADD #3 :3, #4 :4 REMOVE #5, #6"
    )
    assert expressions.parameters["ExpressionAttributeValues"] == {
        ":0": {"N": "1"},
        ":1": {"S": "x"},
        ":2": {"B": b"y"},
        ":3": {"N": "2"},
        ":4": {"N": "-1"},
    }


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(), ""),
        (Change(set={"a": 1}), "SET #0 = :0"),
        (Change(default={"a": 1}), "SET #0 = if_not_exists(#0, :0)"),
        (Change(add={"a": 1}), "ADD #0 :0"),
        (Change(remove=("a",)), "REMOVE #0"),
    ],
)
def test_a_change_holds_only_the_clauses_it_needs(change: Change, text: str) -> None:
    assert Expressions().update(change) == text


def test_a_change_and_its_condition_share_placeholders() -> None:
    expressions = Expressions()

    update = expressions.update(Change(set={"status": "done"}))
    condition = expressions.condition(Equals("status", "processing"))

    assert (update, condition) == ("SET #0 = :0", "#0 = :1")


def test_no_placeholders_are_no_parameters() -> None:
    expressions = Expressions()
    assert expressions.parameters == {}

    expressions.condition(Absent("pk"))

    assert expressions.parameters == {"ExpressionAttributeNames": {"#0": "pk"}}
