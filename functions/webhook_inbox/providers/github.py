"""GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body; neither id nor time is signed.

GitHub also sends the SHA-1 header `X-Hub-Signature`, which never counts.
Source: docs.github.com on validating deliveries and on handling failed deliveries.
"""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Facts, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, dotted, header
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

EVENT: Final = "x-github-event"
SCHEME: Final = Hmac(headers=("x-hub-signature-256",), layout=Whole("sha256="))


def _action(reading: Reading) -> str | None:
    """Finds `opened`: the action, if the body names one and a header the event."""
    # A hook may be set to send the JSON as a form's field.
    form = reading.delivery.body.startswith(b"payload=")
    action = at(reading.payload, "action") if form else reading.member("action")
    named = reading.delivery.headers.get(EVENT)
    return action if named and isinstance(action, str) else None


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    return SCHEME.sign(sample, secret, now) | {
        "x-github-delivery": sample.event_id,
        EVENT: sample.type.partition(".")[0],
        "user-agent": "GitHub-Hookshot/sample",
    }


PROVIDER: Final = build_provider(
    "github",
    SCHEME,
    Naming(id=(header("x-github-delivery"),), type=(dotted(header(EVENT), _action),)),
    sign=_sign,
    retries=False,
    kept_headers=frozenset(
        {
            "x-github-hook-id",
            "x-github-hook-installation-target-id",
            "x-github-hook-installation-target-type",
        }
    ),
    facts=Facts(
        title="GitHub",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`X-GitHub-Delivery`",
        unsigned="id `X-GitHub-Delivery`, type `X-GitHub-Event`",
        handshake="none; the first delivery is `ping`",
        answer_within="10 s",
        retries="none by itself",
        key_from="free text that you choose in the webhook's settings",
        resend="the delivery's Redeliver button, or the API, for 3 days",
    ),
)
