"""Attribute values in DynamoDB's notation."""

from collections.abc import Mapping
from typing import Any

from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.quotas import check_name, check_number, text_size

# {"S": "text"}, {"N": "1"}, …
Wire = dict[str, Any]


def to_wire(value: Any) -> Wire:
    """Returns a value in DynamoDB's notation.

    Raises:
        TypeError: it is none of str, int, bool, bytes, list and dict.
        ValueError: a text is not Unicode, a number is too large, an attribute has no name.
    """
    match value:
        case str():
            text_size(value)  # refuses lone surrogates, which AWS would as well
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(check_number(value))}
        case bytes():
            return {"B": value}
        case list():
            return {"L": [to_wire(entry) for entry in value]}
        case dict():
            return {"M": row_to_wire(value)}
        case _:
            raise TypeError(f"a row cannot hold {type(value).__name__}")


def row_to_wire(row: Mapping[str, Any]) -> dict[str, Wire]:
    """Returns a row, or a part of one, in DynamoDB's notation; raises as `to_wire`."""
    return {check_name(name): to_wire(value) for name, value in row.items()}


def from_wire(wire: Wire) -> Any:
    """Returns the value of what `to_wire` or DynamoDB made.

    Raises:
        TypeError: a type that no inbox writes.
    """
    [(kind, value)] = wire.items()
    match kind:
        case "S" | "BOOL" | "B":
            return value
        case "N":
            return int(value)
        case "L":
            return [from_wire(entry) for entry in value]
        case "M":
            return row_from_wire(value)
        case _:
            raise TypeError(f"a row holds a DynamoDB {kind}, which no inbox writes")


def row_from_wire(wire: Mapping[str, Wire]) -> Item:
    """Returns the row of DynamoDB's notation."""
    return {name: from_wire(value) for name, value in wire.items()}
