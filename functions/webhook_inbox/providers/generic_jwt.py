"""`auth = "jwt"`: callers send a JSON Web Token of an issuer that inbox.toml names.

The key is an agent's own, from the source's secret, or published by the issuer; then a claim names
the agent. A token does not cover the body, unless a claim has its hash.
Source: RFC 7515, RFC 7517, RFC 7519; RFC 8725 on attacks against them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.providers.schemes.builder import signed_content
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.generic.identity import (
    IN_BODY,
    headers_of,
    naming,
    sample_headers,
)
from webhook_inbox.providers.schemes.jwt import keys as jwt_keys
from webhook_inbox.providers.schemes.jwt import signing
from webhook_inbox.providers.schemes.jwt.jwt import Jwt, Times
from webhook_inbox.providers.schemes.signatures.encodings import base64url, hexadecimal

SETTINGS: Final = frozenset(
    {
        *("issuer", "audience", "algorithms", "jwks", "agent_claim", "body_claim"),
        *("header", "prefix", "tolerance", "max_age", "event_id", "event_type"),
    }
)
EXAMPLE: Final = {
    "issuer": "https://agents.example",
    "audience": "https://inbox.example/webhooks/agents",
    "event_id": {"header": "X-Event-Id"},
    "event_type": {"json": "type"},
}
HEADER: Final = "Authorization"
AGENT_CLAIM: Final = "sub"
TOLERANCE: Final = "1m"
# Shared-secret algorithms are opt-in.
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")
FACTS: Final = Facts(
    title="Your own callers, by token",
    scheme="JWT, RS256, PS256, ES256, EdDSA or shared HS256; claims `iss`, `aud`, `exp`, the agent",
    body="none",
    window="as long as the token: `exp`, or `max_age` after its `iat`",
    event_id="as declared: a header, a JSON path, a claim, or the body's hash",
    answer_within="as your callers do",
    retries="as your callers do",
    key_from='public keys of your agents as `{"AGENT": "PEM"}`, JWKs or a JWK set by `kid`; shared'
    " keys in base64; none with `jwks`",
    resend="as your callers do",
)
# The agent of a sample that is signed with an issuer's key.
SAMPLE: Final = "sample"


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider that the tables declare; raises ConfigurationError."""
    scheme, jwks = _scheme(settings), given.text(settings, "jwks", default="")
    names, token = naming(settings, claim=scheme.claim), frozenset({scheme.header})

    def keys(*_: object) -> Fetch:
        return Fetch(jwks)

    def verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
        verified = scheme.verify(delivery, secrets)
        if scheme.body_hash:
            return verified
        # Such a token dates itself, not the event, and does not cover it.
        return replace(verified, content=delivery.body, signed_at=None)

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        claims = {scheme.agent_claim: SAMPLE} | _claims(settings, sample)
        sent = scheme.issue(sample, secret, now, claims)
        return {**sent, **sample_headers(settings, sample)}

    return Provider(
        name="jwt",
        verify=verify,
        precheck=scheme.precheck,
        identify=names.identify,
        sign=sign,
        pair=_pair(scheme.algorithms, published=bool(jwks)),
        needs_secret=not jwks,
        fetches=keys if jwks else None,
        window=scheme.times.max_age,
        guard=_guard(settings),
        guards_ignored=bool(scheme.body_hash)
        and not {"header", "query"}.isdisjoint(settings.get("event_type", {})),
        kept_headers=headers_of(settings, besides=token),
        signature_headers=token,
        token_headers=token,
        facts=replace(FACTS, body="whole") if scheme.body_hash else FACTS,
    )


def _scheme(settings: Mapping[str, Any]) -> Jwt:
    header = given.text(settings, "header", default=HEADER)
    prefix = "Bearer " if header.lower() == HEADER.lower() else ""
    tolerance = duration(given.text(settings, "tolerance", default=TOLERANCE))
    max_age = given.text(settings, "max_age", default="")
    return Jwt(
        header=header.lower(),
        prefix=given.text(settings, "prefix", default=prefix),
        algorithms=_algorithms(settings),
        keys=jwt_keys.of_issuer if "jwks" in settings else jwt_keys.of_agents,
        signer=signing.first_that_signs,
        claims={
            "iss": given.one_or_more(settings, "issuer"),
            "aud": given.one_or_more(settings, "audience"),
        },
        body_hash=given.text(settings, "body_claim", default=""),
        body_encodings=(hexadecimal, base64url),
        agent_claim=given.text(settings, "agent_claim", default=AGENT_CLAIM),
        requires=("exp",),
        times=Times(
            ahead=tolerance, grace=tolerance, max_age=duration(max_age) if max_age else None
        ),
    )


def _algorithms(settings: Mapping[str, Any]) -> tuple[str, ...]:
    listed = given.texts(settings, "algorithms", default=ALGORITHMS)
    known = (*jwt_keys.ASYMMETRIC, *jwt_keys.SYMMETRIC)
    for name in listed:
        if name not in known:
            raise ConfigurationError(
                f'algorithms: "{name}" is not known; choose from {", ".join(known)}'
            )
        if name in jwt_keys.SYMMETRIC and "jwks" in settings:
            raise ConfigurationError(
                f"algorithms: the key of {name} is shared, so it is never published; remove it, or"
                " remove jwks and put the keys into the source's secret"
            )
    return listed or ALGORITHMS


def _claims(settings: Mapping[str, Any], sample: Sample) -> dict[str, str]:
    """Returns the claims that name a sample."""
    named = (("event_id", sample.event_id), ("event_type", sample.type))
    return {c: value for table, value in named if (c := settings.get(table, {}).get("claim"))}


def _guard(settings: Mapping[str, Any]) -> Callable[[Verified, Sequence[str]], bytes] | None:
    """Returns the guard, if a captured delivery could be replayed under another id.

    A token with the body's hash belongs to one delivery and is guarded, without its signature. Any
    other token may be reused, so the body is guarded.
    """
    inside = "claim" in settings["event_id"] or not IN_BODY.isdisjoint(settings["event_id"])
    return None if inside else signed_content


def _pair(algorithms: tuple[str, ...], *, published: bool) -> Callable[[], tuple[str, str]] | None:
    """Returns a key pair factory for the first algorithm; None if its key is shared."""
    if algorithms[0] in jwt_keys.SYMMETRIC:
        return None
    return lambda: signing.pair(algorithms[0], agent="" if published else SAMPLE)
