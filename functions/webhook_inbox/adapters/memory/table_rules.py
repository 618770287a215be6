"""DynamoDB's rules for updates, keys and queries."""

from typing import Any, Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.domain.quotas import PK_BYTES, SK_BYTES, text_size

_SCALARS: Final = frozenset({str, int, bool, bytes})


def changed(key: Key, old: Item | None, change: Change) -> Item:
    """Returns the row after an update; every part of the change reads the row before it."""
    before: Item = {"pk": key.pk, "sk": key.sk} if old is None else old
    new = {name: value for name, value in before.items() if name not in change.remove}
    new.update((k, _copy(v)) for k, v in change.default.items() if k not in before)
    new.update((k, _copy(v)) for k, v in change.set.items())
    for name, amount in change.add.items():
        start = before.get(name, 0)
        if type(start) is not int:
            raise invalid("UpdateItem", f"ADD to {name}, which is not a number")
        new[name] = start + amount
    return new


def copied(row: Item) -> Item:
    """Returns a copy that shares no container with the row."""
    return {k: v if type(v) in _SCALARS else _copy(v) for k, v in row.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    return [_copy(entry) for entry in value] if isinstance(value, list) else value


def invalid(operation: str, text: str) -> Unavailable:
    """Returns the error for an invalid request."""
    return Unavailable("dynamodb", operation, f"ValidationException: {text}")


def check_key(key: Key, operation: str) -> None:
    """Rejects a primary key that is empty or too long."""
    if not (0 < text_size(key.pk) <= PK_BYTES and 0 < text_size(key.sk) <= SK_BYTES):
        raise invalid(operation, "a key is empty or too long")


def check_change(change: Change) -> None:
    """Rejects an update of one attribute twice, or of the key."""
    names = [*change.set, *change.default, *change.add, *change.remove]
    if len(set(names)) != len(names):
        raise invalid("UpdateItem", "Two document paths overlap with each other")
    if "pk" in names or "sk" in names:
        raise invalid("UpdateItem", "Cannot update attribute: part of the key")


def check_query(value: str, low: int = 0, high: int = 0, limit: int | None = None) -> None:
    """Rejects a query without a partition, with reversed bounds, or with a limit below 1."""
    if not value or low > high or (limit is not None and limit < 1):
        raise invalid("Query", "an empty key, BETWEEN bounds the wrong way round, or no limit")
