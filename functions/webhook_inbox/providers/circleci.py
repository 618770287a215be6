"""CircleCI: `circleci-signature: v1=<hex>` over the body; only version v1 of the list counts.

The type is read from the body, which is signed, before the header.
Source: circleci/circleci-docs `outbound-webhooks.adoc`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import VersionedSignatures
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "circleci",
    Hmac(
        headers=("circleci-signature",), layout=VersionedSignatures("v1", separator=",", mark="=")
    ),
    Naming(
        id=(in_json("id"),),
        type=(in_json("type"), header("circleci-event-type")),
        occurred_at=(in_json("happened_at"),),
    ),
    facts=Facts(
        title="CircleCI",
        scheme="HMAC-SHA256 over the body, hex after `v1=`",
        event_id="`id`",
        answer_within="10 s",
        retries="later, after any answer but 2xx",
        key_from="the secret token that you choose in the webhook's settings; optional there",
    ),
)
