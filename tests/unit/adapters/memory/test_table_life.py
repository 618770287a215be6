"""The table in memory as time goes by: TTL, and being put back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.adapters.memory import Fault, MemoryTable
from webhook_inbox.domain.conditions import Absent
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())


def row(name: str, **attributes: Any) -> Item:
    return {"pk": name, "sk": "event", **attributes}


def by_due(table: MemoryTable) -> list[str]:
    page = table.query_index("by_due", "1", low=0, high=99)
    return [item["pk"] for item in page.items]


def names(table: MemoryTable) -> list[str]:
    return [item["pk"] for item in table]


def test_an_expired_row_is_there_until_it_is_deleted() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html

    Deletion takes days; until then the row is read, found by queries, and can be changed.
    """
    table = MemoryTable()
    table.put(row("old", due_bucket="1", due_at=1, expires_at=SECOND - 1))

    assert table.get(Key("old", "event")) is not None
    assert by_due(table) == ["old"]
    with pytest.raises(ConditionFailed):
        table.put(row("old"), when=Absent("pk"))
    assert table.update(Key("old", "event"), Change(set={"n": 1}))["n"] == 1
    assert table.delete_expired(NOW) == 1
    assert names(table) == by_due(table) == []


def test_a_row_whose_time_was_prolonged_does_not_expire() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html

    A row that waits for its deletion can have its time changed or removed.
    """
    table = MemoryTable()
    for name, change in (
        ("prolonged", Change(set={"expires_at": SECOND + 1})),
        ("kept for ever", Change(remove=("expires_at",))),
    ):
        table.put(row(name, expires_at=SECOND - 1))
        table.update(Key(name, "event"), change)

    assert table.delete_expired(NOW) == 0


FIVE_YEARS = int(timedelta(days=5 * 365).total_seconds())


@pytest.mark.parametrize(
    ("expires_at", "expires"),
    [
        (SECOND - 1, True),
        (SECOND, False),
        (SECOND + 1, False),
        (SECOND - FIVE_YEARS + 1, True),
        (SECOND - FIVE_YEARS, False),
        (str(SECOND - 1), False),
        (b"1", False),
        (True, False),
        (0, False),
    ],
)
def test_a_time_in_seconds_that_is_over_and_sane_expires(expires_at: Any, expires: bool) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html

    A row expires when its time is less than now, in seconds.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-before-you-start.html
    Only a number counts, and none of five years ago or more.
    """
    table = MemoryTable()
    table.put(row("x", expires_at=expires_at))
    table.put(row("without"))

    assert table.expired(NOW) == ([Key("x", "event")] if expires else [])


def test_some_expired_rows_are_deleted_before_others() -> None:
    table = MemoryTable()
    for name in "abc":
        table.put(row(name, expires_at=SECOND - 1))

    assert table.delete_expired(NOW, only=lambda key: key.pk == "b") == 1

    assert names(table) == ["a", "c"]


def test_an_index_forgets_an_expired_row_as_late_as_any_other() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTimeToLive.html

    Rows leave the indexes in the same eventually consistent way as by a standard delete.
    """
    misses = [0, 1, 0]
    table = MemoryTable(lag=lambda unseen: misses.pop(0))
    table.put(row("old", due_bucket="1", due_at=1, expires_at=SECOND - 1))
    assert by_due(table) == ["old"]

    table.delete_expired(NOW)

    assert names(table) == []
    assert by_due(table) == ["old"]
    assert by_due(table) == []


def test_a_deletion_by_ttl_is_no_call() -> None:
    table = MemoryTable()
    table.put(row("old", expires_at=SECOND - 1))
    table.faults = lambda service, operation: Fault.BEFORE

    assert table.delete_expired(NOW) == 1


def test_a_table_can_be_put_back() -> None:
    unseen = 9
    table = MemoryTable(lag=lambda pending: min(unseen, pending))
    table.put(row("a", due_bucket="1", due_at=1))
    table.put(row("b", due_bucket="1", due_at=2))
    before = table.snapshot()

    table.delete(Key("a", "event"))
    table.update(Key("b", "event"), Change(set={"due_at": 0}))
    table.put(row("c", due_bucket="1", due_at=3))
    unseen = 0
    assert by_due(table) == ["b", "c"]
    table.restore(before)

    assert table.snapshot() == before
    assert names(table) == ["a", "b"]
    unseen = 1
    assert by_due(table) == ["a"]
    table.put(row("d"))
    table.restore(before)
    assert names(table) == ["a", "b"]
