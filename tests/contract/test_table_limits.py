"""Limits of DynamoDB: keys, sizes, types, and contradictory updates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.contract.backends import aws_differs, undocumented
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.quotas import ITEM_BYTES, PK_BYTES, SK_BYTES, item_size

GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
KEY = Key("event#s#1", "event")
LONG = [Key("x" * (PK_BYTES + 1), "s"), Key("é" * PK_BYTES, "s"), Key("p", "x" * (SK_BYTES + 1))]
EMPTY = [Key("", "sk"), Key("pk", "")]

Use = Callable[[Table, Key], object]
USES: dict[str, Use] = {
    "put": lambda table, key: table.put({"pk": key.pk, "sk": key.sk}),
    "get": lambda table, key: table.get(key),
    "get many": lambda table, key: table.get_many([key]),
    "update": lambda table, key: table.update(key, Change(set={"a": 1})),
    "delete": lambda table, key: table.delete(key),
}


def row(**attributes: Any) -> Item:
    return {"pk": KEY.pk, "sk": KEY.sk, **attributes}


def refused(table: Table, use: Use, keys: list[Key]) -> None:
    for key in keys:
        with pytest.raises(Unavailable, match="ValidationException"):
            use(table, key)


def test_a_key_out_of_bounds_is_refused(table: Table) -> None:
    refused(table, USES["put"], LONG + EMPTY)
    refused(table, USES["get"], EMPTY)
    refused(table, USES["update"], LONG)


@pytest.mark.parametrize("use", ["get", "get many", "update", "delete"])
@aws_differs(GUIDE + "Constraints.html", moto="takes it")
def test_a_key_out_of_bounds_is_refused_by_every_call(table: Table, use: str) -> None:
    """AWS: a partition key has 1 to 2048 bytes, a sort key 1 to 1024."""
    refused(table, USES[use], LONG + EMPTY)


def test_the_longest_key_is_taken(table: Table) -> None:
    key = Key("x" * PK_BYTES, "é" * (SK_BYTES // 2))

    table.put({"pk": key.pk, "sk": key.sk})

    assert table.get(key) == {"pk": key.pk, "sk": key.sk}


def test_a_row_of_nearly_400_kb_fits(table: Table) -> None:
    body = bytes(range(256)) * 4 * 395

    table.put(row(body=body))

    assert table.get(KEY) == row(body=body)


def test_a_row_over_400_kb_is_refused(table: Table) -> None:
    with pytest.raises(Unavailable, match="ValidationException"):
        table.put(row(body=b"x" * 401 * 1024))

    assert table.get(KEY) is None


@aws_differs(GUIDE + "Constraints.html", moto="counts more than AWS")
def test_a_row_is_400_kb_to_the_byte_names_included(table: Table) -> None:
    room = ITEM_BYTES - item_size(row(body=b""))

    table.put(row(body=b"x" * room))

    with pytest.raises(Unavailable, match="ValidationException"):
        table.put(row(body=b"x" * (room + 1)))


def test_an_update_that_makes_a_row_too_large_leaves_it_as_it_was(table: Table) -> None:
    before = row(body=b"x" * 300 * 1024)
    table.put(before)

    with pytest.raises(Unavailable, match="ValidationException"):
        table.update(KEY, Change(set={"more": b"x" * 101 * 1024}))

    assert table.get(KEY) == before


def test_adding_to_what_is_no_number_is_refused(table: Table) -> None:
    for value in ("text", True, b"x", [1], {"a": 1}):
        table.put(row(n=value))

        with pytest.raises(Unavailable, match="ValidationException"):
            table.update(KEY, Change(add={"n": 1}))

        assert table.get(KEY) == row(n=value)


def test_an_update_of_the_key_is_refused(table: Table) -> None:
    with pytest.raises(Unavailable, match="ValidationException"):
        table.update(KEY, Change(set={"sk": "other"}))


@undocumented(ministack="lets the last one win")
def test_an_update_that_names_an_attribute_twice_is_refused(table: Table) -> None:
    for again in (Change(add={"a": 1}), Change(default={"a": 1}), Change(remove=("a",))):
        with pytest.raises(Unavailable, match="ValidationException"):
            table.update(KEY, replace(again, set={"a": 1}))


def test_an_empty_key_of_an_index_is_refused(table: Table) -> None:
    for attributes in ({"due_bucket": "", "due_at": 1}, {"due_bucket": ""}):
        with pytest.raises(Unavailable, match="ValidationException"):
            table.put(row(**attributes))


@aws_differs(GUIDE + "GSI.html", moto="leaves the row out of the index")
def test_a_key_of_an_index_of_the_wrong_type_is_refused(table: Table) -> None:
    """AWS: whenever an item is written, its types have to match the index's key schema."""
    wrong: list[Item] = [
        {"due_bucket": 1, "due_at": 1},
        {"due_bucket": b"1"},
        {"due_bucket": "1", "due_at": "1"},
        {"due_bucket": "1", "due_at": True},
        {"due_at": b"1"},
    ]
    for attributes in wrong:
        with pytest.raises(Unavailable, match="ValidationException"):
            table.put(row(**attributes))
        with pytest.raises(Unavailable, match="ValidationException"):
            table.update(KEY, Change(set=attributes))

    assert table.get(KEY) is None
