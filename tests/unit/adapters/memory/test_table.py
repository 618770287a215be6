"""The table in memory: faults, lag, and what it keeps apart."""

from typing import Any

import pytest

from webhook_inbox.adapters.memory import Fault, MemoryTable
from webhook_inbox.adapters.memory.table_indexes import Index
from webhook_inbox.domain.conditions import Absent, Present
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Key

KEY = Key("pk", "sk")


def row(**attributes: Any) -> Item:
    return {"pk": KEY.pk, "sk": KEY.sk, **attributes}


def by_due(table: MemoryTable) -> list[int]:
    page = table.query_index("by_due", "1", low=0, high=99)
    return [item["due_at"] for item in page.items]


class Faulty:
    """Fails one operation, once, and notes every call."""

    def __init__(self, operation: str, fault: Fault) -> None:
        self.operation = operation
        self.fault: Fault | None = fault
        self.calls: list[tuple[str, str]] = []

    def __call__(self, service: str, operation: str) -> Fault | None:
        self.calls.append((service, operation))
        if operation != self.operation:
            return None
        fault, self.fault = self.fault, None
        return fault


WRITES: dict[str, Any] = {
    "PutItem": lambda table: table.put(row(n=2)),
    "UpdateItem": lambda table: table.update(KEY, Change(set={"n": 2})),
    "DeleteItem": lambda table: table.delete(KEY),
}
READS: dict[str, Any] = {
    "GetItem": lambda table: table.get(KEY),
    "BatchGetItem": lambda table: table.get_many([KEY]),
    "Query": lambda table: list(table.query("pk")),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_fault_before_a_write_leaves_the_row(operation: str) -> None:
    table = MemoryTable()
    table.put(row(n=1))
    table.faults = Faulty(operation, Fault.BEFORE)

    with pytest.raises(Unavailable, match=operation):
        WRITES[operation](table)

    assert list(table) == [row(n=1)]


@pytest.mark.parametrize("operation", WRITES)
def test_a_fault_after_a_write_hides_that_it_happened(operation: str) -> None:
    table = MemoryTable()
    table.put(row(n=1))
    table.faults = Faulty(operation, Fault.AFTER)

    with pytest.raises(Unavailable, match=operation):
        WRITES[operation](table)

    assert list(table) == ([] if operation == "DeleteItem" else [row(n=2)])


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("operation", READS)
def test_a_read_can_fail_too(operation: str, fault: Fault) -> None:
    table = MemoryTable(faults=Faulty(operation, fault))

    with pytest.raises(Unavailable, match=operation):
        READS[operation](table)
    READS[operation](table)


def test_an_index_query_can_fail() -> None:
    table = MemoryTable(faults=Faulty("Query", Fault.BEFORE))

    with pytest.raises(Unavailable):
        by_due(table)


def test_a_lost_answer_does_not_tell_of_a_failed_condition() -> None:
    table = MemoryTable(faults=Faulty("UpdateItem", Fault.AFTER))

    with pytest.raises(Unavailable):
        table.update(KEY, Change(set={"n": 1}), when=Present("pk"))
    with pytest.raises(ConditionFailed):
        table.update(KEY, Change(set={"n": 1}), when=Present("pk"))


def test_calls_are_named_as_aws_names_them_and_batches_count_each() -> None:
    faults = Faulty("none", Fault.BEFORE)
    table = MemoryTable(faults=faults)

    table.put(row(), when=Absent("pk"))
    table.get_many([Key(str(number), "x") for number in range(101)])

    assert faults.calls == [("dynamodb", "PutItem")] + [("dynamodb", "BatchGetItem")] * 2


def test_a_plain_text_is_a_fault_too() -> None:
    table = MemoryTable(faults=lambda service, operation: "before")

    with pytest.raises(Unavailable):
        table.get(KEY)


def test_an_index_misses_what_has_not_reached_it() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html

    Indexes follow their table asynchronously; a query can return what is not up to date.
    """
    unseen = 1
    table = MemoryTable(lag=lambda pending: unseen)
    key = Key("pk", "sk")
    table.put(row(due_bucket="1", due_at=1))

    assert by_due(table) == []
    table.update(key, Change(set={"due_at": 2}))
    assert by_due(table) == [1]  # the first write has arrived, the second has not
    unseen = 0
    assert by_due(table) == [2]


def test_what_an_index_has_seen_it_does_not_forget() -> None:
    unseen = 0
    table = MemoryTable(lag=lambda pending: unseen)
    table.put(row(due_bucket="1", due_at=1))
    assert by_due(table) == [1]

    unseen = 5

    assert by_due(table) == [1]


def test_lag_concerns_eventually_consistent_reads_only() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.ReadConsistency.html

    A strongly consistent read reflects every write that succeeded; any other may be stale.
    """
    pending_seen: list[int] = []

    def lag(pending: int) -> int:
        pending_seen.append(pending)
        return pending

    table = MemoryTable(lag=lag)
    table.put(row(n=1))
    table.update(KEY, Change(set={"n": 2}))

    assert table.get(KEY) == row(n=2)
    assert list(table.query("pk")) == [row(n=2)]
    assert pending_seen == []
    assert table.get(KEY, consistent=False) is None
    assert list(table.query("pk", consistent=False)) == []
    assert table.get_many([KEY]) == []
    assert pending_seen == [2, 2, 2]


def test_a_delete_lags_as_well() -> None:
    misses = [0, 1, 0]
    table = MemoryTable(lag=lambda pending: misses.pop(0))
    table.put(row(due_bucket="1", due_at=1))
    assert by_due(table) == [1]

    table.delete(KEY)

    assert by_due(table) == [1]
    assert by_due(table) == []


def test_conditions_see_the_latest_row_whatever_lags() -> None:
    table = MemoryTable(lag=lambda pending: pending)
    table.put(row(n=1))

    with pytest.raises(ConditionFailed) as failed:
        table.put(row(n=2), when=Absent("pk"))

    assert failed.value.old == row(n=1)


def test_versions_of_a_row_are_apart() -> None:
    table = MemoryTable()
    table.put(row(runs=["a"], nested={"list": [1]}))
    before = table.get(KEY)
    after = table.update(KEY, Change(set={"n": 1}))
    after["nested"]["list"].append(2)
    after["runs"].clear()

    assert before == row(runs=["a"], nested={"list": [1]})
    assert table.get(KEY) == row(runs=["a"], nested={"list": [1]}, n=1)


def test_a_change_keeps_nothing_of_what_it_was_given() -> None:
    table = MemoryTable()
    history = [{"number": 1}]
    table.update(KEY, Change(set={"a": history}, default={"b": history}))

    history[0]["number"] = 2

    assert table.get(KEY) == row(a=[{"number": 1}], b=[{"number": 1}])


def test_iterating_shows_every_row_and_calls_nothing() -> None:
    table = MemoryTable(faults=lambda service, operation: None)
    for number in range(3):
        table.put({"pk": f"p{number}", "sk": "s"})
    table.faults = lambda service, operation: Fault.BEFORE

    assert [item["pk"] for item in table] == ["p0", "p1", "p2"]


def test_a_table_may_have_other_indexes() -> None:
    table = MemoryTable(indexes=[Index("by_colour", "colour", "shade", projected=("n",))])
    table.put(row(colour="red", shade=3, n=1, other=2))

    page = table.query_index("by_colour", "red", low=0, high=9)

    assert page.items == [row(colour="red", shade=3, n=1)]
