"""Values become DynamoDB's notation and come back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.adapters.aws.dynamodb import (
    from_wire,
    row_from_wire,
    row_to_wire,
    to_wire,
)

text = st.text(st.characters(exclude_categories=["Cs"]))
leaves = text | st.booleans() | st.integers(-(10**38) + 1, 10**38 - 1) | st.binary()
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=10
)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("", {"S": ""}),
        ("x", {"S": "x"}),
        (0, {"N": "0"}),
        (-7, {"N": "-7"}),
        (True, {"BOOL": True}),
        (False, {"BOOL": False}),
        (b"\x00", {"B": b"\x00"}),
        ([], {"L": []}),
        ([1, "a"], {"L": [{"N": "1"}, {"S": "a"}]}),
        ({}, {"M": {}}),
        ({"k": [b""]}, {"M": {"k": {"L": [{"B": b""}]}}}),
    ],
)
def test_each_type_has_its_notation(value: Any, wire: Any) -> None:
    assert to_wire(value) == wire
    assert from_wire(wire) == value
    assert type(from_wire(wire)) is type(value)


@given(st.dictionaries(names, values))
def test_any_row_comes_back(row: dict[str, Any]) -> None:
    assert row_from_wire(row_to_wire(row)) == row


@pytest.mark.parametrize("value", [None, 1.0, (1,), {1}, object(), bytearray(b"x")])
def test_other_types_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        to_wire(value)
    with pytest.raises(TypeError):
        row_to_wire({"deep": [{"er": value}]})


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", {"\udc80": 1}, {"": 1}, 10**38])
def test_values_that_dynamodb_would_refuse_are_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - UnicodeEncodeError is one
        to_wire(value)


@pytest.mark.parametrize("kind", ["NULL", "SS", "NS", "BS"])
def test_a_type_that_no_inbox_writes_is_named(kind: str) -> None:
    with pytest.raises(TypeError, match=kind):
        from_wire({kind: True})
