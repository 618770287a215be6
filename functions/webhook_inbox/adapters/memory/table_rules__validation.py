"""What DynamoDB refuses to be asked.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Change, Key
from webhook_inbox.domain.quotas import PK_BYTES, SK_BYTES, text_size


def invalid(operation: str, text: str) -> Unavailable:
    """Returns the error of a request that no repetition makes valid."""
    return Unavailable("dynamodb", operation, f"ValidationException: {text}")


def check_key(key: Key, operation: str) -> None:
    """Refuses a primary key that is empty or too long."""
    if not (0 < text_size(key.pk) <= PK_BYTES and 0 < text_size(key.sk) <= SK_BYTES):
        raise invalid(operation, "a key is empty or too long")


def check_change(change: Change) -> None:
    """Refuses an update of one attribute twice, or of the key."""
    names = [*change.set, *change.default, *change.add, *change.remove]
    if len(set(names)) != len(names):
        raise invalid("UpdateItem", "Two document paths overlap with each other")
    if "pk" in names or "sk" in names:
        raise invalid("UpdateItem", "Cannot update attribute: part of the key")


def check_query(value: str, low: int = 0, high: int = 0, limit: int | None = None) -> None:
    """Refuses a query of no partition, of a range from high to low, or for less than one row."""
    if not value or low > high or (limit is not None and limit < 1):
        raise invalid("Query", "an empty key, BETWEEN bounds the wrong way round, or no limit")
