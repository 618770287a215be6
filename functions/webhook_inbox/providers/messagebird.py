"""MessageBird (Bird): a JWT in `MessageBird-Signature-JWT` with hashes of URL and body.

`url_hash` is the SHA-256 of the called address with its query, in its order. `payload_hash` is the
body's, present only if there is a body. A token is valid for one minute. Set `url` if a proxy or
custom domain changes the address that a request shows.
Source: messagebird/python-rest-api `request_validator.py` and its test data.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    fixed,
    in_json,
    in_query,
)
from webhook_inbox.providers.schemes.jwt.jwt import Claims, Jwt
from webhook_inbox.providers.schemes.signatures.encodings import matches

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/messagebird"}
LIFE: Final = timedelta(seconds=60)
FACTS: Final = Facts(
    title="MessageBird (Bird)",
    scheme="JWT, HS256, HS384 or HS512, claims `url_hash` and the body's `payload_hash`",
    window="as long as the token: 1 minute",
    event_id="the token's `jti`",
    key_from="the signing key, in the dashboard's developer settings; text, though it looks like"
    " hex",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns MessageBird's provider; `url` is the address without its query."""
    base = given.public_url(settings)
    scheme = Jwt(
        header="messagebird-signature-jwt",
        algorithms=("HS256", "HS384", "HS512"),
        claims={"iss": "MessageBird"},
        requires=("nbf", "exp", "url_hash"),
        check=partial(_covers, base),
    )

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        sent = Delivery("it", "POST", "/webhooks/it", "", {}, sample.body, now)
        begins = to_ms(now) // 1000
        times = {"nbf": begins, "exp": begins + LIFE.seconds}
        return scheme.issue(sample, secret, now, times | _hashes(base, sent))

    naming = Naming(
        id=(scheme.claim("jti"), content_hash),
        type=(in_json("type"), in_query("status"), fixed("request")),
        occurred_at=(in_json("message.createdDatetime"), scheme.claim("nbf")),
    )
    return build_provider("messagebird", scheme, naming, sign=sign, window=LIFE, facts=FACTS)


def _covers(base: str, claims: Claims, delivery: Delivery) -> None:
    """Raises Rejected where another URL or body is claimed, or one that was not sent."""
    expected = _hashes(base, delivery)
    for name in ("url_hash", "payload_hash"):
        claimed, right = claims.get(name, ""), expected.get(name, "")
        if not isinstance(claimed, str) or not matches(claimed, right):
            raise Rejected(Reason.INVALID_SIGNATURE, f"the token's {name} does not match")


def _hashes(base: str, delivery: Delivery) -> dict[str, str]:
    found = {"url_hash": sha256(encoded(http.public(delivery, base))).hexdigest()}
    if delivery.body:
        found["payload_hash"] = sha256(delivery.body).hexdigest()
    return found
