"""Attribute values in DynamoDB's notation."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook_inbox.domain.conditions import (
    Absent,
    Condition,
    Either,
    Equals,
    Every,
    Less,
    OneOf,
    Present,
)
from webhook_inbox.domain.ports import Change, Item
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


_WORDS: Final[Mapping[type[Condition], str]] = {
    Absent: "attribute_not_exists",
    Present: "attribute_exists",
    Equals: "=",
    Less: "<",
    Every: "AND",
    Either: "OR",
}


class Expressions:
    """Renders the expressions of one request; all share one set of placeholders.

    Every name gets a placeholder, so no attribute can collide with DynamoDB's 573 reserved
    words.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Wire] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """The request's placeholder parameters; DynamoDB refuses empty ones."""
        parameters: dict[str, Any] = {}
        if self._names:
            parameters["ExpressionAttributeNames"] = {p: n for n, p in self._names.items()}
        if self._values:
            parameters["ExpressionAttributeValues"] = self._values
        return parameters

    def name(self, attribute: str) -> str:
        """Returns the placeholder of an attribute's name."""
        return self._names.setdefault(attribute, f"#{len(self._names)}")

    def value(self, value: Any) -> str:
        """Returns the placeholder of a value."""
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = to_wire(value)
        return placeholder

    def condition(self, condition: Condition) -> str:
        """Returns a ConditionExpression."""
        match condition:
            case Absent(name) | Present(name):
                return f"{_WORDS[type(condition)]}({self.name(name)})"
            case Equals(name, value) | Less(name, value):
                return f"{self.name(name)} {_WORDS[type(condition)]} {self.value(value)}"
            case OneOf(name, values):
                return f"{self.name(name)} IN ({', '.join(map(self.value, values))})"
            case Every(()) | Either(()):
                raise ValueError("a condition joins no clauses")
            case Every(clauses) | Either(clauses):
                parts = map(self._clause if len(clauses) > 1 else self.condition, clauses)
                return f" {_WORDS[type(condition)]} ".join(parts)

    def _clause(self, condition: Condition) -> str:
        text = self.condition(condition)
        # DynamoDB refuses redundant parentheses, so only what joins something gets a pair.
        return f"({text})" if _joins(condition) else text

    def update(self, change: Change) -> str:
        """Returns an UpdateExpression; empty for an empty change."""
        clauses = {
            "SET": [*self._assignments(change)],
            "ADD": [f"{self.name(n)} {self.value(v)}" for n, v in change.add.items()],
            "REMOVE": [self.name(n) for n in change.remove],
        }
        return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)

    def _assignments(self, change: Change) -> Iterator[str]:
        for attribute, value in change.set.items():
            yield f"{self.name(attribute)} = {self.value(value)}"
        for attribute, value in change.default.items():
            name = self.name(attribute)
            yield f"{name} = if_not_exists({name}, {self.value(value)})"


def _joins(condition: Condition) -> bool:
    match condition:
        case Every(clauses) | Either(clauses):
            return len(clauses) > 1 or _joins(clauses[0])
        case _:
            return False
