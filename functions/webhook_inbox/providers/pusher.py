"""Pusher Channels: `X-Pusher-Signature: <hex>` over the body, which contains the sending time.

`X-Pusher-Key` names the app key that signed; a secret of `{"key":"…","secret":"…"}` is valid for
that key only. A body holds one event or, if the app sends batches, many; these are split into
deliveries of the same form. Events have no id and may be identical, so time, content and position
among identical events identify one.
Source: pusher 3 (PyPI) `authentication_client.py`, which rejects times that are 5 minutes off;
docs.bird.com `channels-webhook-timeouts-and-retries`.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.json_path import at, document, parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Sample, Sent, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.http import required
from webhook_inbox.providers.schemes.identity.batches import elements
from webhook_inbox.providers.schemes.identity.event_identity import Naming, content_hash, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import matches
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

KEY: Final = "x-pusher-key"
TIME: Final = "time_ms"
# Numbers the second, third, … of identical events in a batch.
LIKE: Final = "like"


def _time(delivery: Delivery) -> str | None:
    found = at(document(delivery), TIME)
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None


WINDOW: Final = Window(clockwork=milliseconds, find=_time)
SCHEME: Final = Hmac(headers=("x-pusher-signature",), key=keys.of_part("secret"), window=WINDOW)


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    named = required(delivery.headers, (KEY,))
    # Replaced in place: the position identifies the secret.
    live = [secret if _is_of(secret, named) else "" for secret in secrets]
    if any(secrets) and not any(live):
        raise Rejected(Reason.INVALID_SIGNATURE, "the key is another app's")
    return SCHEME.verify(delivery, live)


def _is_of(secret: str, named: str) -> bool:
    key = keys.part(secret, "key")
    return not key or matches(named, key)


def _split(delivery: Delivery) -> Sequence[Delivery] | None:
    """Returns a delivery for each event; None where there is one."""
    events = elements(delivery, "events")
    if len(events) == 1:
        return None
    seen: Counter[str] = Counter()
    parts = []
    for event in events:
        part: dict[str, Any] = {TIME: at(document(delivery), TIME), "events": [event]}
        written = _written(part)
        if seen[written]:
            part[LIKE] = seen[written]
        seen[written] += 1
        parts.append(replace(delivery, body=_written(part).encode()))
    return parts


def _written(part: dict[str, Any]) -> str:
    return json.dumps(part, separators=(",", ":"))


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    """Returns the sample with the current time; any other would be rejected."""
    try:
        body = parse(sample.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConfigurationError("Pusher sends JSON objects; give one")
    stamped = _written({**body, TIME: int(WINDOW.write(now))}).encode()
    signed = SCHEME.sign(Sample(sample.event_id, sample.type, stamped), secret, now)
    return Sent({**signed, KEY: keys.part(secret, "key") or "sample"}, stamped)


PROVIDER: Final = build_provider(
    "pusher",
    SCHEME,
    Naming(id=(content_hash,), type=(in_json("events.0.name"),), occurred_at=(in_json(TIME),)),
    verify=_verify,
    kept_headers=frozenset({KEY}),
    batch=_split,
    compose=_compose,
    facts=Facts(
        title="Pusher Channels",
        scheme="HMAC-SHA256 over the body, hex",
        window="5 minutes, by the body's `time_ms`",
        event_id="the hash of time and event: there is no id",
        answer_within="4 s",
        retries="for 5 minutes, less and less often",
        key_from='the app\'s secret; with its key, that alone counts: `{"key":"…","secret":"…"}`',
    ),
)
