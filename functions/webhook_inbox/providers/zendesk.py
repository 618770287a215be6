"""Zendesk: `X-Zendesk-Webhook-Signature: <base64>` over `{timestamp}{body}`.

The secret looks like base64 and is text. The time is signed, but Zendesk prescribes no window, so
its age is not checked. Time and body together distinguish a replayed delivery from a trigger that
fires again. Zendesk retries after 409, so a conflict has another status.
Source: Zendesk's pages on verifying webhooks and on the anatomy of a request.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, header, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, iso

TIME: Final = "x-zendesk-webhook-signature-timestamp"


def _event_type(reading: Reading) -> object:
    """Finds the type of an event subscription, which is a JSON object.

    A trigger or an automation sends JSON, XML or a form of its own, without a type.
    Source: "Creating webhooks to interact with third-party systems", support.zendesk.com.
    """
    return reading.member("type") if reading.delivery.body.lstrip()[:1] == b"{" else None


PROVIDER: Final = build_provider(
    "zendesk",
    Hmac(
        headers=("x-zendesk-webhook-signature",),
        signs=Template.parse("{timestamp}{body}"),
        encoding=base64,
        window=Window(headers=(TIME,), tolerance=None, clockwork=iso),
    ),
    Naming(
        id=(header("x-zendesk-webhook-invocation-id"),),
        type=(_event_type,),
        occurred_at=(in_json("time"),),
    ),
    kept_headers=frozenset({"x-zendesk-account-id", "x-zendesk-webhook-id"}),
    conflict_status=400,
    facts=Facts(
        title="Zendesk",
        scheme="HMAC-SHA256 over `{timestamp}{body}`, base64",
        window="none prescribed",
        event_id="`X-Zendesk-Webhook-Invocation-Id`",
        unsigned="id `X-Zendesk-Webhook-Invocation-Id`",
        answer_within="12 s",
        retries="5 after timeouts, 3 after 409; 429 and 503 by their `Retry-After` below 60 s;"
        " a circuit breaker pauses what keeps failing",
        key_from="the webhook's signing secret, in the Admin Center; made by Zendesk",
    ),
)
