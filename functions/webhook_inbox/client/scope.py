"""The inbox that the operations of one client share, and the right to change it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from webhook_inbox.client.budget import BoundedTable
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.names import known_manifest, require_known
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.ports import Clock, Ports, Randomness, Table
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import dedupe_key


@dataclass(frozen=True)
class Scope:
    """One inbox, shared by the operations of one client.

    Attributes:
        target: the inbox's resources; for the table use `table`, which may have a budget.
        table: the ledger's table; that of a client that only reads refuses to write.
        clock: the time of this machine.
    """

    target: Target
    table: Table
    clock: Clock
    randomness: Randomness
    program: Program
    write: bool

    @property
    def manifest(self) -> Manifest:
        """The deployed sources and handlers; empty where they cannot be read."""
        return known_manifest(self.target)

    @property
    def ports(self) -> Ports:
        """The adapters of a process that changes runs: neither secrets nor destinations."""
        return Ports(
            table=self.table,
            clock=self.clock,
            randomness=self.randomness,
            blobs=self.target.blobs,
            queues=self.target.queues,
        )

    @property
    def is_cut(self) -> bool:
        """Whether a list left out rows, since the client's budget is spent."""
        return isinstance(self.table, BoundedTable) and self.table.cut

    def ledger(self, *, with_bodies: bool = False) -> Ledger:
        """Returns the ledger; reading bodies needs permission for the bucket."""
        return Ledger(table=self.table, blobs=self.target.blobs if with_bodies else None)

    def overviews(
        self, event_id: str, source: str | None = None, *, with_body: bool = False
    ) -> Sequence[Overview]:
        """Returns the events with this id, of the source or of any source."""
        ledger, key, now = (
            self.ledger(with_bodies=with_body),
            dedupe_key(event_id),
            self.clock.now(),
        )
        found = (
            ledger.overview(name, key, now=now, with_body=with_body)
            for name in self.sources(source)
        )
        return [overview for overview in found if overview is not None]

    def runs(self, event_id: str, source: str | None, handler: str | None) -> Sequence[Run]:
        """Returns the runs of the events with this id; raises WrongArgument for unknown names."""
        overviews = self.overviews(event_id, source)
        runs = [run for overview in overviews for run in overview.runs]
        selected = [run for run in runs if handler in {None, run.handler}]
        if not selected:
            require_known(self.target, source=source, handler=handler)
        return selected

    def sources(self, source: str | None = None) -> list[str]:
        """Returns the source, or all sources of the inbox."""
        return [source] if source else list(self.target.urls)

    def require_write(self) -> None:
        """Raises Refused for a client that only reads; each operation that changes begins so."""
        if not self.write:
            raise Refused("this client only reads: connect with write=True")

    @contextmanager
    def audited(
        self, action: AuditedAction, by: Actor, *, reason: str = "", **request: str | None
    ) -> Iterator[Counter[str]]:
        """Writes an audit row, yields the counts of the action's outcomes, and then adds them.

        The action is not performed if the row cannot be written. An error leaves the row without
        counts: begun, and not finished.

        Raises:
            Refused: the client only reads.
            Unavailable: the table failed.
        """
        self.require_write()
        recorded = audit.record(
            self.table,
            self.randomness,
            action=action,
            by=by,
            reason=reason,
            request={name: value for name, value in request.items() if value},
            now=self.clock.now(),
        )
        counts = Counter[str]()
        yield counts
        recorded.conclude(counts)
