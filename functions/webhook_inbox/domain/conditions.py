"""Conditions of conditional writes, as data.

The adapter renders them as DynamoDB expressions; the in-memory table evaluates them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Absent:
    """The attribute is absent."""

    name: str

    def holds(self, row: Mapping[str, Any]) -> bool:
        return self.name not in row


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute is present."""

    name: str

    def holds(self, row: Mapping[str, Any]) -> bool:
        return self.name in row


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute has this type and value."""

    name: str
    value: str | int

    def holds(self, row: Mapping[str, Any]) -> bool:
        value = row.get(self.name)
        return type(value) is type(self.value) and value == self.value


@dataclass(frozen=True, slots=True)
class Less:
    """The attribute is a number below this one."""

    name: str
    value: int

    def holds(self, row: Mapping[str, Any]) -> bool:
        value = row.get(self.name)
        return type(value) is int and value < self.value


@dataclass(frozen=True, slots=True)
class OneOf:
    """The attribute has one of these values."""

    name: str
    values: tuple[str, ...]

    def holds(self, row: Mapping[str, Any]) -> bool:
        return self.name in row and row[self.name] in self.values


@dataclass(frozen=True, slots=True)
class Every:
    """All clauses hold."""

    clauses: "tuple[Condition, ...]"

    def holds(self, row: Mapping[str, Any]) -> bool:
        return all(clause.holds(row) for clause in self.clauses)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one clause holds."""

    clauses: "tuple[Condition, ...]"

    def holds(self, row: Mapping[str, Any]) -> bool:
        return any(clause.holds(row) for clause in self.clauses)


Condition = Absent | Present | Equals | Less | OneOf | Every | Either


def every(*clauses: Condition) -> Every:
    """Joins clauses with AND."""
    return Every(clauses)


def either(*clauses: Condition) -> Either:
    """Joins clauses with OR."""
    return Either(clauses)


def number(name: str, value: int) -> Condition:
    """Returns the condition that an attribute is this number; an absent one counts as 0."""
    if value == 0:
        return either(Absent(name), Equals(name, 0))
    return Equals(name, value)
