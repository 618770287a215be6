"""Jira: `X-Hub-Signature: sha256=<hex>` over the body; for Connect apps a JWT in `Authorization`.

Atlassian may change the method before `=`: any other than SHA-256 is rejected. Hooks without a
secret are unsigned and never verified. With `proof = "connect"`, a source belongs to a Connect app:
HS256 under its shared secret, as text, over a hash of method, path and query (`qsh`); the body is
not signed. A frontend token, whose `qsh` is `context-qsh`, is not valid for a request.
Source: Atlassian's pages on webhooks, on understanding JWT and on the query string hash.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.encodings import matches
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SETTINGS: Final = frozenset({"proof", "url", "base_url"})
PROOFS: Final = ("signature", "connect")
# Connect's other place for a token; not read here.
TOKEN_FIELD: Final = "jwt"  # noqa: S105 - a field's name
VARIANTS: Final = {"jira-connect": {"proof": "connect"}}
SIGNATURE: Final = Hmac(headers=("x-hub-signature",), layout=Whole("sha256="))
IDENTIFIER: Final = "x-atlassian-webhook-identifier"
NAMING: Final = Naming(
    id=(header(IDENTIFIER),),
    type=(in_json("webhookEvent"),),
    occurred_at=(in_json("timestamp"),),
    retry=(header("x-atlassian-webhook-retry"),),
)
FACTS: Final = Facts(
    title="Jira",
    scheme="HMAC-SHA256 over the body, hex; Connect apps: JWT, HS256, `qsh` of the request",
    event_id="`X-Atlassian-Webhook-Identifier`, the same over retries",
    unsigned="id `X-Atlassian-Webhook-Identifier`",
    retries="up to 5, 5 to 15 minutes apart",
    key_from="the secret that you give the webhook; of Connect apps the installation's shared one",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns Jira's provider, by signature or, with `proof = "connect"`, by a Connect app's token.

    For the latter `url` is the source's address and `base_url` the descriptor's `baseUrl`, whose
    path is no part of what is signed.
    """
    if given.choice(settings, "proof", of=PROOFS) == "connect":
        return _connect(given.public_url(settings), given.public_url(settings, "base_url"))
    # Jira repeats what is answered with 409.
    return build_provider("jira", SIGNATURE, NAMING, facts=FACTS, conflict_status=400)


def _connect(url: str, base_url: str) -> Provider:
    # Loaded where it is needed: the library behind it is large.
    from webhook_inbox.providers.schemes.jwt.jwt import Claims, Jwt  # noqa: PLC0415

    def check(claims: Claims, delivery: Delivery) -> None:
        signed = claims["qsh"]
        if not isinstance(signed, str) or not matches(signed, _hash(delivery, url, base_url)):
            raise Rejected(Reason.INVALID_SIGNATURE, "the token is for another request")

    scheme = Jwt(
        header="authorization", prefix="JWT ", requires=("iss", "exp", "qsh"), check=check, url=url
    )

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        delivery = Delivery("it", "POST", "/webhooks/it", "", {}, sample.body, now)
        claims = {"iss": "sample", "qsh": _hash(delivery, url, base_url)}
        return {IDENTIFIER: sample.event_id, **scheme.issue(sample, secret, now, claims)}

    facts = replace(FACTS, body="none", window="the token's `exp`")
    return build_provider(
        "jira",
        scheme,
        NAMING,
        facts=facts,
        sign=sign,
        conflict_status=400,
        # The token covers no body: a captured one is valid for every other body until it expires.
        token_headers=scheme.reads,
        token_fields=frozenset({TOKEN_FIELD}),
    )


def _hash(delivery: Delivery, url: str, base_url: str) -> str:
    """Returns the hex SHA-256 of Atlassian's canonical request."""
    path = urlsplit(url).path if url else delivery.path
    base = urlsplit(base_url).path.rstrip("/")
    if path == base or path.startswith(f"{base}/"):
        path = path[len(base) :]
    path = (path.rstrip("/") or "/").replace("&", "%26")
    request = f"{delivery.method.upper()}&{path}&{_query(delivery)}"
    return sha256(request.encode(errors="replace")).hexdigest()


def _query(delivery: Delivery) -> str:
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in fields(delivery.query):
        values[name].append(value)
    values.pop(TOKEN_FIELD, None)
    return "&".join(
        f"{_quoted(name)}={','.join(map(_quoted, sorted(listed)))}"
        for name, listed in sorted(values.items())
    )


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="replace")
