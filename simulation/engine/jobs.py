"""Invocations that have begun."""

from typing import NamedTuple

from simulation.engine.stepping import Node
from simulation.invariants.observer import RunName
from simulation.worlds.scenario import Webhook
from webhook_inbox.domain.ports import Message


class Job(NamedTuple):
    """An invocation that has begun.

    Attributes:
        kind: which function.
        node: where its program stands.
        ends: when Lambda stops it, in ms.
        skew: how far its clock is off, in ms.
        wakes: until when it sleeps, in ms.
        webhook: what ingest was given.
        message: what a processor was given, and the lane it came from.
        lease: the lease it claimed and has not settled.
        handling: the run whose handler it is in.
        force: whether this replay may reopen finished runs.
        drawn: how many random tokens it has drawn.
        overdue: whether it goes on although its time is over, frozen and thawed again.
        looked: how often a destination's circuit had changed when this one looked at it last.
        entering: when its handler asked to call a destination, in ms.
        told: how often somebody had said by then whether its handler is paused.
        blind: whether the ledger failed it where it asked what it may go without.
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
    drawn: int = 0
    overdue: bool = False
    circuit_seen: int = 0
    entering: int = 0
    controls_seen: int = 0
    blind: bool = False
