"""A bounded table leaves out rows, says so, and never writes."""

from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from tests.waiting import DEADLINE
from tests.webhookctl.commands.stage import Inbox
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.client import budget as module
from webhook_inbox.client.budget import BoundedTable, Cut
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.ports import Change, Key, Page
from webhook_inbox.ledger.queries import FOR_EVER, Ledger
from webhook_inbox.ledger.schema import BY_DUE, WAKE, received_buckets


@pytest.fixture
def waiting(inbox: Inbox) -> Inbox:
    """Twelve runs that wait."""
    inbox.fails("acme.fulfil", Deferred(inbox.now + timedelta(days=3), "later"))
    for number in range(12):
        inbox.deliver(f"evt-{number}")
    inbox.work()
    return inbox


def test_all_rows_are_read_within_the_bounds(waiting: Inbox) -> None:
    table = BoundedTable(waiting.table)
    assert len(list(Ledger(table=table).due_runs())) == 12
    assert (table.cut, table.cuts) == (False, [])


def test_behind_its_time_each_partition_of_the_due_index_yields_its_first_entries(
    waiting: Inbox,
) -> None:
    table = BoundedTable(waiting.table, seconds=-1)
    assert len(list(Ledger(table=table).due_runs())) == 12
    assert not table.cut


def test_behind_the_latest_time_an_index_ends(
    waiting: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LATEST", -1.0)
    table = BoundedTable(waiting.table, seconds=-1)
    assert list(Ledger(table=table).due_runs()) == []
    assert table.cut
    assert {each.last for each in table.cuts} == {None}


def test_a_partition_of_the_due_index_has_a_bound(
    waiting: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES", 1)
    table = BoundedTable(waiting.table)
    [bucket, *_] = [
        each
        for each in Ledger(table=table).due_buckets([WAKE])
        if len(waiting.table.query_index(BY_DUE, each, low=0, high=FOR_EVER).items) > 1
    ]
    for _ in range(2):  # a second pass reads as much again
        page = table.query_index(BY_DUE, bucket, low=0, high=FOR_EVER, limit=1)
        assert len(page.items) == 1
        last = table.query_index(BY_DUE, bucket, low=0, high=FOR_EVER, limit=1, start=page.next)
        assert (list(last.items), last.next) == ([], None)
    assert table.cuts == [Cut(BY_DUE, bucket, page.items[0]["due_at"])] * 2


def test_a_partition_of_the_table_has_a_bound(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    for number in range(3):
        inbox.table.put({"pk": "p", "sk": str(number)})
    table = BoundedTable(inbox.table)
    assert [row["sk"] for row in table.query("p")] == ["0", "1"]
    assert table.cut


def test_it_refuses_to_write(inbox: Inbox) -> None:
    table = BoundedTable(inbox.table)
    for write in (
        lambda: table.put({"pk": "p", "sk": "s"}),
        lambda: table.update(Key("p", "s"), Change(set={"a": 1})),
        lambda: table.delete(Key("p", "s")),
    ):
        with pytest.raises(PermissionError):
            write()


def test_a_metered_query_costs_what_it_read(inbox: Inbox) -> None:
    for number in range(10):
        inbox.table.put({"pk": "p", "sk": str(number), "text": "x" * 4000})
    table = MeteredTable(inbox.table)
    rows = table.query("p", consistent=False)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert table.units == 0.5
    assert len(list(table.query("p", consistent=False))) == 10
    assert table.units == 0.5 + 0.5 * 10


class Slow(MemoryTable):
    """A table that answers for some partitions only once others are asked for as well."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.together = Barrier(4, timeout=DEADLINE)

    def query_index(self, index: str, value: str, **options: Any) -> Page:
        self.asked.append(value)
        # The first partition is read alone, and the ones that follow its emptiness are not.
        if 1 < len(self.asked) <= 5:
            self.together.wait()
        return super().query_index(index, value, **options)


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_empty_partitions_of_a_quiet_day_are_read_together(
    inbox: Inbox, *, newest_first: bool
) -> None:
    slow, low, high = Slow(), inbox.now - timedelta(hours=6), inbox.now
    table = BoundedTable(slow, seconds=60)
    assert list(Ledger(table=table).received(low, high, newest_first=newest_first)) == []
    assert sorted(slow.asked) == sorted(received_buckets(low, high))
    assert not table.cut


def test_reading_ahead_changes_no_result(inbox: Inbox) -> None:
    for number in range(30):
        inbox.deliver(f"evt-{number}")
        inbox.clock.advance(hours=number % 5)
    low = inbox.now - timedelta(days=7)
    for newest_first in (True, False):
        plain = list(inbox.ledger.received(low, inbox.now, newest_first=newest_first))
        table = BoundedTable(inbox.table, seconds=60)
        ahead = Ledger(table=table).received(low, inbox.now, newest_first=newest_first)
        assert list(ahead) == plain
        assert len(plain) == 30
