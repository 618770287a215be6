"""Builds a provider from its scheme and its naming."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.providers.schemes.identity.event_identity import InHeader, Naming, headers_in
from webhook_inbox.providers.schemes.signatures.base import Signed
from webhook_inbox.providers.schemes.signatures.signed_content import Template


class Scheme(Protocol):
    """One of this package's schemes."""

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Raises Rejected and nothing else."""

    def precheck(self, delivery: Delivery, keys: Sequence[str]) -> None:
        """Raises Rejected and nothing else."""

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        """Raises ConfigurationError."""


def build_provider(
    name: str, scheme: Scheme, naming: Naming, *, facts: Facts, **more: Any
) -> Provider:
    """Returns a provider.

    Defaults, unless `more` overrides them:

    - Unless the signed content determines the id, it is guarded (G6). A function of the delivery
      never determines it, unless `more` has `guard=None` and the provider's module says why.
    - A sample has its id and type in the headers that the naming looks at first.

    Args:
        name: as inbox.toml spells it.
        scheme: how a delivery is verified and signed.
        naming: how an event is named.
        facts: its facts.
        more: other attributes of the provider.
    """
    provider = Provider(
        name=name,
        verify=scheme.verify,
        precheck=scheme.precheck,
        signature_headers=scheme.reads,
        identify=naming.identify,
        sign=_signer(scheme, naming),
        facts=facts,
        kept_headers=_named(naming) - scheme.reads,
        window=scheme.window.tolerance if isinstance(scheme, Signed) and scheme.window else None,
    )
    if _needs_guard(scheme, naming):
        fits = fits_others(scheme, naming)
        provider = replace(provider, guard=signed_content, guards_ignored=fits)
    if isinstance(pair := getattr(scheme, "pair", None), Callable):  # type: ignore[arg-type]
        provider = replace(provider, pair=pair)
    if compose := more.get("compose"):
        more.setdefault("sign", lambda *sample: dict(compose(*sample).headers))
    kept = provider.kept_headers | more.pop("kept_headers", frozenset())
    return replace(provider, kept_headers=kept, **more)


def _signer(scheme: Scheme, naming: Naming) -> Callable[[Sample, str, datetime], dict[str, str]]:
    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        named: dict[str, str] = {}
        for finders, value in ((naming.id, sample.event_id), (naming.type, sample.type)):
            if finders and isinstance(finders[0], InHeader):
                named[finders[0].names[0]] = value
        return {**named, **scheme.sign(sample, secret, now)}

    return sign


def _named(naming: Naming) -> frozenset[str]:
    finders = (*naming.id, *naming.type, *naming.occurred_at, *naming.retry, *naming.retry_reason)
    return headers_in(finders) | frozenset(naming.repeated)


def _needs_guard(scheme: Scheme, naming: Naming) -> bool:
    """Returns whether the same signature could fit another event id.

    A signed time does not matter: within its window a captured delivery can be sent again.
    """
    if not isinstance(scheme, Signed):
        # A token without the body's hash proves its sender, who can also change the body.
        return bool(getattr(scheme, "body_hash", "") and headers_in(naming.id))
    if not isinstance(scheme.signs, Template):
        return True
    # An id is in a header or in the body.
    outside = headers_in(naming.id)
    signed = scheme.ids if scheme.signs.pins("id") else ()
    return not outside <= set(signed) or not (outside or scheme.signs.pins("body"))


def fits_others(scheme: Scheme, naming: Naming) -> bool:
    """Returns whether the same signature could fit another body or another type.

    The bytes that a function returns may be those of several bodies: sorted fields without
    separators are. A token covers the body's hash or nothing.
    """
    # A provider that sends the type in the body does so always, so a later place is not read.
    outside = headers_in(naming.type[:1])
    if not isinstance(scheme, Signed):
        return bool(getattr(scheme, "body_hash", "") and outside)
    if len(scheme.templates) != 1:
        return True
    template = scheme.templates[0]
    return not all(map(template.pins, ("body", *(f"header:{name}" for name in outside))))


def signed_content(verified: Verified, _: Sequence[str]) -> bytes:
    """Guards what the signature covers."""
    return verified.content


def patterns_and_content(verified: Verified, patterns: Sequence[str]) -> bytes:
    """Guards the declared patterns with the content, if one body is sent under several types.

    The type is not signed, so it is not guarded itself: an attacker could make up any number of
    types that match `*`. Types that match the same patterns are one.
    """
    return "\n".join(patterns).encode() + b"\n" + verified.content
