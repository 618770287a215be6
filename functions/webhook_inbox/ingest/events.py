"""Making the record of an event from a verified delivery."""

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final, NamedTuple

from webhook_inbox.domain.manifest import SPLITTER, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import BATCH, Delivery, StoredEvent
from webhook_inbox.domain.provider import Identity, Provider, Verified
from webhook_inbox.ingest.replay_attacks import content_hash
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.queue.message_groups import ordering_keys_of


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


# The last three are how agents that call each other tell who called whom.
GENERAL_HEADERS: Final = frozenset(
    {
        "content-type",
        "user-agent",
        "traceparent",
        "tracestate",
        "x-agent-call-chain",
        "x-agent-call-depth",
        "x-agent-trace-id",
    }
)
HEADER_LIMIT: Final = 1024


class Named(NamedTuple):
    """What a verified delivery holds; no event where the source does not store its type."""

    identity: Identity
    event: StoredEvent | None


def event_of(
    delivery: Delivery,
    provider: Provider,
    verified: Verified,
    *,
    manifest: Manifest,
    spec: SourceSpec,
) -> Named:
    """Returns the event that a verified delivery holds, with its runs.

    Raises:
        Rejected: it, or an item of it, has no name.
    """
    if _holds_many(delivery, provider):
        event = batch_event(delivery, provider, verified)
        return Named(Identity(event.event_id, event.type), event)
    identity = provider.identify(delivery)
    if not manifest.wants(spec, identity.type):
        return Named(identity, None)
    handlers = manifest.runs_for(spec.name, identity.type)
    return Named(identity, new_event(delivery, provider, identity, verified, handlers))


def name_of(delivery: Delivery, provider: Provider) -> Identity:
    """Returns the name of what a delivery holds.

    Raises:
        Rejected: it, or an item of it, has no name.
    """
    many = _holds_many(delivery, provider)
    return _batch_name(delivery, provider) if many else provider.identify(delivery)


def new_event(
    delivery: Delivery,
    provider: Provider,
    identity: Identity,
    verified: Verified,
    handlers: Sequence[HandlerSpec],
) -> StoredEvent:
    """Returns the event that a delivery holds, with a run of each of the handlers."""
    kept = GENERAL_HEADERS | provider.kept_headers
    content = provider.guard(delivery, identity) if provider.guard else None
    return StoredEvent(
        source=delivery.source,
        event_id=dedupe_key(identity.event_id),
        type=identity.type,
        received_at=delivery.received_at,
        body=delivery.body,
        fingerprint=fingerprint(delivery.body, provider.volatile),
        headers={k: storable(v) for k, v in delivery.headers.items() if k in kept},
        runs=tuple(spec.name for spec in handlers),
        signature_hash=_signature_hash(provider, verified),
        verified_with=verified.secret,
        occurred_at=identity.occurred_at or verified.signed_at,
        guard="" if content is None else content_hash(content, agent=verified.agent),
        request_id=delivery.request_id,
        agent=verified.agent,
        ordering_keys=ordering_keys_of(handlers, delivery.body),
    )


def _signature_hash(provider: Provider, verified: Verified) -> str:
    # A token's hash would tell whether a guess of it is right, for ever (G10).
    if provider.bears_tokens:
        return ""
    return sha256(verified.signature.encode(errors="replace")).hexdigest()


def batch_event(delivery: Delivery, provider: Provider, verified: Verified) -> StoredEvent:
    """Returns the event that a whole batch is: named by its content, split by its only run."""
    return new_event(delivery, provider, _batch_name(delivery, provider), verified, (SPLITTER,))


def item_event(
    item: Delivery,
    provider: Provider,
    identity: Identity,
    handlers: Sequence[HandlerSpec],
    *,
    batch: StoredEvent,
) -> StoredEvent:
    """Returns the event that an item of a batch is; it was verified when its batch was."""
    verified = Verified(
        batch.verified_with, signature="", signed_at=batch.occurred_at, agent=batch.agent
    )
    event = new_event(item, provider, identity, verified, handlers)
    return replace(event, signature_hash=batch.signature_hash)


def storable(value: str) -> str:
    """Returns a header's value as it can be stored: cut, and valid text."""
    return value[:HEADER_LIMIT].encode(errors="replace").decode()


def _holds_many(delivery: Delivery, provider: Provider) -> bool:
    """Tells whether a delivery is a batch; what cannot be named is refused with the whole.

    It is refused while the provider still has it.
    """
    parts = provider.batch(delivery) if provider.batch else None
    for part in parts or ():
        provider.identify(part)
    return parts is not None


def _batch_name(delivery: Delivery, provider: Provider) -> Identity:
    return Identity(f"{BATCH}:{fingerprint(delivery.body, provider.volatile)}", BATCH)
