"""What a queue message says: which run, and with which ticket. Never the payload."""

import json
from dataclasses import dataclass
from typing import Final, TypeGuard

from webhook_inbox.errors import ForeignMessage

VERSION: Final = 1
# Of what no inbox writes, but a key or a number of the ledger could not hold.
NAME_BYTES: Final = 512
TICKETS: Final = 10**12


@dataclass(frozen=True, slots=True)
class Reference:
    """Names a run; `ticket` is the one the message was sent with, 0 for the first."""

    source: str
    event_id: str
    handler: str
    ticket: int = 0

    def encode(self) -> str:
        """Returns the message's text: ASCII JSON, so that any id passes SQS's character set."""
        return json.dumps(
            {
                "v": VERSION,
                "source": self.source,
                "event_id": self.event_id,
                "handler": self.handler,
                "ticket": self.ticket,
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> "Reference":
        """Reads a message's text.

        Raises:
            ForeignMessage: it is not one of ours, or of a version this code does not know.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ForeignMessage("not JSON") from error
        if not isinstance(data, dict) or "v" not in data:
            raise ForeignMessage("not an object with a version")
        if data["v"] != VERSION:
            raise ForeignMessage(f"version {str(data['v'])[:20]!r}, and this code knows {VERSION}")
        source, event_id, handler = (data.get(k) for k in ("source", "event_id", "handler"))
        ticket = data.get("ticket")
        if not (_is_name(source) and _is_name(event_id) and _is_name(handler)):
            raise ForeignMessage("source, event_id or handler is missing or no name")
        if type(ticket) is not int or not 0 <= ticket < TICKETS:
            raise ForeignMessage("ticket is not a whole number")
        return cls(source, event_id, handler, ticket)


def _is_name(value: object) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    try:
        return 0 < len(value.encode()) <= NAME_BYTES
    except UnicodeEncodeError:  # JSON can spell lone surrogates
        return False
