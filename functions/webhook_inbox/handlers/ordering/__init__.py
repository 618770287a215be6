"""Keeping a handler's runs in order per ordering key, on queues that have none.

    pk                          sk                       row
    ordering_key#{handler}#{ordering_key}   state#{kind}             who holds it, what was begun and applied
    same                        waiter#{number}#{event}  a run that came before its predecessor

An ordering key is held by one run at a time, for as long as the run's own lease lasts. Whatever a run
did is recorded before the run is settled, so that a crash in between lets no older one in.
"""

from webhook_inbox.handlers.ordering.gaps import BACKFILL_AFTER, SUBJECT, OutOfTurn
from webhook_inbox.handlers.ordering.key_state import STATE_LIFE
from webhook_inbox.handlers.ordering.turns import Orders

__all__ = ["BACKFILL_AFTER", "STATE_LIFE", "SUBJECT", "Orders", "OutOfTurn"]
