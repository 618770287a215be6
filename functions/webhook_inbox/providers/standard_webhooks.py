"""Standard Webhooks, and Svix under its own header names.

`webhook-signature: v1,<base64> v1,<base64>` over `<id>.<seconds>.<body>`, so that id and time are
signed. Symmetric signatures (`v1`) only; entries of other versions are passed over.
Source: the specification; the reference library also takes fractions of a second, which the
specification does not.
"""

from typing import Final

from webhook_inbox.recipe import Facts, Recipe
from webhook_inbox.schemes import keys
from webhook_inbox.schemes.encodings import base64
from webhook_inbox.schemes.layouts import Versions
from webhook_inbox.schemes.mac import Hmac
from webhook_inbox.schemes.naming import Naming, header, in_json
from webhook_inbox.schemes.templates import Template
from webhook_inbox.schemes.window import DEFAULT_TOLERANCE, Window

_ID: Final = ("webhook-id", "svix-id")

SCHEME: Final = Hmac(
    headers=("webhook-signature", "svix-signature"),
    layout=Versions("v1"),
    signs=Template.parse("{id}.{timestamp}.{body}"),
    encoding=base64,
    key=keys.whsec,
    window=Window(headers=("webhook-timestamp", "svix-timestamp")),
    ids=_ID,
)
NAMING: Final = Naming(
    id=(header(*_ID),), type=(in_json("type"),), occurred_at=(in_json("timestamp"),)
)


RECIPE: Final = Recipe(
    name="standard-webhooks",
    verify=SCHEME.verify,
    signature_headers=SCHEME.reads,
    identify=NAMING.identify,
    sign=SCHEME.sign,
    window=DEFAULT_TOLERANCE,
    facts=Facts(
        title="Standard Webhooks",
        scheme="HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64",
        event_id="`webhook-id`",
        handshake="none",
        answer_within="15 to 30 s",
        retries="by the sender; the specification's example runs for days",
        key_from="`whsec_…`, shown by the sender",
    ),
)
