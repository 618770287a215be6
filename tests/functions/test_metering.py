"""The meter counts as AWS documents it."""

from typing import Any

import pytest

from tests.functions.metering.units import read_units, sqs_requests, write_units
from webhook_inbox.domain.ports import Item

KEY = {"pk": "p", "sk": "s"}
EVENT = {**KEY, "received_bucket": "2026-11-23T08#0", "received_at": 1, "source": "shop"}
DUE = {**KEY, "due_bucket": "watch#h#0", "due_at": 1}


def row(size: int, **more: Any) -> Item:
    """Returns a row of so many bytes, and more."""
    return {**KEY, "body": b"x" * (size - len("pkpsksbody")), **more}


@pytest.mark.parametrize(("size", "units"), [(10, 1), (1024, 1), (1025, 2), (2048, 2), (3500, 4)])
def test_a_new_row_is_a_unit_for_each_kilobyte(size: int, units: int) -> None:
    assert write_units(None, row(size), row(size)) == {"table": units}


def test_an_update_is_billed_by_the_larger_of_the_row_before_and_after() -> None:
    assert write_units(row(3000), row(10)) == {"table": 3}
    assert write_units(row(10), row(3000)) == {"table": 3}


def test_a_refused_put_is_billed_by_the_larger_of_both_rows() -> None:
    assert write_units(row(10), row(10), row(3000)) == {"table": 3}
    assert write_units(row(3000), row(3000), row(10)) == {"table": 3}


def test_a_refused_update_of_no_row_is_a_unit() -> None:
    assert write_units(None, None) == {"table": 1}


def test_a_new_entry_of_an_index_is_a_write_of_the_index() -> None:
    assert write_units(None, EVENT) == {"table": 1, "by_received": 1}
    assert write_units(KEY, DUE) == {"table": 1, "by_due": 1}
    assert write_units(DUE, KEY) == {"table": 1, "by_due": 1}


def test_an_entry_with_another_key_is_two_writes_of_the_index() -> None:
    assert write_units(DUE, {**DUE, "due_at": 2}) == {"table": 1, "by_due": 2}


def test_an_entry_that_stays_the_same_is_no_write_of_the_index() -> None:
    assert write_units(EVENT, {**EVENT, "body": b"more"}) == {"table": 1}


def test_an_entry_with_another_projected_value_is_one_write_of_the_index() -> None:
    assert write_units(EVENT, {**EVENT, "type": "paid"}) == {"table": 1, "by_received": 1}


def test_an_entry_is_billed_by_its_own_size() -> None:
    """The body is not projected; a type is."""
    assert write_units(None, {**EVENT, "body": b"x" * 3000}) == {"table": 3, "by_received": 1}
    assert write_units(None, {**EVENT, "type": "x" * 1500}) == {"table": 2, "by_received": 2}


@pytest.mark.parametrize(
    ("sizes", "units"), [([], 1), ([4096], 1), ([4097], 2), ([3000, 1000], 1), ([3000, 2000], 2)]
)
def test_a_page_is_a_unit_for_each_four_kilobytes_of_all_its_rows(
    sizes: list[int], units: int
) -> None:
    rows = list(map(row, sizes))
    assert read_units(rows, consistent=True) == units
    assert read_units(rows, consistent=False) == units / 2


def test_a_call_of_sqs_is_a_request_for_each_64_kilobytes() -> None:
    assert sqs_requests([]) == 1
    assert sqs_requests(["x" * 6000] * 10) == 1
    assert sqs_requests(["x" * 7000] * 10) == 2
