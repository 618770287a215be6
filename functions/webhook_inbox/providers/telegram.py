"""Telegram's bot updates: a token that you choose, in `X-Telegram-Bot-Api-Secret-Token`.

Nothing is signed. An update is one object beside `update_id`, and the object's name is the type.
Telegram may execute a response body as a Bot API call, so the response is empty.
Source: webhook-co's table of tokens; the Bot API's `setWebhook`.
"""

from typing import Final

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, in_json
from webhook_inbox.providers.schemes.tokens import StaticToken

TOKEN: Final = "x-telegram-bot-api-secret-token"  # noqa: S105 - a header's name


def _type(reading: Reading) -> str | None:
    update = reading.document if isinstance(reading.document, dict) else {}
    return next((name for name, value in update.items() if isinstance(value, dict)), None)


def _date(reading: Reading) -> object:
    return at(reading.document, f"{_type(reading) or ''}.date")


PROVIDER: Final = build_provider(
    "telegram",
    StaticToken(headers=(TOKEN,)),
    Naming(id=(in_json("update_id"),), type=(_type,), occurred_at=(_date,)),
    token_headers=frozenset({TOKEN}),
    acknowledgement=EMPTY,
    facts=Facts(
        title="Telegram",
        scheme="a token in a header",
        body="none",
        event_id="`update_id`",
        retries="a reasonable number of times, after any answer but 2xx",
        key_from="you choose it: `secret_token` of `setWebhook`, 1 to 256 of A-Z a-z 0-9 _ -",
    ),
)
