"""A JMESPath condition on a JSON body."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError
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
    except (JMESPathError, RecursionError) as error:
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"this is not a JMESPath expression: {cause}; write it like"
            " data.object.amount > `1000`, with numbers in backticks and texts in 'quotes'"
        ) from error
    if unknown:
        raise ValueError(f"JMESPath has no function {unknown[0]}()")
    return condition


def holds(expression: str, body: bytes) -> bool:
    """Returns whether a condition is true of a body.

    As in JMESPath, null, false, and empty texts, lists and objects are false. A body that is not
    JSON, or that the expression cannot be applied to, does not match.
    """
    try:
        found = compiled(expression).search(json.loads(body))
    except Exception:  # noqa: BLE001 - on unexpected types jmespath raises errors of Python
        return False
    # 0 is true in JMESPath.
    return found is not None and found is not False and found not in ("", [], {})


def _functions(node: Mapping[str, Any]) -> Iterator[str]:
    """Yields the names of the functions that a parsed expression calls."""
    if node["type"] == "function_expression":
        yield node["value"]
    for child in node["children"]:
        if isinstance(child, dict) and "type" in child:
            yield from _functions(child)
