"""Rows: what they hold, how they change, and what is refused."""

from typing import Any

import pytest

from tests.contract.backends import aws_differs
from webhook_inbox.domain.ports import Change, Item, Key, Table

KEY = Key("event#s#1", "event")


def row(**attributes: Any) -> Item:
    return {"pk": KEY.pk, "sk": KEY.sk, **attributes}


VALUES = [
    "",
    "plain",
    "naïve ☃ 🦄 \u0000 \x1f",
    0,
    -1,
    1_790_000_000_000,
    10**37 + 1,
    True,
    False,
    b"",
    b"\x00\x01\xfe\xff",
    [],
    ["a", 1, b"\xff", True, [], {}],
    {},
    {"deep": {"er": [{"est": ""}]}, "n": 1},
    {"x-odd header name!": "v"},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was_put(table: Table, value: Any) -> None:
    table.put(row(value=value))

    found = table.get(KEY)

    assert found == row(value=value)
    assert type(found["value"]) is type(value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was_set(table: Table, value: Any) -> None:
    after = table.update(KEY, Change(set={"value": value}, default={"other": value}))

    assert after == table.get(KEY) == row(value=value, other=value)


@pytest.mark.parametrize("value", [None, 1.5, object(), {1}, (1,), ["x", None], {"x": 1.0}])
def test_a_value_without_a_type_in_dynamodb_is_refused(table: Table, value: Any) -> None:
    with pytest.raises(TypeError):
        table.put(row(value=value))
    with pytest.raises(TypeError):
        table.update(KEY, Change(set={"value": value}))

    assert table.get(KEY) is None


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud800": 1}, 10**38, -(10**38)])
def test_half_a_character_and_a_number_too_large_are_refused(table: Table, value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - UnicodeEncodeError is one
        table.put(row(value=value))

    assert table.get(KEY) is None


@pytest.mark.parametrize("name", ["status", "a.b", "x-y", "ünï", "#0", ":0", "has space"])
def test_any_attribute_name_works(table: Table, name: str) -> None:
    table.update(KEY, Change(set={name: "v"}))

    assert table.get(KEY) == row(**{name: "v"})


def test_a_name_is_one_attribute_even_with_a_dot_in_it(table: Table) -> None:
    table.put(row(a={"b": 1}))

    assert table.update(KEY, Change(set={"a.b": 2})) == row(a={"b": 1}, **{"a.b": 2})


def test_an_absent_row_is_none(table: Table) -> None:
    assert table.get(KEY) is None
    assert table.get(KEY, consistent=False) is None


def test_a_consistent_read_sees_the_last_write(table: Table) -> None:
    for number in range(5):
        table.put(row(n=number))
        assert table.get(KEY, consistent=True) == row(n=number)


def test_an_update_sets_defaults_adds_and_removes_at_once(table: Table) -> None:
    table.put(row(kept=1, gone="x", counted=40, given="old"))

    after = table.update(
        KEY,
        Change(
            set={"new": "n"},
            default={"given": "default", "first": "default"},
            add={"counted": 2, "begun": 1},
            remove=("gone", "never_there"),
        ),
    )

    assert after == row(kept=1, counted=42, begun=1, given="old", first="default", new="n")
    assert table.get(KEY) == after


def test_an_update_creates_the_row(table: Table) -> None:
    assert table.update(KEY, Change(add={"n": 1})) == row(n=1)


@aws_differs(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateItem.html",
    moto="fails with an AttributeError of its own",
)
def test_an_empty_update_creates_the_row_and_changes_nothing(table: Table) -> None:
    """AWS: an update expression is not required, and a row that is not there is added."""
    assert table.update(KEY, Change()) == row()
    assert table.update(KEY, Change()) == row()


def test_a_negative_amount_is_taken_away(table: Table) -> None:
    table.put(row(n=5))

    assert table.update(KEY, Change(add={"n": -7})) == row(n=-2)


def test_a_deleted_row_is_gone_and_deleting_nothing_is_no_error(table: Table) -> None:
    table.put(row())
    other = Key(KEY.pk, "run#h")
    table.put({"pk": other.pk, "sk": other.sk})

    table.delete(KEY)
    table.delete(KEY)

    assert table.get(KEY) is None
    assert table.get(other) is not None


def test_written_and_read_rows_are_copies(table: Table) -> None:
    given = row(runs=["a"], headers={"k": "v"})
    table.put(given)
    given["runs"].append("b")
    found = table.get(KEY)
    assert found is not None
    found["headers"]["k"] = "changed"

    assert table.get(KEY) == row(runs=["a"], headers={"k": "v"})


def test_many_rows_come_in_one_go(table: Table) -> None:
    keys = [Key(f"event#s#{number}", "event") for number in range(250)]
    for key in keys[:245]:
        table.put({"pk": key.pk, "sk": key.sk, "n": 1})

    found = table.get_many([*keys, keys[0]])

    assert sorted(item["pk"] for item in found) == sorted(key.pk for key in keys[:245])


def test_many_of_none_is_none(table: Table) -> None:
    assert table.get_many([]) == []
