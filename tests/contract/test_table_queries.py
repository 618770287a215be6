"""Queries of a partition and of the indexes."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.contract.backends import aws_differs, undocumented
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Change, Item, Key, Page, Table

PK = "event#s#1"
HOUR = "2026-11-21T08#3"


def test_a_partition_comes_in_order_of_its_sort_key(table: Table) -> None:
    for sk in ("run#b", "event", "run#a", "effect#a#x", "run#B", "run#é"):
        table.put({"pk": PK, "sk": sk})
    table.put({"pk": PK + "0", "sk": "event"})

    found = [row["sk"] for row in table.query(PK)]

    assert found == ["effect#a#x", "event", "run#B", "run#a", "run#b", "run#é"]


def test_a_prefix_narrows_a_partition(table: Table) -> None:
    for sk in ("run", "run#a", "run#b", "rune", "event"):
        table.put({"pk": PK, "sk": sk})

    assert [row["sk"] for row in table.query(PK, sk_prefix="run#")] == ["run#a", "run#b"]
    assert [row["sk"] for row in table.query(PK, sk_prefix="run#", limit=1)] == ["run#a"]
    assert len(list(table.query(PK, sk_prefix="run#", limit=3))) == 2


def test_a_partition_can_be_read_from_its_end(table: Table) -> None:
    for sk in ("run#a", "run#b", "run#c", "event"):
        table.put({"pk": PK, "sk": sk})

    found = [row["sk"] for row in table.query(PK, sk_prefix="run#", newest_first=True)]

    assert found == ["run#c", "run#b", "run#a"]


def test_an_empty_partition_yields_nothing(table: Table) -> None:
    assert list(table.query("event#s#none")) == []
    assert list(table.query("event#s#none", consistent=False)) == []


def test_a_partition_longer_than_a_page_comes_whole(table: Table) -> None:
    """DynamoDB's page ends at 1 MB; this partition has 2.4."""
    for number in range(8):
        table.put({"pk": PK, "sk": f"run#{number}", "body": b"x" * 300 * 1024})

    found = list(table.query(PK))

    assert [row["sk"] for row in found] == [f"run#{number}" for number in range(8)]
    assert all(len(row["body"]) == 300 * 1024 for row in found)


def event(number: int, received_at: int, *, bucket: str = HOUR) -> Item:
    return {
        "pk": f"event#s#{number}",
        "sk": "event",
        "received_bucket": bucket,
        "received_at": received_at,
        "source": "s",
        "type": "t",
        "body": b"not projected",
    }


def numbers(page: Page) -> list[int]:
    return [int(item["pk"].rpartition("#")[2]) for item in page.items]


def test_an_index_yields_a_range_with_both_ends_in_it(table: Table) -> None:
    for number, received_at in enumerate((10, 20, 30, 40)):
        table.put(event(number, received_at))
    table.put(event(9, 25, bucket="2026-11-21T08#4"))

    assert numbers(table.query_index("by_received", HOUR, low=20, high=30)) == [1, 2]


def test_an_index_is_sorted_by_number_in_both_directions(table: Table) -> None:
    for number, received_at in enumerate((9, 100, 20, 1_790_000_000_000)):
        table.put(event(number, received_at))
    high = 2_000_000_000_000

    oldest = table.query_index("by_received", HOUR, low=0, high=high)
    newest = table.query_index("by_received", HOUR, low=0, high=high, newest_first=True)

    assert numbers(oldest) == [0, 2, 1, 3]
    assert numbers(newest) == [3, 1, 2, 0]


def test_an_index_holds_what_it_projects_and_no_more(table: Table) -> None:
    table.put(event(1, 10))
    table.put({**event(2, 11), "due_bucket": "7", "due_at": 5})

    received = table.query_index("by_received", HOUR, low=10, high=10)
    by_due = table.query_index("by_due", "7", low=0, high=9)

    whole = event(1, 10)
    del whole["body"]
    assert received.items == [whole]
    assert by_due.items == [{"pk": "event#s#2", "sk": "event", "due_bucket": "7", "due_at": 5}]


def pages(table: Table, *, limit: int, newest_first: bool = False) -> Iterator[Page]:
    start: Mapping[str, Any] | None = None
    while True:
        page = table.query_index(
            "by_received", HOUR, low=0, high=99, limit=limit, start=start, newest_first=newest_first
        )
        yield page
        start = page.next
        if start is None:
            return


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 5, 9, 50])
def test_pages_together_are_the_whole(table: Table, limit: int, newest_first: bool) -> None:
    for number in range(9):
        table.put(event(number, number // 2))  # ties among them

    found = list(pages(table, limit=limit, newest_first=newest_first))

    assert all(len(page.items) <= limit for page in found)
    times = [item["received_at"] for page in found for item in page.items]
    assert times == sorted(times, reverse=newest_first)
    assert sorted(n for page in found for n in numbers(page)) == list(range(9))


def test_a_page_of_an_index_ends_at_1_mb(table: Table) -> None:
    for number in range(5):
        table.put(event(number, number) | {"type": "t" * 300 * 1024})

    first = table.query_index("by_received", HOUR, low=0, high=99)
    rest = table.query_index("by_received", HOUR, low=0, high=99, start=first.next)

    assert (numbers(first), numbers(rest)) == ([0, 1, 2], [3, 4])
    assert rest.next is None


@aws_differs(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html",
    moto="looks ahead and names none",
)
def test_a_full_page_names_a_next_one_even_if_that_is_empty(table: Table) -> None:
    """AWS: that LastEvaluatedKey is there does not mean that there is more data."""
    for number in range(3):
        table.put(event(number, number))

    first = table.query_index("by_received", HOUR, low=0, high=99, limit=3)
    assert first.next is not None

    rest = table.query_index("by_received", HOUR, low=0, high=99, limit=3, start=first.next)
    assert rest == Page([], None)


@undocumented(moto="goes on from there")
def test_a_start_outside_of_what_is_asked_for_is_refused(table: Table) -> None:
    for number in range(3):
        table.put(event(number, number))
    first = table.query_index("by_received", HOUR, low=0, high=99, limit=1)

    with pytest.raises(Unavailable, match="ValidationException"):
        table.query_index("by_received", HOUR, low=1, high=99, start=first.next)


@undocumented(moto="answers with nothing")
def test_a_range_the_wrong_way_round_is_refused(table: Table) -> None:
    with pytest.raises(Unavailable, match="ValidationException"):
        table.query_index("by_received", HOUR, low=2, high=1)


def test_a_query_of_no_partition_is_refused(table: Table) -> None:
    with pytest.raises(Unavailable):
        list(table.query(""))
    with pytest.raises(Unavailable):
        table.query_index("by_received", "", low=0, high=99)


@aws_differs(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html",
    moto="answers with nothing",
)
def test_a_query_for_no_row_is_refused(table: Table) -> None:
    with pytest.raises(Unavailable):
        table.query_index("by_received", HOUR, low=0, high=99, limit=0)


def test_a_page_goes_on_after_its_start_was_deleted(table: Table) -> None:
    for number in range(4):
        table.put(event(number, number))
    first = table.query_index("by_received", HOUR, low=0, high=99, limit=2)
    table.delete(Key("event#s#1", "event"))

    rest = table.query_index("by_received", HOUR, low=0, high=99, start=first.next)

    assert numbers(first) + numbers(rest) == [0, 1, 2, 3]


def test_an_index_is_sparse_and_follows_its_rows(table: Table) -> None:
    key = Key(PK, "run#h")

    def shard(name: str) -> list[int]:
        page = table.query_index("by_due", name, low=0, high=99)
        return [item["due_at"] for item in page.items]

    table.put({"pk": PK, "sk": "run#h", "due_at": 5})
    assert shard("1") == []
    table.update(key, Change(set={"due_bucket": "1"}))
    assert shard("1") == [5]
    table.update(key, Change(set={"due_at": 6}))
    assert shard("1") == [6]
    table.update(key, Change(set={"due_bucket": "2"}))
    assert (shard("1"), shard("2")) == ([], [6])
    table.update(key, Change(remove=("due_bucket", "due_at")))
    assert shard("2") == []
    table.update(key, Change(set={"due_bucket": "3", "due_at": 7}))
    table.delete(key)
    assert shard("3") == []
