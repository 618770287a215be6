"""HubSpot: base64 over method, URL, body and time (v3); hashes of secret and content (v1, v2).

A request may have an older signature beside the new one. Only the source's `version` is verified: a
valid older signature does not replace an invalid new one. HubSpot signs some characters of the URL
decoded that are sent encoded, so three forms are tried: as sent, with the characters of HubSpot's
table decoded, and with all but the question mark decoded. `eventId` is not guaranteed to be unique:
other content under a known id is recorded as a conflict, not dropped. The Python library accepts
any time in the future; this provider does not.

The workflow action "Send a webhook" posts one object instead of a list. Nothing in it is unique to
an enrolment: an object that is enrolled twice, or by two workflows, may be posted twice in the same
bytes. The header `X-HubSpot-Correlation-Id` is not signed, and no page says that it is unique. So
it names a delivery together with the body's hash, and method, URL and body are guarded: the same
object under another header is held. HubSpot does not repeat a workflow's delivery after 4xx (other
than 429), so no signed POST is refused for its body. A workflow's GET asks for data and is not an
event.
Source: HubSpot/hubspot-api-python `utils/signature.py` and its tests; HubSpot/hubspot-api-nodejs
`signature.spec.ts`; HubSpot's pages on validating requests, on the webhooks API and on webhooks in
workflows; for the latter's headers and bodies the captures in hookdeck/webhook-samples
`providers/hubspot`, whose DEAL and COMPANY have an `objectType` and whose CONTACT has a `vid`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote, unquote_to_bytes

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded, required
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    in_json,
)
from webhook_inbox.providers.schemes.identity.values import plain
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac, PlainHash
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

SETTINGS: Final = frozenset({"url", "version"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/hubspot"}
VERSIONS: Final = ("v3", "v2", "v1")
VARIANTS: Final = {f"hubspot-{version}": {"version": version} for version in VERSIONS}
TIME: Final = "x-hubspot-request-timestamp"
VERSION: Final = "x-hubspot-signature-version"
OLD: Final = {"v1": "{body}", "v2": "{method}{url}{body}"}
# As on HubSpot's page: : / ? @ ! $ ' ( ) * , ;
TABLE: Final = re.compile(r"%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)
QUESTION_MARK: Final = re.compile(r"(%3F)", re.IGNORECASE)
CORRELATION: Final = "x-hubspot-correlation-id"
SIGNATURE: Final = "x-hubspot-signature-v3"
OLD_SIGNATURE: Final = "x-hubspot-signature"
# These belong to a delivery, and to no event of a batch.
DELIVERY: Final = frozenset({CORRELATION, TIME, SIGNATURE, OLD_SIGNATURE})


def _is_item(reading: Reading) -> bool:
    return DELIVERY.isdisjoint(reading.delivery.headers)


def _workflow_id(reading: Reading) -> object:
    """Finds the id of a workflow's delivery; None for an event of a batch."""
    if _is_item(reading):
        return None
    headers = reading.delivery.headers
    name = headers.get(CORRELATION) or headers.get(TIME) or "workflow"
    return f"{name}.{sha256(reading.delivery.body).hexdigest()}"


def _workflow_type(reading: Reading) -> object:
    """Finds `workflow.DEAL`; `workflow.custom` for a body that the user composed."""
    if _is_item(reading) or not isinstance(reading.document, dict):
        return None
    kind = plain(reading.member("objectType"))
    contact = "CONTACT" if reading.member("vid") is not None else ""
    return f"workflow.{kind or contact or 'custom'}"


NAMING: Final = Naming(
    id=(_workflow_id, in_json("eventId"), content_hash),
    type=(_workflow_type, in_json("subscriptionType")),
    occurred_at=(in_json("occurredAt"),),
    retry=(in_json("attemptNumber"),),
)
FACTS: Final = Facts(
    title="HubSpot",
    scheme="HMAC-SHA256 over method, URL, body and time, base64 (v3)",
    window="5 minutes",
    event_id="`eventId` of each event of a batch; of a workflow `X-HubSpot-Correlation-Id` and the"
    " body's hash, under the type `workflow.DEAL`, by its `objectType`, or `workflow.custom`",
    unsigned="of a workflow, the first part of the id: `X-HubSpot-Correlation-Id`",
    handshake="none; choose POST in a workflow: a GET is answered 405",
    answer_within="5 s; to a workflow 30 s",
    retries="10 within 24 hours; of a workflow for 3 days after 5xx and 429, never after other 4xx",
    key_from="the client secret, on the app's Auth page; a workflow's action names its app",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider for one signature version; `url` is the address without a query."""
    base = given.public_url(settings)
    version = given.choice(settings, "version", of=VERSIONS)
    made = _newest(base) if version == "v3" else _older(version, base)
    # The body is a JSON list or object. None begins or ends with another, so nothing can be moved
    # between body, URL and time.
    return replace(
        made,
        batch=_split,
        guard=_workflow_content,
        guards_ignored=False,
        volatile=("attemptNumber",),
        kept_headers=made.kept_headers | {CORRELATION},
    )


def _split(delivery: Delivery) -> Sequence[Delivery] | None:
    """Splits a list of events; None for any other body, which is one event."""
    try:
        parts = split_at()(delivery)
    except Rejected:
        return None
    headers = {k: v for k, v in delivery.headers.items() if k not in DELIVERY}
    return [replace(part, headers=headers) for part in parts or ()]


def _workflow_content(verified: Verified, _: Sequence[str]) -> bytes:
    """Returns method, URL and body of a workflow's delivery; b"" for a list, which has its ids.

    A retry is signed anew, so the time, which follows the body, is not guarded.
    """
    content = verified.content.rstrip(b"0123456789")
    return b"" if content.rstrip().endswith(b"]") else content


def _newest(base: str) -> Provider:
    def signs(delivery: Delivery) -> Sequence[bytes]:
        stamp = encoded(required(delivery.headers, (TIME,)))
        method = encoded(delivery.method)
        spellings = _spellings(http.public(delivery, base))
        return [method + url + delivery.body + stamp for url in spellings]

    scheme = Hmac(
        headers=(SIGNATURE,),
        signs=signs,
        encoding=base64,
        window=Window(headers=(TIME,), clockwork=milliseconds),
        url=base,
    )
    return build_provider("hubspot", scheme, NAMING, facts=FACTS)


def _spellings(url: str) -> Sequence[bytes]:
    table = TABLE.sub(lambda found: unquote(found[0]), url)
    pieces = QUESTION_MARK.split(url)
    # Every second piece is a question mark, which stays.
    whole = [encoded(p) if n % 2 else unquote_to_bytes(encoded(p)) for n, p in enumerate(pieces)]
    return list(dict.fromkeys((encoded(url), encoded(table), b"".join(whole))))


def _older(version: str, base: str) -> Provider:
    scheme = PlainHash(headers=(OLD_SIGNATURE,), signs=Template.parse(OLD[version]), url=base)

    def verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
        verified = scheme.verify(delivery, secrets)
        if delivery.headers.get(VERSION) != version:
            raise Rejected(Reason.MALFORMED, f"{VERSION} is not {version}")
        return verified

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        return scheme.sign(sample, secret, now) | {VERSION: version}

    content = "secret, method, URL and body" if version == "v2" else "secret and body"
    facts = replace(FACTS, scheme=f"SHA-256 of {content}, hex ({version})", window="none")
    return build_provider(
        "hubspot",
        scheme,
        NAMING,
        facts=facts,
        verify=verify,
        sign=sign,
        signature_headers=scheme.reads | {VERSION},
    )
