"""Plaid: an ES256 JWT in `Plaid-Verification` with the body's SHA-256 and its issue time.

Its key is requested by `kid` with the account's credentials, so the secret has two parts:
`{"client_id": "…", "secret": "…"}`. An expired key is rejected. Events have no id. An item repeats
a webhook (`SYNC_UPDATES_AVAILABLE`) for every update, so item and code alone would drop all but the
first: the token's time is part of the event id.
Source: Plaid's page on verifying webhooks; webhook-co's adapter.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    dotted,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.jwt.jwt import Claims, Jwt, Times
from webhook_inbox.providers.schemes.jwt.keys import JsonWebKey, published
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.asymmetric import Ecdsa

SETTINGS: Final = frozenset({"environment"})
ENVIRONMENTS: Final = ("production", "sandbox")
WINDOW: Final = timedelta(minutes=5)
# An unverified token selects the key to request; Plaid's own ids are UUIDs.
KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def _current(material: str, header: Claims) -> Sequence[JsonWebKey] | None:
    try:
        found = parse(material) if material.startswith("{") else None
    except ValueError:
        return None
    over = any(at(found, path) is not None for path in ("key.expired_at", "expired_at"))
    return () if over else published(material, header)


SCHEME: Final = Jwt(
    header="plaid-verification",
    algorithms=("ES256",),
    keys=_current,
    body_hash="request_body_sha256",
    times=Times(max_age=WINDOW),
)
_MADE_AT: Final = SCHEME.claim("iat")
NAMING: Final = Naming(
    id=(
        joined(in_json("item_id"), in_json("webhook_code"), _MADE_AT),
        # Some webhooks have no item.
        joined(content_hash, _MADE_AT),
        content_hash,
    ),
    type=(dotted(in_json("webhook_type"), in_json("webhook_code")),),
)
FACTS: Final = Facts(
    title="Plaid",
    scheme="JWT, ES256, claims `request_body_sha256`; its key is fetched by `kid`",
    window="5 minutes",
    event_id="`item_id`, `webhook_code` and the token's `iat`: there is no id",
    key_from="`client_id` and `secret` of the account, on the dashboard's Keys page, as JSON",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of an environment, `production` unless `environment` says otherwise."""
    environment = given.choice(settings, "environment", of=ENVIRONMENTS)

    def key(delivery: Delivery, secrets: Sequence[str]) -> Fetch:
        kid = SCHEME.kid(delivery)
        if KEY_ID.fullmatch(kid) is None:
            raise Rejected(Reason.MALFORMED, "the token's key id is not a Plaid key id")
        return _question(environment, kid, secrets)

    return build_provider(
        "plaid", SCHEME, NAMING, facts=FACTS, fetches=key, pair=_pair, window=WINDOW
    )


def _question(environment: str, kid: str, secrets: Sequence[str]) -> Fetch:
    for secret in secrets:
        credentials = {name: keys.part(secret, name) for name in ("client_id", "secret")}
        if all(credentials.values()):
            url = f"https://{environment}.plaid.com/webhook_verification_key/get"
            body = json.dumps({**credentials, "key_id": kid}).encode()
            return Fetch(url, body, chosen_by_sender=True)
    raise Rejected(Reason.NO_SECRET, "the secret is not client_id and secret, as JSON")


def _pair() -> tuple[str, str]:
    private, public = Ecdsa().pair()
    return private, f"-----BEGIN PUBLIC KEY-----\n{public}\n-----END PUBLIC KEY-----\n"
