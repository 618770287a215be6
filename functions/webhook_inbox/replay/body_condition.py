"""A JMESPath condition on a JSON body."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError, UnknownFunctionError
from jmespath.functions import Functions

# Larger bodies do not match; the report counts them.
BODY_LIMIT: Final = 1024 * 1024
_KNOWN: Final = frozenset(Functions.FUNCTION_TABLE)


@lru_cache(maxsize=4)
def compiled(expression: str) -> Any:
    """Returns a compiled condition.

    Raises:
        ValueError: it is not JMESPath; the text says where and shows an example.
    """
    try:
        condition = jmespath.compile(expression)
        unknown = [name for name in _functions(condition.parsed) if name not in _KNOWN]
        with suppress(JMESPathTypeError, UnknownFunctionError):
            condition.search({})  # raises for a wrong number of arguments
    except (JMESPathError, RecursionError) as error:
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"this is not a JMESPath expression: {cause}; write it like"
            " data.object.amount > `1000`, with numbers in backticks and texts in 'quotes'"
        ) from error
    if unknown:
        raise ValueError(f"JMESPath has no function {unknown[0]}()")
    return condition


def value_of(expression: str, body: bytes) -> Any:
    """Returns the value of an expression; None if the body is not JSON or does not suit it."""
    try:
        return compiled(expression).search(json.loads(body))
    except Exception:  # noqa: BLE001 - on unexpected types jmespath raises errors of Python
        return None


def is_true(value: Any) -> bool:
    """Returns whether JMESPath counts a value as true: not null, false or empty; 0 is."""
    return value is not None and value is not False and value not in ("", [], {})


def holds(expression: str, body: bytes) -> bool:
    """Returns whether a condition is true of a body."""
    return is_true(value_of(expression, body))


def _functions(node: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the functions that a parsed expression calls."""
    if node["type"] == "function_expression":
        yield node["value"]
    for child in node["children"]:
        if isinstance(child, dict) and "type" in child:
            yield from _functions(child)
