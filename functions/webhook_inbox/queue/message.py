"""What a queue message says: which run, and with which generation. Never the payload.

On a FIFO lane it is sent in a group besides; SQS hands out one message of a group at a time:

    {handler}#{ordering_key}               the runs of an ordering key, in the order of their sending
    !{handler}#{ordering_key}#{event id}   a run that the others of its ordering key wait for: behind them it
                                     would never come
    ?{handler}#{event id}            a run of which no ordering key is known, by itself

No handler's name begins with one of these marks.
"""

import json
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import token

VERSION: Final = 1
# Of what no inbox writes, but a key or a number of the ledger could not hold.
NAME_BYTES: Final = 512
GENERATIONS: Final = 10**12


@dataclass(frozen=True, slots=True)
class RunMessage:
    """Names a run; `generation` is the one the message was sent with, 0 for the first.

    `ordering_key` is what a serial run is in order with, and `apart` whether it is sent apart from the
    others of its ordering key. Neither is in the message's text: they name its group.
    """

    source: str
    event_id: str
    handler: str
    generation: int = 0
    ordering_key: str = field(default="", compare=False)
    apart: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, run: Run, *, apart: bool = False) -> "RunMessage":
        """Returns what a message of the run says that may claim it."""
        return cls(run.source, run.event_id, run.handler, run.generation, run.ordering_key, apart)

    def outgoing(self, *, fifo: bool, delay: int = 0) -> Outgoing:
        """Returns the message; a FIFO lane knows no delay of a single one."""
        if not fifo:
            return Outgoing(self.encode(), delay)
        # With the generation: by the event's id alone, SQS would swallow a replay for five minutes.
        named = f"{self.handler}#{self.source}#{self.event_id}#{self.generation}"
        return Outgoing(self.encode(), group=token(self._group()), dedup=token(named))

    def _group(self) -> str:
        if not self.ordering_key:
            return f"?{self.handler}#{self.event_id}"
        group = f"{self.handler}#{self.ordering_key}"
        return f"!{group}#{self.event_id}" if self.apart else group

    def encode(self) -> str:
        """Returns the message's text: ASCII JSON, so that any id passes SQS's character set."""
        return json.dumps(
            {
                "v": VERSION,
                "source": self.source,
                "event_id": self.event_id,
                "handler": self.handler,
                "generation": self.generation,
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> "RunMessage":
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
        generation = data.get("generation")
        if not (_is_name(source) and _is_name(event_id) and _is_name(handler)):
            raise ForeignMessage("source, event_id or handler is missing or no name")
        if type(generation) is not int or not 0 <= generation < GENERATIONS:
            raise ForeignMessage("generation is not a whole number")
        return cls(source, event_id, handler, generation)


def _is_name(value: object) -> TypeGuard[str]:
    if not isinstance(value, str):
        return False
    try:
        return 0 < len(value.encode()) <= NAME_BYTES
    except UnicodeEncodeError:  # JSON can spell lone surrogates
        return False
