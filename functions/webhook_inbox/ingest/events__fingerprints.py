"""When two deliveries of one id are the same event (G7)."""

import json
from hashlib import sha256


def fingerprint(body: bytes, volatile: tuple[str, ...]) -> str:
    """Returns the SHA-256, in hex, that tells honest retries from other content.

    Of the raw body; or, where fields are declared volatile and the body is JSON, of its
    canonical JSON without them. A field is a dotted path; it goes through lists.
    """
    return sha256(_canonical(body, volatile) if volatile else body).hexdigest()


def _canonical(body: bytes, volatile: tuple[str, ...]) -> bytes:
    try:
        parsed = json.loads(body)
        if not isinstance(parsed, dict | list):
            return body
        for path in volatile:
            _drop(parsed, path.split("."))
        return json.dumps(parsed, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return body


def _drop(value: object, names: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _drop(item, names)
    elif isinstance(value, dict):
        if len(names) == 1:
            value.pop(names[0], None)
        else:
            _drop(value.get(names[0]), names[1:])
