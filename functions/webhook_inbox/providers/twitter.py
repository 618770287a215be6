"""Twitter / X: `x-twitter-webhooks-signature: sha256=<base64>` over the body.

Every hour X sends a token and expects its HMAC under the key that signs deliveries. Tokens and
deliveries must never look alike: an HMAC is returned for tokens only, and a body in the form of a
token is rejected. An event has no id except its object's, and one object is sent for several users.
Source: hookdeck's notes, webhook-co's handshake code and its vector.
"""

import hmac
import re
from collections.abc import Sequence
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import computes, json_answer
from webhook_inbox.providers.schemes.identity.event_identity import (
    Finder,
    Naming,
    Reading,
    content_hash,
    in_json,
    in_query,
    joined,
)
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PREFIX: Final = "sha256="
TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,256}", re.ASCII)
KINDS: Final = ("_events", "_event")


def _content(delivery: Delivery) -> Sequence[bytes]:
    if TOKEN.fullmatch(delivery.body.decode("latin-1")):
        raise Rejected(Reason.INVALID_SIGNATURE, "a challenge's answer signs no delivery")
    return [delivery.body]


def _answer(token: str, secret: str, _: Delivery) -> Answer:
    made = base64(hmac.digest(secret.encode(), token.encode(), "sha256"))
    return json_answer({"response_token": PREFIX + made})


def _kind(reading: Reading) -> object:
    """Finds the key that holds the events, such as `tweet_create_events`."""
    body = reading.document
    if isinstance(body, list):
        return body  # not a type: the event is held as unreadable
    names = body if isinstance(body, dict) else ()
    return next((name for name in names if name.endswith(KINDS)), None)


def _of_the_object(*paths: str) -> Finder:
    """Finds a value in the only object; None if there are several."""

    def find(reading: Reading) -> object:
        listed = at(reading.document, str(_kind(reading)))
        if not isinstance(listed, list) or len(listed) != 1:
            return None
        return next((found for path in paths if (found := at(listed[0], path))), None)

    return find


PROVIDER: Final = build_provider(
    "twitter",
    Hmac(
        headers=("x-twitter-webhooks-signature",),
        layout=Whole(PREFIX),
        signs=_content,
        encoding=base64,
    ),
    Naming(
        id=(joined(in_json("for_user_id"), _kind, _of_the_object("id", "status.id")), content_hash),
        type=(_kind,),
        occurred_at=(_of_the_object("timestamp_ms", "created_timestamp"),),
    ),
    guard=None,  # the body is signed as it was sent, and contains the id
    greet=computes(in_query("crc_token"), _answer, shape=TOKEN),
    facts=Facts(
        title="Twitter / X",
        scheme="HMAC-SHA256 over the body, base64 after `sha256=`",
        event_id="`for_user_id`, the type and the object's id, or the body's hash",
        handshake="`crc_token`, every hour: answered with its HMAC",
        retries="at most one",
        key_from="the app's consumer secret, in the developer portal",
    ),
)
