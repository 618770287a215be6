"""HCP Terraform: `X-TFE-Notification-Signature: <hex>`, HMAC-SHA512 over the body.

Run tasks are signed in the same way under another header, and expect exactly 200. A notification
has no id. A run can trigger `run:needs_attention` more than once, so the run's update time is part
of the event id. Saving a configuration sends a notification without a run, unsigned if it has no
token.
Source: public handlers; hashicorp/terraform-docs-common `api-docs/notification-configurations.mdx`.
"""

from typing import Final

from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import BODY_LIMIT, EMPTY
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

TRIGGER: Final = "notifications.0.trigger"
UPDATED: Final = "notifications.0.run_updated_at"
SCHEME: Final = Hmac(
    headers=("x-tfe-notification-signature", "x-tfc-task-signature"), algorithm="sha512"
)


def _verification(delivery: Delivery, _: object) -> Answer | None:
    body = document(delivery)
    return EMPTY if at(body, TRIGGER) == "verification" and at(body, "run_id") is None else None


def _unsigned(delivery: Delivery, _: object) -> Answer | None:
    # A signed one is verified: otherwise a wrong token would only show at the first run.
    signed = SCHEME.reads & delivery.headers.keys()
    if delivery.method != "POST" or signed or len(delivery.body) > BODY_LIMIT:
        return None
    return _verification(delivery, _)


PROVIDER: Final = build_provider(
    "terraform-cloud",
    SCHEME,
    Naming(
        id=(
            joined(in_json("run_id"), in_json(TRIGGER), in_json(UPDATED)),
            joined(in_json("run_id"), in_json(TRIGGER)),
            in_json("task_result_id"),
            content_hash,
        ),
        type=(in_json(TRIGGER), in_json("trigger"), in_json("stage")),
        occurred_at=(in_json(UPDATED), in_json("run_created_at")),
    ),
    greet=_unsigned,
    handshake=_verification,
    accepted_status=200,
    # Two configurations of a workspace report the same change.
    volatile=("notification_configuration_id", "notification_configuration_url"),
    facts=Facts(
        title="HCP Terraform",
        scheme="HMAC-SHA512 over the body, hex",
        event_id="`run_id`, the trigger and when the run changed; of a run task `task_result_id`",
        handshake="a notification with the trigger `verification`, answered 200",
        key_from="the token that you choose in the notification's settings; optional there",
    ),
)
