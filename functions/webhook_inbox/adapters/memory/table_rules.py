"""Rows as DynamoDB changes and copies them."""

from typing import Any, Final

from webhook_inbox.adapters.memory.table_rules__validation import invalid
from webhook_inbox.domain.ports import Change, Item, Key

_SCALARS: Final = frozenset({str, int, bool, bytes})


def changed(key: Key, old: Item | None, change: Change) -> Item:
    """Returns the row after an update; every part of the change looks at the row before it."""
    before: Item = {"pk": key.pk, "sk": key.sk} if old is None else old
    new = {name: value for name, value in before.items() if name not in change.remove}
    new.update((k, _copy(v)) for k, v in change.default.items() if k not in before)
    new.update((k, _copy(v)) for k, v in change.set.items())
    for name, amount in change.add.items():
        start = before.get(name, 0)
        if type(start) is not int:
            raise invalid("UpdateItem", f"ADD to {name}, which is no number")
        new[name] = start + amount
    return new


def copied(row: Item) -> Item:
    """Returns a copy that shares no container with the row."""
    return {k: v if type(v) in _SCALARS else _copy(v) for k, v in row.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
