"""Microsoft Graph: every notification of a request repeats your subscription's `clientState`.

Nothing is signed. One request mixes notifications of several subscriptions, and each must be valid
under the current or the previous secret. Rich notifications, which contain the resource, have Entra
tokens for each application and tenant; set `audience`, the application's id, to check these too.
An event is stored without `clientState` and the tokens: handlers read `[secret]` in their place.
Source: microsoftgraph/microsoft-graph-docs-contrib `change-notifications-delivery-webhooks.md` and
`change-notifications-with-resource-data.md`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Facts, Provider, Sample, Sent, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import greets
from webhook_inbox.providers.schemes.identity.batches import elements, split_at
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    dotted,
    in_json,
    in_query,
)
from webhook_inbox.providers.schemes.tokens import StaticToken

SETTINGS: Final = frozenset({"audience", "tenants"})
LIST: Final = "value"
STATE: Final = "clientState"
TOKENS: Final = "validationTokens"
# Microsoft Graph Change Tracking, in every tenant.
PUBLISHER: Final = "0bf30f3b-4a52-48df-9a82-234910c4a086"
# The header from which the scheme reads each token.
PLACE: Final = "validation-token"


def _states(delivery: Delivery) -> Sequence[str]:
    found = [at(item, STATE) for item in elements(delivery, LIST)]
    states = [state for state in found if isinstance(state, str) and state]
    if len(states) < len(found):
        raise Rejected(Reason.MALFORMED, f"a notification has no {STATE}")
    return states


SCHEME: Final = StaticToken(find=_states)
NAMING: Final = Naming(
    # A resource may change twice in the same way: subscription, resource and change are no id.
    id=(in_json("id"), content_hash),
    type=(in_json("lifecycleEvent"), dotted(in_json("changeType"), in_json("resource"))),
)
FACTS: Final = Facts(
    title="Microsoft Graph",
    scheme="your `clientState` in each notification; rich ones also bear tokens of Entra's",
    body="none",
    event_id="`id` of each notification; where it has none, its hash",
    handshake="`validationToken` in the query: answered as text within 10 s",
    answer_within="3 s",
    retries="for up to 4 hours",
    key_from="the `clientState` that you choose when you create the subscription; handlers read"
    " `[secret]` in its place",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one application's subscriptions."""
    made = build_provider(
        "microsoft-graph",
        SCHEME,
        NAMING,
        facts=FACTS,
        batch=split_at(LIST),
        greet=greets(in_query("validationToken")),
        compose=_compose,
        token_members=frozenset({STATE, TOKENS}),
    )
    audience = given.text(settings, "audience", default="")
    tenants = given.texts(settings, "tenants", default=())
    if not audience and tenants:
        raise ConfigurationError("audience: missing; without it no token is checked for tenants")
    return _with_tokens(made, audience, tenants) if audience else made


def _with_tokens(made: Provider, audience: str, tenants: tuple[str, ...]) -> Provider:
    from webhook_inbox.providers.schemes.jwt.entra import KEYS, entra  # noqa: PLC0415

    scheme = entra(PLACE, audience=audience, tenants=tenants, publisher=PUBLISHER)

    def fetches(delivery: Delivery, secrets: Sequence[str]) -> Fetch | None:
        # The fetched keys replace the secrets, so the secret is checked first.
        SCHEME.verify(delivery, secrets)
        return KEYS if _is_rich(delivery) and _tokens(delivery) else None

    def precheck(delivery: Delivery, keys: Sequence[str]) -> None:
        SCHEME.precheck(delivery, keys)
        for bearer in _bearers(delivery) if _is_rich(delivery) else ():
            scheme.precheck(bearer, keys)

    def verify(delivery: Delivery, keys: Sequence[str]) -> Verified:
        if not _is_rich(delivery):
            return SCHEME.verify(delivery, keys)
        bearing = _bearers(delivery)
        verified = [scheme.verify(bearer, keys) for bearer in bearing]
        known = [scheme.claim("tid")(Reading(bearer)) for bearer in bearing]
        if not all(at(item, "tenantId") in known for item in _rich(delivery)):
            raise Rejected(Reason.INVALID_SIGNATURE, "no token is of a notification's tenant")
        return verified[0]

    return replace(made, fetches=fetches, verify=verify, precheck=precheck)


def _is_rich(delivery: Delivery) -> bool:
    return at(document(delivery), TOKENS) is not None or bool(_rich(delivery))


def _rich(delivery: Delivery) -> Sequence[object]:
    return [item for item in elements(delivery, LIST) if at(item, "encryptedContent") is not None]


def _bearers(delivery: Delivery) -> Sequence[Delivery]:
    """Returns a delivery of each token, where the scheme reads it; raises Rejected."""
    return [replace(delivery, headers={PLACE: token}) for token in _tokens(delivery)]


def _tokens(delivery: Delivery) -> Sequence[str]:
    found = at(document(delivery), TOKENS)
    tokens = found if isinstance(found, list) else []
    if not tokens:
        raise Rejected(Reason.MISSING_SIGNATURE, f"rich notifications have no {TOKENS}")
    if not all(isinstance(token, str) and token for token in tokens):
        raise Rejected(Reason.MALFORMED, f"{TOKENS} holds an invalid token")
    return tokens


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    headers = SCHEME.sign(sample, secret, now)
    notification = {**json.loads(sample.body), STATE: secret}
    return Sent(headers, json.dumps({LIST: [notification]}).encode())
