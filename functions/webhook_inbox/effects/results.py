"""Results of effects as they are stored: compressed JSON."""

import json
import zlib
from typing import Any, Final

from webhook_inbox.effects.plan import plain

# A row holds 400 KB, and the rest of it is small. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
RESULT_LIMIT: Final = 300 * 1024


class Unstorable(ValueError):
    """A result that is no JSON, or too large."""


def encode(result: Any) -> bytes:
    """Returns a result as it is stored.

    Raises:
        Unstorable: it is no JSON, or has more than 300 KB.
    """
    try:
        text = json.dumps(result, default=plain, ensure_ascii=False, separators=(",", ":"))
        data = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unstorable(f"its result is no JSON: {error}") from error
    if len(data) > RESULT_LIMIT:
        size = -(-len(data) // 1024)
        raise Unstorable(f"its result has {size} KB, and 300 KB can be recorded")
    return zlib.compress(data)


def decode(stored: bytes) -> Any:
    """Returns a stored result."""
    return json.loads(zlib.decompress(stored))
