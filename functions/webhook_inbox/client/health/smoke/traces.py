"""The traces of smoke tests in the ledger and the DLQ, and their removal.

A row names each smoke test that runs or was killed; the next one removes what it left:

    pk = smoke    sk = {token}    began_at: epoch ms; expires_at
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from webhook_inbox.domain.errors import ForeignMessage, Unavailable
from webhook_inbox.domain.manifest import SMOKE
from webhook_inbox.domain.ports import Clock, Key, Message, Queue, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger.schema import conflict_key, event_key, event_pk
from webhook_inbox.queue.message import RunMessage

LIFE: Final = timedelta(days=7)
# Longer than a smoke test takes. The row of an older one is of a killed one.
LONGEST: Final = timedelta(minutes=10)
BATCH: Final = 10
# Other runs' messages are hidden for at most so many seconds while one pass reads the DLQ.
HIDDEN_FOR: Final = 15
# The time of a pass; with making messages visible it is shorter than HIDDEN_FOR, so that a pass
# receives no message twice, and ends.
PASS: Final = timedelta(seconds=5)
# More are not made visible one by one: they become visible by themselves.
SHOWN_AGAIN: Final = 100


def event_ids(token: str) -> tuple[str, str]:
    """Returns the ids of a smoke test's events: the one that succeeds, and the one that fails."""
    return f"smoke-{token}-works", f"smoke-{token}-fails"


class Traces:
    """The rows of smoke tests."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def begin(self, token: str) -> None:
        """Writes the row of a smoke test."""
        now = self._clock.now()
        expires_at = to_seconds(now + LIFE)
        row = {"pk": SMOKE, "sk": token, "began_at": to_ms(now), "expires_at": expires_at}
        self._table.put(row)

    def tokens(self, *, killed: bool) -> list[str]:
        """Returns the smoke tests that were killed, or those that may run."""
        oldest = self._clock.now() - LONGEST
        rows = self._table.query(SMOKE)
        return [row["sk"] for row in rows if (from_ms(row["began_at"]) < oldest) is killed]

    def erase(self, token: str) -> None:
        """Deletes the events, runs and effects of a smoke test, and then its row."""
        for event_id in event_ids(token):
            # The event first: without it, no message of its runs has an attempt.
            self._table.delete(event_key(SMOKE, event_id))
            for pk in (event_pk(SMOKE, event_id), conflict_key(SMOKE, event_id, "").pk):
                for row in list(self._table.query(pk)):
                    self._table.delete(Key(row["pk"], row["sk"]))
        self._table.delete(Key(SMOKE, token))


def find_dead_letters(dlq: Queue, event_id: str, clock: Clock) -> list[Message]:
    """Reads a DLQ for 5 s, and returns the messages of this smoke test's event, hidden for 15 s.

    SQS has no search: messages of other runs are received too, and then visible again. The next
    pass goes on with those that are visible still.

    Raises:
        Unavailable: the queue failed.
    """
    found, others, end = list[Message](), list[Message](), clock.now() + PASS
    try:
        while not found and clock.now() < end:
            messages = dlq.receive(BATCH, hidden_for=HIDDEN_FOR)
            if not messages:
                break
            for message in messages:
                (found if _is_of(message, event_id) else others).append(message)
    finally:
        for message in others[:SHOWN_AGAIN]:
            with suppress(Unavailable):  # It is visible again in 15 s.
                dlq.hide(message.receipt, 0)
    return found


def _is_of(message: Message, event_id: str) -> bool:
    try:
        reference = RunMessage.decode(message.body)
    except ForeignMessage:
        return False
    return (reference.source, reference.event_id) == (SMOKE, event_id)
