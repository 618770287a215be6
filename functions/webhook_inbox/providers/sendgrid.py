"""SendGrid's event webhook: ECDSA P-256 over `{timestamp}{body}`; a body is a list of events.

The body ends in CRLF, which is signed. The library checks no window, and neither does this
provider.
Source: sendgrid/sendgrid-python `helpers/eventwebhook`, `test_eventwebhook.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.asymmetric import Ecdsa
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

PROVIDER: Final = build_provider(
    "sendgrid",
    Ecdsa(
        headers=("x-twilio-email-event-webhook-signature",),
        signs=Template.parse("{timestamp}{body}"),
        window=Window(headers=("x-twilio-email-event-webhook-timestamp",), tolerance=None),
    ),
    Naming(
        id=(in_json("sg_event_id"),), type=(in_json("event"),), occurred_at=(in_json("timestamp"),)
    ),
    batch=split_at(),
    facts=Facts(
        title="SendGrid",
        scheme="ECDSA P-256 with SHA-256 over timestamp and body, base64 of DER",
        window="signed, no bound",
        event_id="`sg_event_id` of each event in the list",
        key_from="the verification key from the event webhook's settings",
    ),
)
