"""The tenants: their pauses, without a deployment, and the runs that wait for a resumption."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.client.errors import Refused
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.pausing import pause_subject, resume_subject
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.waiting import waiting_runs
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.quotas import token
from webhook_inbox.ledger.pauses import TENANT_RESUMPTION, TENANTS, Pause, Subject, controls


@dataclass(frozen=True, slots=True)
class TenantState:
    """A paused tenant.

    Attributes:
        reason: why it is paused.
        waiting: the number of runs that wait for its resumption.
        waiting_is_complete: False if `waiting` is the least, since there are many open runs.
    """

    tenant: str
    paused: bool
    paused_at: datetime
    paused_by: str
    reason: str
    waiting: int
    waiting_is_complete: bool


@dataclass(frozen=True, slots=True)
class PausedTenant:
    """A tenant that was paused."""

    tenant: str
    paused: bool = True


@dataclass(frozen=True, slots=True)
class ResumedTenant:
    """A tenant that was resumed, and the runs that waited for it; see `TenantState`."""

    tenant: str
    paused: bool
    waiting: int
    waiting_is_complete: bool


class Tenants:
    """The tenants of an inbox; a name is that in the deliveries."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self) -> Listing[TenantState]:
        """Returns the paused tenants.

        Reads at most 200 open runs per handler and shard of the due index; where there are more,
        the numbers are the least.
        """
        return Listing(self._scope, self._states())

    def _states(self) -> Iterator[TenantState]:
        paused = self._paused()
        waiting = waiting_runs(self._scope.ledger(), _waits) if paused else None
        counts = Counter(run.tenant for run in waiting.runs) if waiting else Counter[str]()
        for each in paused:
            yield TenantState(
                tenant=each.name,
                paused=True,
                paused_at=each.at,
                paused_by=str(each.by),
                reason=each.reason,
                waiting=counts[each.name],
                waiting_is_complete=waiting is None or waiting.complete,
            )

    def _paused(self) -> Sequence[Pause]:
        found = controls(self._scope.table).values()
        return [each for each in found if each.subject is Subject.TENANT and each.paused]

    @property
    def are_declared(self) -> bool:
        """Whether a deployed source has tenants; True where the manifest cannot be read."""
        sources = self._scope.manifest.sources.values()
        return not sources or any(source.tenant for source in sources)

    def pause(self, tenant: str, *, reason: str, by: Actor) -> PausedTenant:
        """Pauses all handlers for a tenant within 5 seconds; its deliveries are still stored.

        Raises:
            Refused: it is paused already, or as many tenants as the inbox can pause are.
        """
        name = token(tenant)
        if len(self._paused()) >= TENANTS:
            listed = self._scope.program.command("tenants list")
            raise Refused(f"{TENANTS} tenants are paused; resume one of `{listed}` first")
        pause_subject(self._scope, Subject.TENANT, name, reason=reason, by=by)
        return PausedTenant(name)

    def resume(self, tenant: str, *, reason: str = "", by: Actor) -> ResumedTenant:
        """Resumes a tenant: waiting runs are sent from the next minute on, 20 per second.

        Raises:
            Refused: it is not paused.
        """
        name = token(tenant)
        resume_subject(self._scope, Subject.TENANT, name, reason=reason, by=by)
        found = waiting_runs(self._scope.ledger(), _waits)
        waiting = sum(run.tenant == name for run in found.runs)
        return ResumedTenant(
            name, paused=False, waiting=waiting, waiting_is_complete=found.complete
        )


def _waits(run: Run) -> bool:
    return run.waits_for == TENANT_RESUMPTION
