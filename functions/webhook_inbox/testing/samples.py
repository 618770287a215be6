"""Deliveries made from sample files, data or bytes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from webhook_inbox import providers
from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.manifest import HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhook_inbox.domain.secrets import APPROVAL_KEY, COMPLETION_KEY
from webhook_inbox.testing.errors import KitError, hidden

__tracebackhide__ = hidden

SIGNING: Final = "whsec_dGVzdGluZy1vbmx5LXNlY3JldCE="


def values(manifest: Manifest, given: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """Returns a value for each secret, in the form that its user expects."""
    found: dict[str, str | None] = {
        name: f"testing-{name}" for name in (*manifest.secrets, APPROVAL_KEY, COMPLETION_KEY)
    }
    for spec in manifest.destinations.values():
        named = spec.auth.get("bearer") or spec.auth.get("secret")
        found |= {named: f"testing-{named}"} if named else {}
        basic = spec.auth.get("basic")
        found |= {basic: f"tester:testing-{basic}"} if basic else {}
        found |= {spec.sign: SIGNING} if spec.sign else {}
    found |= given
    return {name: (value,) for name, value in found.items() if value is not None}


# Each provider accepts the form of one of these.
_SECRETS: Final = (SIGNING, "deadbeef" * 8, "testing:only-secret")
# The source settings without an inbox.toml: headers hold the id and the type.
PLAIN: Final[Mapping[str, Any]] = {
    "signature": {"header": "X-Signature", "signs": "{body}"},
    "event_id": {"header": "X-Event-Id"},
    "event_type": {"header": "X-Event-Type"},
}
Given = str | Path | bytes | Mapping[str, Any] | list[Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """An event of a test; `type` and `event_id` apply if the body has none."""

    body: bytes
    type: str
    event_id: str


def draft(
    given: Given, spec: HandlerSpec, *, type_: str | None, event_id: str, near: Path | None
) -> Draft:
    """Returns the event for a handler; a sample file is searched in `near` and above it."""
    if isinstance(given, str | Path):
        file = _found(Path(given), near)
        named = unquote(file.name.partition(".json")[0].partition("__")[0])
        return Draft(file.read_bytes(), type_ or named, event_id)
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    told = given if isinstance(given, Mapping) else {}
    literal = [each for each in spec.types if not set(each) & set("*?[")]
    kind = str(told.get("type") or (literal[0] if literal else ""))
    return Draft(body, type_ or kind, event_id or str(told.get("id", "")))


def delivery(
    made: Draft, source: SourceSpec, headers: Mapping[str, str], *, fresh: str, now: datetime
) -> Delivery:
    """Returns a draft as its provider would send it now, with the id `fresh` if it has none."""
    sample = Sample(made.event_id or fresh, made.type, made.body)
    provider = providers.load(source)
    secrets = (provider.pair()[0],) if provider.pair else _SECRETS
    failure: Exception = KitError("no secret signs it")
    for secret in secrets:
        try:
            sent = provider.send(sample, secret, now)
        except (InboxError, ValueError) as error:
            failure = error
            continue
        told = {**{name.lower(): value for name, value in sent.headers.items()}, **headers}
        path = f"/webhooks/{source.name}"
        return Delivery(source.name, "POST", path, sent.query, told, sent.body, now)
    raise KitError(f"{source.provider} cannot send such an event: {failure}") from failure


def trusting(agent: str) -> Callable[[SourceSpec], Provider]:
    """Returns a loader of providers that accept every delivery."""

    def load(source: SourceSpec) -> Provider:
        return replace(
            providers.load(source),
            verify=lambda _, __: Verified(0, "", b"", agent=agent),
            needs_secret=False,
            fetches=None,
            guard=None,
            greet=None,
            handshake=None,
            offer=None,
        )

    return load


def _found(file: Path, near: Path | None) -> Path:
    above = (near, *near.parents) if near and not file.is_absolute() else ()
    places = [file, *(top / file for top in above)]
    for place in places:
        if place.is_file():
            return place
    raise KitError(f"{file}: no such file, here or above the handlers; give the event as a dict")
