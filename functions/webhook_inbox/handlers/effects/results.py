"""Results of effects as they are stored: compressed JSON."""

import json
import zlib
from collections.abc import Callable
from typing import Any, Final

from webhook_inbox.domain.secrets import redacted
from webhook_inbox.handlers.effects.plan import plain

# A row holds 400 KB, and the rest of it is small. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
RESULT_LIMIT: Final = 300 * 1024


class Unstorable(ValueError):
    """A result that is no JSON, or too large."""


def encode(result: Any, *, redact: Callable[[str], str] = str) -> bytes:
    """Returns a result as it is stored, its texts without secrets (G10).

    Raises:
        Unstorable: it is no JSON, or has more than 300 KB.
    """
    try:
        text = _json(result)
        if redact(text) != text:
            text = _json(redacted(json.loads(text), redact))
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


def _json(data: Any) -> str:
    return json.dumps(data, default=plain, ensure_ascii=False, separators=(",", ":"))
