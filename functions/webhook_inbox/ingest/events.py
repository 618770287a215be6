"""Builds the event of a verified delivery."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import form_field, query_field, text_at
from webhook_inbox.domain.manifest import SPLITTER, TENANT_PATH, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import BATCH, Delivery, StoredEvent
from webhook_inbox.domain.provider import Identity, Provider, Verified
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.secrets import REDACTED
from webhook_inbox.ingest.fingerprint import Fingerprint, fingerprint
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.queue.message_groups import ordering_keys_of

# The last three record the chain of calls between agents.
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
    """A delivery's identity and event; no event where the source does not store its type.

    `ignored` is then the event whose guard has to be written all the same, if any.
    """

    identity: Identity
    event: StoredEvent | None
    ignored: StoredEvent | None = None


def event_of(
    delivery: Delivery,
    provider: Provider,
    verified: Verified,
    *,
    manifest: Manifest,
    spec: SourceSpec,
) -> Named:
    """Returns the event of a verified delivery, with its runs.

    Raises:
        Rejected: the delivery, or an item of it, cannot be named.
    """
    delivery = _without_tokens(delivery, provider)
    if _holds_many(delivery, provider):
        event = batch_event(delivery, provider, verified)
        event = replace(event, tenant=tenant_of(delivery, spec))
        return Named(Identity(event.event_id, event.type), event)
    identity = identify(delivery, provider, manifest, spec)
    wanted = is_stored(identity, manifest, spec)
    if not wanted and not (provider.guard and provider.guards_ignored):
        return Named(identity, None)
    handlers = handlers_for(identity, manifest, spec) if wanted else ()
    event = new_event(delivery, provider, identity, verified, handlers)
    patterns = manifest.patterns_for(spec, identity.type) if provider.guard else ()
    event = replace(event, tenant=tenant_of(delivery, spec))
    event = replace(event, guard=guard_of(provider, verified, patterns))
    return Named(identity, event) if wanted else Named(identity, None, event)


def identify(
    delivery: Delivery, provider: Provider, manifest: Manifest, spec: SourceSpec
) -> Identity:
    """Returns the identity of a delivery's event.

    Raises:
        Rejected: it cannot be named.
    """
    identity = provider.identify(delivery)
    if identity.skimmed and not is_stored(identity, manifest, spec):
        # Between the edges of the body may be an error, or another type.
        return provider.identify(delivery, parsed=True)
    return identity


def is_stored(identity: Identity, manifest: Manifest, spec: SourceSpec) -> bool:
    """Returns whether a source stores an event: its types exclude only a type that is certain."""
    return identity.doubt is not None or manifest.wants(spec, identity.type)


def handlers_for(
    identity: Identity, manifest: Manifest, spec: SourceSpec
) -> tuple[HandlerSpec, ...]:
    """Returns the handlers of an event; all of its source if its type is not certain."""
    if identity.doubt is not None:
        return manifest.handlers_of(spec.name)
    return manifest.runs_for(spec.name, identity.type)


def name_of(delivery: Delivery, provider: Provider) -> Identity:
    """Returns the identity of a delivery's event.

    Raises:
        Rejected: the delivery, or an item of it, cannot be named.
    """
    delivery = _without_tokens(delivery, provider)
    many = _holds_many(delivery, provider)
    return _batch_name(delivery, provider) if many else provider.identify(delivery)


# Raw values in JSON, or the begin of one that was cut. The first two are forms in which a provider
# sends tokens; a value of another form is not read, as its end is known to a parser only.
# One step for each escape: with a step for the text behind it too, it takes twice as long.
_TEXT: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_LIST: Final = rf"\[\s*+(?:{_TEXT}\s*+,?+\s*+)*+(?:\]|\Z)"
_REST: Final = r"[\[{].*+"
_WORD: Final = r"(?!null[\s,\]}])[^\s,\]}]++"
# Rejected bodies with more members that hold tokens are not kept, and accepted ones are parsed. No
# delivery that can be verified has more different tokens.
TOKEN_MEMBERS: Final = 2_000
DIFFERENT_TOKENS: Final = 100
OMITTED: Final = "omitted"


def substituted(body: bytes, names: frozenset[str], token: Callable[[str], str]) -> bytes:
    """Returns a body with each token in these JSON members replaced; all else as it is written.

    In UTF-8, if it is JSON in another encoding. A body that is not JSON may hold tokens as well.
    A member that is neither a text nor a list of texts is omitted; so is all that follows it, if
    it is an object or another list. Empty, if there are more members than a batch has, or if it is
    in another encoding and not Unicode.
    """
    encoding = json.detect_encoding(body)
    if encoding != "utf-8":
        try:
            body = body.decode(encoding).encode()
        except UnicodeError:
            # To replace what is not Unicode takes 250 times as long as to hash it.
            return b""
    count = sum(body.count(f'"{name}"'.encode()) for name in names)
    if count > TOKEN_MEMBERS:
        return b""
    known: dict[bytes, bytes] = {}
    budget = iter(range(DIFFERENT_TOKENS))

    def limited(text: str) -> str:
        return OMITTED if next(budget, None) is None else token(text)

    def replaced(found: re.Match[bytes]) -> bytes:
        raw = found["plain"] or b""
        if raw not in known and len(known) >= DIFFERENT_TOKENS:
            return found["name"] + _omitted(raw)
        if raw not in known:
            known[raw] = _substitute(raw, limited)
        return found["name"] + known[raw]

    return _members(names).sub(replaced, body) if count else body


@lru_cache(maxsize=8)
def _members(names: frozenset[str]) -> re.Pattern[bytes]:
    listed = "|".join(map(re.escape, sorted(names)))
    value = rf"(?:(?P<plain>{_TEXT}|{_LIST})|{_REST}|{_WORD})"
    return re.compile(rf'(?P<name>"(?:{listed})"\s*+:\s*+){value}'.encode(), re.DOTALL)


def _substitute(raw: bytes, token: Callable[[str], str]) -> bytes:
    if not raw or (raw.startswith(b"[") and raw.count(b",") >= DIFFERENT_TOKENS):
        return _omitted(raw)
    try:
        # Strictly: to pass on a surrogate takes as long as to hash 800 bytes.
        value = json.loads(raw.decode())
    except ValueError:
        value = ""
    return _json([token(text) for text in value] if isinstance(value, list) else token(value))


def _omitted(raw: bytes) -> bytes:
    return _json([OMITTED] if raw.startswith(b"[") else OMITTED)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _without_tokens(delivery: Delivery, provider: Provider) -> Delivery:
    """Returns a verified delivery without the tokens in its body, however they are spelled."""
    if not provider.token_members:
        return delivery
    # Where a part was omitted, the text is no longer JSON, and is written anew from the original.
    hidden = substituted(delivery.body, provider.token_members, lambda _: REDACTED)
    for body in (hidden, delivery.body):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(body)
            changed = _redact_members(parsed, provider.token_members)
            return replace(delivery, body=_json(parsed) if changed else body)
    raise Rejected(Reason.MALFORMED, "the body cannot be stored without its tokens")


def _redact_members(document: object, names: frozenset[str]) -> bool:
    """Redacts what is not yet; returns whether there was anything."""
    changed, left = False, [document]
    while left:
        match left.pop():
            case dict() as members:
                for name in members.keys() & names:
                    value = members[name]
                    hidden = [REDACTED] * len(value) if isinstance(value, list) else REDACTED
                    changed = changed or value != hidden
                    members[name] = hidden
                left += members.values()
            case list() as elements:
                left += elements
    return changed


def new_event(
    delivery: Delivery,
    provider: Provider,
    identity: Identity,
    verified: Verified,
    handlers: Sequence[HandlerSpec],
) -> StoredEvent:
    """Returns the event of a delivery, with a run of each of the handlers and without a guard."""
    stored = GENERAL_HEADERS | provider.kept_headers
    return StoredEvent(
        source=delivery.source,
        event_id=dedupe_key(identity.event_id),
        type=identity.type,
        received_at=delivery.received_at,
        body=delivery.body,
        fingerprint=_fingerprint_of(delivery, provider),
        headers={k: storable(v) for k, v in delivery.headers.items() if k in stored},
        runs=tuple(spec.name for spec in handlers),
        signature_hash=_signature_hash(provider, verified),
        verified_with=verified.secret,
        occurred_at=identity.occurred_at or verified.signed_at,
        request_id=delivery.request_id,
        agent=verified.agent,
        ordering_keys=ordering_keys_of(handlers, delivery.body),
        held=identity.doubt is not None and bool(handlers),
        doubt=str(identity.doubt or ""),
    )


def guard_of(provider: Provider, verified: Verified, patterns: Sequence[str]) -> str:
    """Returns the replay guard of a signed content (G6); "" if its provider needs none."""
    if provider.guard is None:
        return ""
    content = provider.guard(verified, patterns)
    if not content:
        return ""
    # Each agent has its own; an agent's name never contains a zero byte.
    return digest_of(verified.agent.encode() + b"\0" + content if verified.agent else content)


def tenant_of(delivery: Delivery, spec: SourceSpec) -> str:
    """Returns the tenant of a verified delivery, "" if it names none.

    Up to 128 printable ASCII characters without blanks, as SQS takes a message group; the hash of
    any other text, so no name of a tenant costs an event.
    """
    if not spec.tenant:
        return ""
    kind, name = spec.tenant
    found: str | None
    if kind == "header":
        found = delivery.headers.get(name)
    elif spec.tenant == TENANT_PATH:
        # /webhooks/SOURCE/TENANT; API Gateway has decoded it.
        found = delivery.path.partition(f"/webhooks/{spec.name}/")[2]
    else:
        found = {"json": text_at, "form": form_field, "query": query_field}[kind](delivery, name)
    return token(found) if found else ""


def _fingerprint_of(delivery: Delivery, provider: Provider) -> str:
    canonical = provider.canonical(delivery) if provider.canonical else delivery.body
    return Fingerprint.of(canonical, provider.volatile)


def _signature_hash(provider: Provider, verified: Verified) -> str:
    # The hash of a token would confirm a guess of it forever (G10).
    if provider.bears_tokens:
        return ""
    return sha256(verified.signature.encode(errors="replace")).hexdigest()


def batch_event(delivery: Delivery, provider: Provider, verified: Verified) -> StoredEvent:
    """Returns the event of a whole batch: named by its content, split by its only run."""
    event = new_event(delivery, provider, _batch_name(delivery, provider), verified, (SPLITTER,))
    return replace(event, guard=guard_of(provider, verified, ()))


def item_event(
    item: Delivery,
    provider: Provider,
    identity: Identity,
    handlers: Sequence[HandlerSpec],
    *,
    batch: StoredEvent,
) -> StoredEvent:
    """Returns the event of a batch's item; it was verified together with its batch.

    It has no guard: the guard of the batch covers its items, which all have the same signature.
    """
    verified = Verified(
        batch.verified_with,
        signature="",
        content=item.body,
        signed_at=batch.occurred_at,
        agent=batch.agent,
    )
    event = new_event(item, provider, identity, verified, handlers)
    name = batch.event_id.removeprefix(f"{BATCH}:")
    return replace(event, signature_hash=batch.signature_hash, batch=name)


def storable(value: str) -> str:
    """Returns a header's value cut to the limit, as valid text."""
    return value[:HEADER_LIMIT].encode(errors="replace").decode()


def _holds_many(delivery: Delivery, provider: Provider) -> bool:
    """Returns whether a delivery is a batch.

    Raises:
        Rejected: an item cannot be named; the whole batch is refused while the provider has it.
    """
    parts = provider.batch(delivery) if provider.batch else None
    for part in parts or ():
        provider.identify(part)
    return parts is not None


def _batch_name(delivery: Delivery, provider: Provider) -> Identity:
    return Identity(f"{BATCH}:{fingerprint(delivery.body, provider.volatile)}", BATCH)
