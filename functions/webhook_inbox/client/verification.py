"""How an event's delivery was verified."""

from collections.abc import Iterator

from webhook_inbox.client.sources import provider_of
from webhook_inbox.client.times import span
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.provider import Provider


def verification_of(event: StoredEvent, spec: SourceSpec | None) -> list[tuple[str, str]]:
    """Returns the facts about an event's verification; fewer where its source is not known."""
    return [*_scheme(event, spec), *_content(event)]


def _scheme(event: StoredEvent, spec: SourceSpec | None) -> Iterator[tuple[str, str]]:
    if spec is None:
        return
    yield "Provider", spec.provider
    provider = provider_of(spec)
    if provider is None:
        return
    yield "Scheme", _scheme_of(provider)
    yield "Verified with", _key(event, provider)
    window = provider.window
    yield "Signed time", f"checked, at most {span(window)} old" if window else "not checked"


def _scheme_of(provider: Provider) -> str:
    if provider.facts is not None:
        return provider.facts.scheme
    return f"signature in {', '.join(sorted(provider.signature_headers)) or 'the request'}"


def _key(event: StoredEvent, provider: Provider) -> str:
    if not provider.needs_secret:
        return "the provider's published key"
    return "the current secret" if event.verified_with == 0 else "the previous secret"


def _content(event: StoredEvent) -> Iterator[tuple[str, str]]:
    yield (
        "Replay guard",
        "the body is recognised under other ids" if event.guard else "none; its id is signed",
    )
    if event.doubt:
        yield "Type", f"not certain: {event.doubt}"
    if event.identical_to:
        yield "Identical body", f"received before as {event.identical_to}"
    yield "Fingerprint", event.fingerprint
    if event.signature_hash:
        yield "SHA-256 of the signature", event.signature_hash
    if event.agent:
        yield "Agent", event.agent
