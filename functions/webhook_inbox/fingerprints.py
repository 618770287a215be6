"""When two deliveries of one id are the same event (G7)."""

import json
from hashlib import sha256


def fingerprint(body: bytes, volatile: tuple[str, ...]) -> str:
    """Returns the SHA-256, in hex, that tells honest retries from other content.

    Of the raw body; or, where fields are declared volatile and the body is a JSON object, of
    its canonical JSON without those top-level fields.
    """
    return sha256(_canonical(body, volatile) if volatile else body).hexdigest()


def _canonical(body: bytes, volatile: tuple[str, ...]) -> bytes:
    try:
        parsed = json.loads(body)
        if not isinstance(parsed, dict):
            return body
        kept = {name: value for name, value in parsed.items() if name not in volatile}
        return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body
