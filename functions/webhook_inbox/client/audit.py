"""The audit: who did what, why, and what came of it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.client.listing import Listing
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import AuditedAction, AuditEntry
from webhook_inbox.ledger.audit import DAY, find
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.replay.request import STOP_AT_FAILURES

MOMENT: Final = timedelta(milliseconds=1)
# The values of a replay's request that it has unless it is asked otherwise.
REPLAY_DEFAULTS: Final = {"rate_per_second": "10.0", "stop_at_failures": str(STOP_AT_FAILURES)}


class Audit:
    """The actions of operators, which are kept for 70 days."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        action: AuditedAction | None = None,
        by: str | None = None,
        event_id: str | None = None,
        limit: int | None = None,
    ) -> Listing[AuditEntry]:
        """Returns actions, newest first.

        Args:
            since: only those from then on; by default those of 24 hours.
            until: only those before then; by default all up to now.
            action: only these.
            by: only those of actors whose name contains this.
            event_id: only those that name this event; a replay by a filter names none.
            limit: how many at most; by default all.
        """
        now = self._scope.clock.now()
        high = until or now
        # An action of this millisecond is listed.
        window = find(
            self._scope.table,
            since=since or high - DAY,
            until=until or high + MOMENT,
            now=now,
        )
        found = _matching(window, action=action, by=by, event_id=event_id)
        return Listing(self._scope, found, limit=limit)


def _matching(
    entries: Iterator[AuditEntry],
    *,
    action: AuditedAction | None,
    by: str | None,
    event_id: str | None,
) -> Iterator[AuditEntry]:
    key = None if event_id is None else dedupe_key(event_id)
    for entry in entries:
        if (
            action in {None, entry.action}
            and (by is None or by in str(entry.actor))
            and (key is None or key in entry.event_ids)
        ):
            yield entry
