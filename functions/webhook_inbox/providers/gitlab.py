"""GitLab: Standard Webhooks under a signing token, or a secret token sent as plain text.

A hook may send both. The signature is required unless `proof = "token"` is set, for a GitLab that
does not sign. Then only the token is checked, which does not cover the body.
Source: gitlab-org/gitlab!230944 and !231325 (the signing token is `whsec_` and base64 of 32 bytes),
epic 8083; gitlabhq/gitlabhq `doc/user/project/integrations/webhooks.md`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.header_formats import VersionedSignatures
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window
from webhook_inbox.providers.schemes.tokens import StaticToken

SETTINGS: Final = frozenset({"proof"})
PROOFS: Final = ("signature", "token")
VARIANTS: Final = {"gitlab-signed": {"proof": "signature"}, "gitlab-token": {"proof": "token"}}
ID: Final = ("webhook-id",)
TOKEN_HEADER: Final = "x-gitlab-token"  # noqa: S105 - a header's name
SIGNATURE: Final = Hmac(
    headers=("webhook-signature",),
    layout=VersionedSignatures("v1"),
    signs=Template.parse("{id}.{timestamp}.{body}"),
    encoding=base64,
    key=keys.whsec,
    window=Window(headers=("webhook-timestamp",)),
    ids=ID,
)
NAMING: Final = Naming(id=(header(*ID),), type=(header("x-gitlab-event"), in_json("object_kind")))
# Older releases send no webhook-id. A hook that another hook triggered shares the event's UUID,
# so the UUID is last.
UNSIGNED: Final = replace(NAMING, id=(header(*ID, "idempotency-key", "x-gitlab-event-uuid"),))
KEPT: Final = frozenset(
    {"idempotency-key", "x-gitlab-event-uuid", "x-gitlab-instance", "x-gitlab-webhook-uuid"}
)
FACTS: Final = Facts(
    title="GitLab",
    scheme="HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64; or the secret token",
    window="5 minutes",
    event_id="`webhook-id`, the same over retries",
    answer_within="10 s on GitLab.com",
    retries="none; a failing hook is disabled, for a while after 5xx, for good after 4xx",
    key_from="the hook's signing token, `whsec_…`, made by GitLab; the secret token is yours",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns GitLab's provider, by signature or, with `proof = "token"`, by token."""
    if given.choice(settings, "proof", of=PROOFS) == "signature":
        return build_provider(
            "gitlab", SIGNATURE, NAMING, facts=FACTS, kept_headers=KEPT, retries=False
        )
    return build_provider(
        "gitlab",
        StaticToken(headers=(TOKEN_HEADER,)),
        UNSIGNED,
        facts=replace(FACTS, body="none", window="none"),
        kept_headers=KEPT,
        retries=False,
        token_headers=frozenset({TOKEN_HEADER}),
    )
