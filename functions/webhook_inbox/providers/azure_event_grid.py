"""Azure Event Grid, its own schema: a token in the endpoint's URL, or a Microsoft Entra token.

Nothing is signed. With `audience` and `tenants`, deliveries have a token that Entra issued to Event
Grid, and the URL needs none. A subscription is validated with the code in the request;
`validationUrl` is set by the sender and never called. For the CloudEvents schema, use the provider
cloudevents.
Source: MicrosoftDocs/azure-docs `event-grid/webhook-event-delivery.md`,
`event-grid/secure-webhook-delivery.md`, `event-grid/delivery-and-retry.md`.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Facts, Provider, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import as_json, greets
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, header, in_json
from webhook_inbox.providers.schemes.tokens import StaticToken

SETTINGS: Final = frozenset({"audience", "tenants"})
# Azure names its own keys `code`.
FIELDS: Final = ("token", "code")
VALIDATION: Final = "Microsoft.EventGrid.SubscriptionValidationEvent"
# Microsoft.EventGrid, in every tenant.
PUBLISHER: Final = "4962773b-9cdb-44cf-a8bf-237846a00ab7"
SCHEME: Final = StaticToken(fields=FIELDS)
NAMING: Final = Naming(
    id=(in_json("id"),),
    type=(in_json("eventType"), header("aeg-event-type")),
    occurred_at=(in_json("eventTime"),),
    retry=(header("aeg-delivery-count"),),
)
FACTS: Final = Facts(
    title="Azure Event Grid",
    scheme="a token in the URL's query, `token` or `code`; or a token of Entra's",
    body="none",
    event_id="`id` of each event in the list",
    handshake="SubscriptionValidationEvent: answered with its `validationCode`",
    answer_within="30 s",
    retries="exponential, for up to 24 hours, then dead-lettered where you set that up",
    key_from="a long random token: `webhookctl secrets set`, and `?token=…` in the endpoint's URL",
    resend="none, unless the subscription dead-letters to a storage account",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of a topic's subscriptions."""
    made = build_provider(
        "azure-event-grid",
        SCHEME,
        NAMING,
        facts=FACTS,
        batch=split_at(),
        greet=greets(
            in_json("0.data.validationCode"), as_json("validationResponse"), when=_is_validation
        ),
        compose=_compose,
        token_fields=frozenset(FIELDS),
        accepted_status=200,
    )
    audience = given.text(settings, "audience", default="")
    tenants = given.texts(settings, "tenants", default=())
    if bool(audience) != bool(tenants):
        raise ConfigurationError("audience, tenants: give both, or neither")
    return _with_entra(made, audience, tenants) if audience else made


def _with_entra(made: Provider, audience: str, tenants: tuple[str, ...]) -> Provider:
    from webhook_inbox.providers.schemes.jwt.entra import KEYS, entra  # noqa: PLC0415

    scheme = entra(
        "authorization", audience=audience, tenants=tenants, publisher=PUBLISHER, prefix="Bearer "
    )

    return replace(
        made,
        verify=scheme.verify,
        precheck=scheme.precheck,
        fetches=lambda *_: KEYS,
        needs_secret=False,
        signature_headers=scheme.reads,
        token_headers=scheme.reads,
    )


def _is_validation(reading: Reading) -> bool:
    listed = reading.document
    only = isinstance(listed, list) and len(listed) == 1
    return only and at(listed, "0.eventType") == VALIDATION


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    headers = SCHEME.sign(sample, secret, now) | {"aeg-event-type": "Notification"}
    return Sent(headers, sample.body, urlencode({FIELDS[0]: secret}))
