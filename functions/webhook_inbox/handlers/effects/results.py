"""Stores the results of effects as compressed JSON."""

import json
import zlib
from collections.abc import Callable
from typing import Any, Final

from webhook_inbox.domain.secrets import redacted
from webhook_inbox.handlers.effects.plan import plain

# An item holds 400 KB, and its other attributes are small. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
RESULT_LIMIT: Final = 300 * 1024


class Unstorable(ValueError):
    """The result is not JSON, or exceeds 300 KB."""


def encode(result: Any, *, redact: Callable[[str], str] = str) -> bytes:
    """Encodes a result for storage, with secrets removed (G10).

    Raises:
        Unstorable: the result is not JSON, or exceeds 300 KB.
    """
    try:
        text = _json(result)
        if redact(text) != text:
            text = _json(redacted(json.loads(text), redact))
        data = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unstorable(f"its result is not JSON: {error}") from error
    if len(data) > RESULT_LIMIT:
        size = -(-len(data) // 1024)
        raise Unstorable(f"its result has {size} KB; the limit is 300 KB")
    return zlib.compress(data)


def decode(stored: bytes) -> Any:
    """Decodes a stored result."""
    return json.loads(zlib.decompress(stored))


def _json(data: Any) -> str:
    return json.dumps(data, default=plain, ensure_ascii=False, separators=(",", ":"))
