"""Google Pub/Sub push: an OIDC token (RS256) in `Authorization`; the body is not covered.

Any Google service account can obtain a token for any audience, so the account is pinned: its claim
identifies the sender. Keys are from Google's JWK set. A subscription may also send the unwrapped
message, with its metadata in headers.
Source: Google's pages on push authentication and payload unwrapping; the API reference of
`projects.subscriptions`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Facts, Provider, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import (
    Finder,
    Naming,
    header,
    in_json,
    repeats,
)
from webhook_inbox.providers.schemes.jwt.jwt import Claims, Jwt
from webhook_inbox.providers.schemes.jwt.keys import published
from webhook_inbox.providers.schemes.signatures.asymmetric import Rsa

SETTINGS: Final = frozenset({"audience", "service_account", "url"})
EXAMPLE: Final = {
    "audience": "https://inbox.example/webhooks/google-pubsub",
    "service_account": "push@example-project.iam.gserviceaccount.com",
}
HEADER: Final = "authorization"
ISSUER: Final = "https://accounts.google.com"
KEYS: Final = Fetch("https://www.googleapis.com/oauth2/v3/certs")
UNWRAPPED: Final = "x-goog-pubsub-message-id"


def in_envelope(path: str) -> Finder:
    """Finds a value in the envelope; the body of an unwrapped message is the message alone."""
    find = in_json(path)
    return lambda reading: None if UNWRAPPED in reading.delivery.headers else find(reading)


NAMING: Final = Naming(
    id=(in_envelope("message.messageId"), header(UNWRAPPED)),
    type=(
        in_envelope("message.attributes.eventType"),
        in_envelope("message.attributes.type"),
        in_envelope("subscription"),
        header("x-goog-pubsub-subscription-name"),
    ),
    occurred_at=(in_json("message.publishTime"), header("x-goog-pubsub-publish-time")),
    retry=(repeats(in_json("deliveryAttempt")),),
)
FACTS: Final = Facts(
    title="Google Pub/Sub push",
    body="none",
    scheme="OIDC token, RS256, claims `iss`, `aud`, `email` and `exp`; covers no body",
    window="as long as the token",
    event_id="`message.messageId`",
    answer_within="the subscription's acknowledgement deadline, 10 to 600 s",
    retries="until acknowledged, for 7 days by default",
    key_from="none: pin the push subscription's `service_account`, and its `audience` if it has one"
    " that is not the endpoint's URL",
    resend="`gcloud pubsub subscriptions seek`",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one push subscription.

    Its `audience` is the endpoint's URL unless the setting says otherwise, as at Google.
    """
    account = given.text(settings, "service_account")
    audience = given.text(settings, "audience", default="")
    scheme = Jwt(
        header=HEADER,
        prefix="Bearer ",
        algorithms=("RS256",),
        keys=published,
        claims={"iss": ISSUER, "email": account} | ({"aud": audience} if audience else {}),
        audience=not audience,
        requires=("exp",),
        check=_email_is_verified,
        url=given.public_url(settings),
    )

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        return scheme.issue(sample, secret, now, {"email_verified": True})

    return build_provider(
        "google-pubsub",
        scheme,
        NAMING,
        sign=sign,
        pair=Rsa().pair,
        needs_secret=False,
        fetches=lambda *_: KEYS,
        token_headers=frozenset({HEADER}),
        volatile=("deliveryAttempt",),
        facts=FACTS,
    )


def _email_is_verified(claims: Claims, _: Delivery) -> None:
    # Exactly true: the text "false" would be truthy.
    if claims.get("email_verified") is not True:
        raise Rejected(Reason.INVALID_SIGNATURE, "the token's email is not verified")
