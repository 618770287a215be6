"""A conditional write that recognises its own earlier attempt."""

from collections.abc import Mapping
from typing import Any

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.ledger.schema import carries


def transition(
    table: Table,
    key: Key,
    change: Change,
    *,
    when: Condition,
    own: Mapping[str, Any] | None = None,
) -> Item:
    """Updates a row under a condition and returns the row after the update.

    If DynamoDB's answer is lost, the client sends the update again, and the condition then fails
    because of the first attempt. The row that the failure returns tells the two cases apart.

    Args:
        table: the ledger.
        key: the row's.
        change: the update.
        when: the condition.
        own: attributes with values that only this call writes; all that `change` sets by default.

    Raises:
        ConditionFailed: another writer changed the row first.
        Unavailable: the table failed; the update may have been made.
    """
    try:
        return table.update(key, change, when=when)
    except ConditionFailed as error:
        expected = change.set if own is None else own
        if error.old is not None and carries(error.old, expected):
            return error.old
        raise
