"""Docker Hub: a token that you add to the URL, `?token=…`; nothing is signed.

A push has no id and no type. `callback_url` is set by the sender and never called. Treat the body
as a hint to read the registry again.
Source: docker/docs `docker-hub/repos/manage/webhooks.md`.
"""

from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Facts, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    fixed,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.tokens import StaticToken

FIELD: Final = "token"
SCHEME: Final = StaticToken(fields=(FIELD,))


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    return Sent(SCHEME.sign(sample, secret, now), sample.body, urlencode({FIELD: secret}))


def _pushed_at(reading: Reading) -> object:
    found = at(reading.document, "push_data.pushed_at")
    # Some of Docker's own samples write seconds as 1.417566161e+09.
    return int(found) if isinstance(found, float) and found.is_integer() else found


PROVIDER: Final = build_provider(
    "docker-hub",
    SCHEME,
    Naming(
        id=(joined(in_json("repository.repo_name"), in_json("push_data.tag"), _pushed_at),),
        type=(fixed("push"),),
        occurred_at=(_pushed_at,),
    ),
    compose=_compose,
    token_fields=frozenset({FIELD}),
    facts=Facts(
        title="Docker Hub",
        scheme="a token in the URL's query, `token`; nothing is signed",
        body="none",
        event_id="repository, tag and time of the push",
        handshake="none; `callback_url` is not called",
        key_from="a long random token: `webhookctl secrets set`, and `?token=…` in the webhook's"
        " URL",
    ),
)
