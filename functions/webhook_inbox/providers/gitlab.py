"""GitLab: Standard Webhooks under a signing token, or a secret token sent as plain text.

A hook may send both. The signature is required unless `proof = "token"` is set, for a GitLab that
does not sign. Then only the token is checked, which does not cover the body.

The type is in the header `X-Gitlab-Event`, which is not signed; the body names its kind in other
words. GitLab disables a hook after 4xx. So a signed delivery whose header and body GitLab's page on
webhook events does not pair is not refused: it gets the type of its body, and its runs are held. A
name that the page lacks contradicts nothing.
Source: gitlab-org/gitlab!230944 and !231325 (the signing token is `whsec_` and base64 of 32 bytes),
epic 8083; gitlabhq/gitlabhq `doc/user/project/integrations/webhooks.md` and `webhook_events.md`;
confidential hooks: the captures in hookdeck/webhook-samples `providers/gitlab`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, header, in_json
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
EVENT: Final = "x-gitlab-event"
# The values of the header for each `object_kind` or, where the body has none, `event_name`.
HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "access_token": ("Resource Access Token Hook",),
    "build": ("Job Hook",),
    "deployment": ("Deployment Hook",),
    "emoji": ("Emoji Hook",),
    "feature_flag": ("Feature Flag Hook",),
    "issue": ("Issue Hook", "Confidential Issue Hook"),
    "merge_request": ("Merge Request Hook",),
    "milestone": ("Milestone Hook",),
    "note": ("Note Hook", "Confidential Note Hook"),
    "pipeline": ("Pipeline Hook",),
    "project_create": ("Project Hook",),
    "project_destroy": ("Project Hook",),
    "push": ("Push Hook",),
    "release": ("Release Hook",),
    "subgroup_create": ("Subgroup Hook",),
    "subgroup_destroy": ("Subgroup Hook",),
    "tag_push": ("Tag Push Hook",),
    "user_access_request_denied_for_group": ("Member Hook",),
    "user_access_request_to_group": ("Member Hook",),
    "user_add_to_group": ("Member Hook",),
    "user_remove_from_group": ("Member Hook",),
    "user_update_for_group": ("Member Hook",),
    "vulnerability": ("Vulnerability Hook",),
    "wiki_page": ("Wiki Page Hook",),
    "work_item": ("Issue Hook", "Confidential Issue Hook"),
}
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
NAMES: Final = frozenset(name for hooks in HOOKS.values() for name in hooks)


def _hooks(reading: Reading) -> tuple[str, ...]:
    """Returns the documented header values of a body's kind; empty for another kind."""
    kind = reading.member("object_kind") or reading.member("event_name")
    return HOOKS.get(kind, ()) if isinstance(kind, str) else ()


def _contradicted_type(reading: Reading) -> str:
    """Returns the type of the signed body if the header contradicts it, else ""."""
    hooks, sent = _hooks(reading), reading.delivery.headers.get(EVENT)
    return hooks[0] if hooks and sent in NAMES and sent not in hooks else ""


TYPES: Final = (header(EVENT), in_json("object_kind"))
NAMING: Final = Naming(id=(header(*ID),), type=TYPES, contradicted_type=_contradicted_type)
# Older releases send no webhook-id. A hook that another hook triggered shares the event's UUID,
# so the UUID is last.
UNSIGNED: Final = Naming(id=(header(*ID, "idempotency-key", "x-gitlab-event-uuid"),), type=TYPES)
KEPT: Final = frozenset(
    {"idempotency-key", "x-gitlab-event-uuid", "x-gitlab-instance", "x-gitlab-webhook-uuid"}
)
FACTS: Final = Facts(
    title="GitLab",
    scheme="HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64; or the secret token",
    window="5 minutes",
    event_id="`webhook-id`, the same over retries",
    unsigned="type `X-Gitlab-Event`; where `object_kind` in the signed body contradicts it, the"
    " event is held (`contradicted`). With the secret token nothing is signed",
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
