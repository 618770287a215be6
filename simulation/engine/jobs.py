"""Invocations in progress."""

from typing import NamedTuple

from simulation.engine.stepping import Node
from simulation.invariants.observer import RunName
from simulation.worlds.scenario import Webhook
from webhook_inbox.domain.ports import Message


class Job(NamedTuple):
    """An invocation in progress.

    Attributes:
        kind: the function.
        node: the current node of its program.
        ends: the time at which Lambda stops it, in ms.
        skew: the error of its clock, in ms.
        wakes: the end of its sleep, in ms.
        webhook: the webhook that ingest received.
        message: the message that a processor received.
        lane: the lane of the message.
        lease: the acquired lease that is not settled yet.
        handling: the run whose handler is executing.
        force: whether this replay may reopen finished runs.
        new_keys: whether this replay may give its runs new keys.
        drawn: the number of random tokens generated.
        overdue: whether it was frozen and resumed after its timeout.
        circuit_seen: the change count of the destination's circuit when it was last read.
        entering: the time at which the handler asked to call a destination, in ms.
        controls_seen: the pauses and resumptions of the handler and tenant before it began.
        blind: whether an optional read of the ledger failed.
        erased: whether the event's payload was erased before it began.
        dead: whether the run had died when its message was received again.
        deployment: the deployment of a pass of the reconciler.
        overdue_until: by lane, the latest due time, in ms, of an entry whose wait the backlog did
            not explain when the pass read it.
        erases: the event that this erasure is about.
        person: the person who decides a request, or "".
    """

    kind: str
    node: Node
    ends: int
    skew: int = 0
    wakes: int = 0
    webhook: Webhook | None = None
    message: Message | None = None
    lane: str = ""
    lease: str = ""
    handling: RunName | None = None
    force: bool = False
    new_keys: bool = False
    drawn: int = 0
    overdue: bool = False
    circuit_seen: int = 0
    entering: int = 0
    controls_seen: int = 0
    blind: bool = False
    dead: bool = False
    erased: bool = False
    deployment: str = ""
    overdue_until: tuple[tuple[str, int], ...] = ()
    erases: tuple[str, str] | None = None
    person: str = ""
