"""Verifies conformance vectors with the code of ingest.

A vector is a recorded delivery with its secret, the time of its verification, and the expected
verdict: `valid`, `invalid-signature`, `malformed` or `stale`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from webhook_inbox import providers
from webhook_inbox.domain.errors import (
    ConfigurationError,
    InboxError,
    Reason,
    Rejected,
    Unavailable,
)
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.ingest.verification import PublishedKeys, verify

VALID: Final = "valid"
UNUSABLE: Final = "unusable"
# The format's verdicts for our reasons. It has none for an unusable or unavailable key, under which
# no signature is valid.
WORDS: Final = {
    Reason.MISSING_SIGNATURE: "malformed",
    Reason.FUTURE: "stale",
    Reason.NO_SECRET: "invalid-signature",
    Reason.KEY_UNAVAILABLE: "invalid-signature",
    Reason.UNKNOWN_KEY: "invalid-signature",
}
# The vectors' names of providers that we name differently.
ALIASES: Final = {
    "bird": "messagebird",
    "coinbase": "coinbase-commerce",
    "event-grid": "azure-event-grid",
    "sns": "aws-sns",
    "twitter-x": "twitter",
    "whatsapp": "meta",
    "x": "twitter",
}
SANDBOX: Final = ".sandbox."
# The placeholder for a secret that a vector does not need.
UNUSED: Final = json.dumps({"client_id": "conformance", "secret": "conformance"})


class BadVector(InboxError):
    """The file is not a list of vectors; the text names the reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a vector; `detail` is "" where it is valid."""

    id: str
    provider: str
    expected: tuple[str, ...]
    found: str
    detail: str = ""

    @property
    def agrees(self) -> bool:
        """True if the verdict is one of the expected ones."""
        return self.found in self.expected


def read(text: str) -> list[Mapping[str, Any]]:
    """Returns a file's vectors; raises BadVector for an invalid file."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadVector(f"not JSON: {error}") from error
    listed = found.get("vectors") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not listed:
        raise BadVector("no vectors: the file must be a JSON list of them")
    if not all(isinstance(vector, dict) for vector in listed):
        raise BadVector("the vectors must be JSON objects")
    return listed


def judge(vector: Mapping[str, Any]) -> Verdict:
    """Returns a vector's verdict; `unusable` and the reason where it cannot be verified."""
    name, label = str(vector.get("id", "?")), str(vector.get("provider", "?"))
    also = vector.get("expect_also")
    expected = (str(vector.get("expect", VALID)), *(also if isinstance(also, list) else ()))
    try:
        return Verdict(name, label, expected, *_found(vector))
    except KeyError as error:
        return Verdict(name, label, expected, UNUSABLE, f"{error} is missing")
    except (ConfigurationError, ValueError, TypeError, AttributeError, OverflowError) as error:
        return Verdict(name, label, expected, UNUSABLE, str(error))


def source_of(vector: Mapping[str, Any]) -> SourceSpec:
    """Returns the source of a vector's delivery.

    Raises:
        ConfigurationError: no provider of ours has this name or scheme.
    """
    provider_name = provider_of(str(vector["provider"]), str(vector.get("scheme", "")))
    module = import_module(f"{providers.__name__}.{providers.MODULES[provider_name]}")
    known: frozenset[str] = getattr(module, "SETTINGS", frozenset())
    variants: Mapping[str, Mapping[str, Any]] = getattr(module, "VARIANTS", {})
    given: dict[str, Any] = {**vector, "url": _base(str(vector.get("url", "")))}
    # A vector does not say where its source is, but its delivery names the sandbox's own host.
    if any(SANDBOX in str(value) for value in dict(vector["headers"]).values()):
        given.setdefault("environment", "sandbox")
    settings = {key: given[key] for key in known if given.get(key)}
    settings |= variants.get(str(vector.get("scheme", "")), {})
    return SourceSpec("conformance", provider_name, "conformance", settings=settings)


def provider_of(name: str, scheme: str) -> str:
    """Returns our name of a vector's provider; raises ConfigurationError."""
    names = (name, scheme, ALIASES.get(name, ""), ALIASES.get(scheme, ""))
    found = next((known for known in names if known in providers.MODULES), None)
    if found is None:
        # `plivo-v3` is a scheme of `plivo`.
        begun = [k for k in providers.MODULES for n in names if n.startswith(f"{k}-")]
        found = max(begun, key=len, default=None)
    if found is None:
        raise ConfigurationError(f'no provider is called "{name}" (scheme "{scheme}")')
    return found


def delivery_of(vector: Mapping[str, Any]) -> Delivery:
    """Returns a vector's delivery, received at the vector's own time."""
    parts = urlsplit(str(vector.get("url", "")))
    headers = {name.lower(): str(value) for name, value in dict(vector["headers"]).items()}
    return Delivery(
        source="conformance",
        method=str(vector.get("method", "POST")).upper(),
        path=parts.path or "/",
        query=parts.query,
        headers={"host": parts.netloc, **headers},
        body=b64decode(vector["body_base64"] or "", validate=True),
        received_at=datetime.fromtimestamp(vector["now"], UTC),
    )


def secrets_of(vector: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the source's secrets: the shared secrets, or the public key.

    Several, in a list or under names such as `secondary_secret_base64`, are all valid, as during a
    rotation.
    """
    shared = [v for name, v in vector.items() if "secret" in name and name.endswith("_base64")]
    given = [v for v in shared if v] or [vector.get("public_key_base64") or []]
    listed = [one for v in given for one in (v if isinstance(v, list) else [v])]
    return tuple(text for one in listed for text in _texts(b64decode(one))) or (UNUSED,)


class Published:
    """A fetcher of the published keys that a vector contains."""

    def __init__(self, vector: Mapping[str, Any]) -> None:
        self._vector = vector

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port `Fetcher`."""
        for name in ("jwks", "jwk"):
            # Where `jwks` is a URL, the keys are in `jwk`.
            if (keys := self._vector.get(name)) and not isinstance(keys, str):
                return json.dumps(keys).encode()
        if encoded := self._vector.get("public_key_base64"):
            return b64decode(encoded)
        raise Unavailable("https", "GET", f"the vector has nothing for {wanted.url}")


def _found(vector: Mapping[str, Any]) -> tuple[str, str]:
    provider = providers.load(source_of(vector))
    keys = PublishedKeys(Published(vector))
    secrets: Sequence[str] = secrets_of(vector) if provider.needs_secret else ()
    try:
        verify(provider, delivery_of(vector), secrets, keys)
    except Rejected as error:
        return WORDS.get(error.reason, str(error.reason)), error.detail
    return VALID, ""


def _texts(secret: bytes) -> tuple[str, ...]:
    """Returns a secret as text; binary keys in base64 and in hex."""
    try:
        return (secret.decode(),)
    except UnicodeDecodeError:
        return (b64encode(secret).decode(), secret.hex())


def _base(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]
