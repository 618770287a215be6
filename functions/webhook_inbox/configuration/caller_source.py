"""The tables of sources with `auth = "jwt"`, `"api-key"` or `"basic"`."""

from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field

from webhook_inbox.configuration.addresses import LOOPBACK
from webhook_inbox.configuration.document import Source
from webhook_inbox.configuration.hmac_source import EventId, EventType, Texts
from webhook_inbox.configuration.table import Header, Text, duration_up_to

# With a larger tolerance a token's expiry would mean little.
LONGEST_TOLERANCE: Final = "10m"
LONGEST_AGE: Final = "24h"
# Copied, since importing them would load the JWT library to read a file.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    "HS256", "HS384", "HS512",
]  # fmt: skip


def _published(value: str) -> str:
    parts = urlsplit(value)
    host = parts.hostname or ""
    if not host or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(f'"{value}" is not a URL; write it like "https://issuer.example/jwks"')
    if parts.username is not None or parts.fragment:
        raise ValueError("credentials and fragments are not allowed; remove them")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in LOOPBACK):
        raise ValueError(f'"{value}" is not encrypted; use https (http on this machine only)')
    return value


class CallerSource(Source):
    """A source that declares the authentication of its callers."""

    model_config = ConfigDict(extra="forbid")

    event_id: EventId = Field(description="one of { header = … }, { json = … }, { body = … }")
    event_type: EventType | None = Field(
        default=None, description="one of header, json, form, query, value"
    )


class TokenEventId(EventId):
    """The location of the event id, which may be a claim of the token."""

    places = (*EventId.places, "claim")

    claim: Text | None = Field(default=None, description='the token\'s claim with the id, "jti"')


class TokenEventType(EventType):
    """The location of the event type, which may be a claim of the token."""

    places = (*EventType.places, "claim")

    claim: Text | None = Field(default=None, description="the token's claim with the type")


class JwtSource(CallerSource):
    """A source with `auth = "jwt"`."""

    issuer: Texts = Field(
        description="the issuer of the tokens (claim `iss`), or a list of issuers"
    )
    audience: Texts = Field(
        description="the audience that the claim `aud` must contain, or a list of which it must"
        " contain one"
    )
    algorithms: list[Algorithm] = Field(
        default=["RS256", "PS256", "ES256", "EdDSA"],
        min_length=1,
        description="the accepted ones; HS256, HS384 and HS512 only for shared keys in the secret",
    )
    jwks: Annotated[str, AfterValidator(_published)] | None = Field(
        default=None,
        description="the URL of the issuer's keys; without it the secret has the agents' keys",
    )
    agent_claim: Text = Field(
        default="sub",
        description="the claim with the agent's name, for keys that belong to no agent",
    )
    body_claim: Text | None = Field(
        default=None,
        description="the claim with the SHA-256 of the body, in hex or unpadded base64url;"
        " without it a token is valid for any body",
    )
    header: Header = Field(default="Authorization", description="the header with the token")
    prefix: str | None = Field(
        default=None,
        description='the text before the token; "Bearer " in `Authorization`, nothing elsewhere',
    )
    tolerance: Annotated[str, AfterValidator(duration_up_to(LONGEST_TOLERANCE))] = Field(
        default="1m",
        description='the allowed clock difference for `exp`, `nbf` and `iat`, at most "10m"',
    )
    max_age: Annotated[str, AfterValidator(duration_up_to(LONGEST_AGE))] | None = Field(
        default=None,
        description='the validity of a token after its `iat`, at most "24h"; until `exp` if absent',
    )
    event_id: TokenEventId = Field(
        description="one of { header = … }, { json = … }, { claim = … }, { body = … }"
    )
    event_type: TokenEventType | None = Field(
        default=None, description="one of header, json, form, query, claim, value"
    )


class ApiKeySource(CallerSource):
    """A source with `auth = "api-key"`."""

    header: Header = Field(default="X-Api-Key", description="the header with the key")
    prefix: str = Field(default="", description='the text before the key, like "Bearer "')


class BasicSource(CallerSource):
    """A source with `auth = "basic"`; it has no further keys."""
