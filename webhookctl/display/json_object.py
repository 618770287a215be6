"""Turns the result of an operation into the object that `--json` prints.

The console and the tools of agents use the same function, so that all three show the same facts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from enum import Enum
from functools import singledispatch
from typing import Any

from webhook_inbox.client.times import iso


@singledispatch
def json_object(result: Any) -> Any:
    """Returns a result as JSON data: a dataclass as an object with the names of its fields.

    A time is in ISO 8601, a duration in seconds, an absent value null. A type whose object differs
    from its fields registers its own form, beside the functions that print it.
    """
    return fields_object(result)


def fields_object(result: Any) -> dict[str, Any]:
    """Returns a dataclass as an object with the names of its fields."""
    return {each.name: json_object(getattr(result, each.name)) for each in fields(result)}


@json_object.register(str | int | float | bool | None)
def _(result: str | float | None) -> str | float | None:
    return result


@json_object.register
def _(result: Enum) -> Any:
    return result.value


@json_object.register
def _(result: datetime) -> str | None:
    return iso(result)


@json_object.register
def _(result: timedelta) -> float:
    return result.total_seconds()


@json_object.register
def _(result: Mapping) -> dict[str, Any]:  # type: ignore[type-arg]
    return {str(name): json_object(value) for name, value in result.items()}


@json_object.register(list | tuple | set | frozenset)
def _(result: Iterable[object]) -> list[Any]:
    return [json_object(each) for each in result]
