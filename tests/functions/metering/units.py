"""DynamoDB's and SQS's rules of billing, as AWS documents them.

An item's size is that of `webhook_inbox.domain.quotas.item_size`. Sources, in AWS's documentation:
"DynamoDB read and write operations" (units; a refused conditional write consumes the units of the
larger of the item and what was tried), "Using Global Secondary Indexes" (their writes), and the
price page of SQS (64 KB are one request).
"""

from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Final

from tests.contract.resources import PROJECTIONS
from webhook_inbox.adapters.aws.dynamodb import INDEX_KEYS
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.quotas import item_size

WRITE_UNIT: Final = 1024
READ_UNIT: Final = 4096
SQS_UNIT: Final = 64 * 1024
TABLE: Final = "table"


def units(size: int, unit: int) -> int:
    """Returns the units of so many bytes, at least one."""
    return max(1, ceil(size / unit))


def index_entry(index: str, row: Item | None) -> Item | None:
    """Returns an index's entry of a row, None for a row without the keys of the index."""
    if row is None or not all(name in row for name in INDEX_KEYS[index]):
        return None
    projected = {"pk", "sk", *INDEX_KEYS[index], *PROJECTIONS[index].get("NonKeyAttributes", ())}
    return {name: value for name, value in row.items() if name in projected}


def write_units(before: Item | None, after: Item | None, tried: Item | None = None) -> Counter[str]:
    """Returns the write units of a change of a row, of the table and of each index.

    Args:
        before: the row before, if any.
        after: the row after; the same as before if the condition refused the write.
        tried: the row that a PutItem had, whether it was written or not.
    """
    sizes = [item_size(row) for row in (before, after, tried) if row is not None]
    billed = Counter({TABLE: units(max(sizes, default=0), WRITE_UNIT)})
    for index in INDEX_KEYS:
        billed[index] = _index_units(index, before, after)
    return +billed


def read_units(rows: Iterable[Item], *, consistent: bool) -> float:
    """Returns the read units of a row, or of a page of a query, whose sizes are added up."""
    return units(sum(map(item_size, rows)), READ_UNIT) * (1.0 if consistent else 0.5)


def sqs_requests(bodies: Iterable[str]) -> int:
    """Returns the requests of SQS that a call with these messages is billed as."""
    return units(sum(len(body.encode()) for body in bodies), SQS_UNIT)


def _index_units(index: str, before: Item | None, after: Item | None) -> int:
    old, new = index_entry(index, before), index_entry(index, after)
    if old == new:
        return 0
    sizes = [units(item_size(entry), WRITE_UNIT) for entry in (old, new) if entry is not None]
    moved = old and new and any(old[name] != new[name] for name in INDEX_KEYS[index])
    # An entry whose key changes is deleted and written anew.
    return sum(sizes) if moved else max(sizes)
