"""Hypotheses about secrets: quoted, truncated or encoded."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from urllib.parse import unquote

from webhook_inbox.client.diagnosis.hypothesis import RejectionCause, Trial


def secrets(trial: Trial) -> Iterator[Trial]:
    """Reverts common changes of the secret."""
    for place, secret in enumerate(trial.secrets):
        for code, words, text in _secrets(secret):
            if text and text != secret:
                others = (*trial.secrets[:place], text, *trial.secrets[place + 1 :])
                cause = RejectionCause(code, words, "set it exactly as the provider shows it")
                yield trial.without(cause, secrets=others)


def _secrets(secret: str) -> Iterator[tuple[str, str, str]]:
    yield "secret-white-space", "the secret is surrounded by white space", secret.strip()
    bare = secret.strip().strip("\"'`")
    yield "secret-quoted", "the secret is in quotes", bare
    yield "secret-lines", "the key's line breaks were written as \\n", secret.replace("\\n", "\n")
    yield "secret-escaped", "the secret was percent-encoded", unquote(secret)
    name, equals, value = secret.partition("=")
    if equals and name.replace("_", "").isalnum() and name.isupper():
        yield "secret-quoted", "the secret follows a variable name", value
    for part in _parts(secret):
        yield "secret-quoted", "the secret is inside a JSON object", part
    code, words = "secret-encoding", "the secret is not encoded as the provider's key is: "
    yield code, words + "the prefix `whsec_` is missing", f"whsec_{bare}"
    yield code, words + "it has an extra prefix `whsec_`", bare.removeprefix("whsec_")
    encoded = b64encode(secret.encode()).decode()
    yield code, words + "its base64 is the key", encoded
    yield code, words + "its base64 is the key, after `whsec_`", f"whsec_{encoded}"
    yield code, words + "its hex is the key", secret.encode().hex()
    for how, read in (("hex", bytes.fromhex), ("base64", _base64)):
        try:
            key = read(bare)
        except ValueError:
            continue
        yield code, words + f"it is {how}, and the key base64", b64encode(key).decode()
        yield code, words + f"it is {how}, and the key hex", key.hex()
        yield code, words + f"it is {how} of the key", key.decode(errors="ignore")
        yield (
            code,
            words + f"it is {how} of the key, with a line break",
            key.decode(errors="ignore").strip(),
        )


def _base64(text: str) -> bytes:
    return b64decode(text, validate=True)


def _parts(secret: str) -> list[str]:
    try:
        found = json.loads(secret)
    except (ValueError, RecursionError):
        return []
    values = found.values() if isinstance(found, dict) else [found]
    return [value for value in values if isinstance(value, str)]
