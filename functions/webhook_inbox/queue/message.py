"""A queue message names a run and its generation. It never has the payload.

On a FIFO lane every message has a message group; SQS delivers one message of a group at a time:

    {handler}#{ordering_key}   the runs of an ordering key, in the order they were sent
    ?{handler}#{event id}      a run without an ordering key; no handler name starts with this mark

On a standard lane the group is the run's tenant, so SQS delivers the messages of quiet tenants
before those of a tenant with a backlog (fair queues); a message without a tenant has no group.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
"""

import json
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.model import Run, StoredEvent
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import token

VERSION: Final = 1
# Bounds for messages that no inbox wrote: beyond them a key or number would not fit the ledger.
NAME_BYTES: Final = 512
GENERATIONS: Final = 10**12


@dataclass(frozen=True, slots=True)
class RunMessage:
    """Names a run; `generation` is the one the message was sent with, 0 for the first.

    `ordering_key` and `tenant` determine the message group and are not part of the message's text.
    """

    source: str
    event_id: str
    handler: str
    generation: int = 0
    ordering_key: str = field(default="", compare=False)
    tenant: str = field(default="", compare=False)

    @classmethod
    def of(cls, run: Run) -> "RunMessage":
        """Returns the message that may lease the run."""
        names = (run.source, run.event_id, run.handler)
        return cls(*names, run.generation, ordering_key=run.ordering_key, tenant=run.tenant)

    @classmethod
    def first(cls, event: StoredEvent, handler: str) -> "RunMessage":
        """Returns the message of generation 0, that may lease a run without a row."""
        key = event.ordering_keys.get(handler, "")
        return cls(event.source, event.event_id, handler, ordering_key=key, tenant=event.tenant)

    def outgoing(self, *, fifo: bool, delay: int = 0) -> Outgoing:
        """Returns the message for SQS; `delay` in seconds is ignored on a FIFO lane."""
        if not fifo:
            return Outgoing(self.encode(), delay, group=self.tenant)
        # Without the generation, SQS would drop a replay within five minutes as a duplicate.
        named = f"{self.handler}#{self.source}#{self.event_id}#{self.generation}"
        return Outgoing(self.encode(), group=token(self._group()), dedup=token(named))

    def _group(self) -> str:
        if not self.ordering_key:
            return f"?{self.handler}#{self.event_id}"
        return f"{self.handler}#{self.ordering_key}"

    def encode(self) -> str:
        """Returns the message's text: ASCII JSON, since SQS does not accept every character."""
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
            ForeignMessage: no inbox wrote it, or its version is not known here.
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
