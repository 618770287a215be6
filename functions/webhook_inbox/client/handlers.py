"""The handlers: their pauses, without a deployment, and the runs that wait for a resumption."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.client.listing import Listing
from webhook_inbox.client.names import require_known
from webhook_inbox.client.pausing import pause_subject, resume_subject
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor
from webhook_inbox.ledger.pauses import RESUMPTION, Controls, Subject, controls


@dataclass(frozen=True, slots=True)
class HandlerState:
    """A handler; what the deployed manifest tells is None where it cannot be read.

    Attributes:
        types: the patterns of its types.
        order: the kind of its ordering, None without one.
        reason: why it is paused.
        waiting: the number of runs that wait for its resumption.
    """

    handler: str
    source: str | None
    types: tuple[str, ...] | None
    lane: str | None
    order: str | None
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    reason: str | None
    waiting: int


@dataclass(frozen=True, slots=True)
class PausedHandler:
    """A handler that was paused."""

    handler: str
    paused: bool = True


@dataclass(frozen=True, slots=True)
class ResumedHandler:
    """A handler that was resumed, and the number of runs that waited for it."""

    handler: str
    paused: bool
    waiting: int


class Handlers:
    """The handlers of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self) -> Listing[HandlerState]:
        """Returns the deployed handlers, and those without a deployment that were ever paused."""
        return Listing(self._scope, self._states())

    def _states(self) -> Iterator[HandlerState]:
        pauses = controls(self._scope.table)
        specs = self._scope.manifest.handlers
        waiting = self._waiting(pauses)
        for name in dict.fromkeys((*specs, *_handler_names(pauses))):
            spec, pause = specs.get(name), pauses.get((Subject.HANDLER, name))
            current = pause if pause is not None and pause.paused else None
            yield HandlerState(
                handler=name,
                source=spec.source if spec else None,
                types=tuple(spec.types) if spec else None,
                lane=spec.lane if spec else None,
                order=spec.order.kind if spec and spec.order else None,
                paused=current is not None,
                paused_at=current.at if current else None,
                paused_by=str(current.by) if current else None,
                reason=current.reason if current else None,
                waiting=waiting[name],
            )

    def _waiting(self, pauses: Controls) -> Counter[str]:
        """Returns the number of runs that wait for each handler's resumption."""
        if not _handler_names(pauses):
            return Counter()
        runs = self._scope.ledger().due_runs()
        return Counter(run.handler for run in runs if run.waits_for == RESUMPTION)

    def pause(self, handler: str, *, reason: str, by: Actor) -> PausedHandler:
        """Pauses a handler within 5 seconds; runs in progress finish, and later ones wait.

        Raises:
            WrongArgument: no such handler is deployed.
            Refused: it is paused already.
        """
        require_known(self._scope.target, source=None, handler=handler)
        pause_subject(self._scope, Subject.HANDLER, handler, reason=reason, by=by)
        return PausedHandler(handler)

    def resume(self, handler: str, *, reason: str = "", by: Actor) -> ResumedHandler:
        """Resumes a handler: waiting runs are sent from the next minute on, 20 per second.

        Raises:
            WrongArgument: no such handler is deployed.
            Refused: it is not paused.
        """
        resume_subject(self._scope, Subject.HANDLER, handler, reason=reason, by=by)
        waiting = self._waiting(controls(self._scope.table))[handler]
        return ResumedHandler(handler, paused=False, waiting=waiting)


def _handler_names(pauses: Controls) -> list[str]:
    return [name for subject, name in pauses if subject is Subject.HANDLER]
