"""Checks the order in which runs of `latest` and `sequence` handlers begin.

Only one run of an ordering key is in progress, no older version begins after a newer one, and a
number begins only after all earlier ones were applied or skipped as `on_gap` declares.
"""

import json
from typing import NamedTuple

from simulation.engine.world import World
from simulation.invariants.observer import FINISHED, RunName, must
from webhook_inbox.domain.manifest import Order
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE
from webhook_inbox.handlers.ordering.gaps import SUBJECT
from webhook_inbox.ledger.schema import event_key, run_key


class Position(NamedTuple):
    """The position of an event in its order."""

    ordering_key: str
    version: int


def order_of(world: World, handler: str) -> Order | None:
    """Returns the `latest` or `sequence` order of a handler, or None."""
    spec = world.deployment.manifest.handlers.get(handler)
    order = spec.order if spec else None
    return order if order is not None and order.kind in {LATEST, SEQUENCE} else None


def check_order(world: World, run: RunName) -> None:
    """Checks that the order lets a handler begin, and notes its version."""
    order, handler = order_of(world, run[2]), run[2]
    if order is None:
        return
    position = _position(world, run, order)
    at_work = [job.handling for job in world.jobs.values() if job.handling not in {None, run}]
    beside = [o for o in at_work if o and o[2] == handler and _same(world, o, order, position)]
    must("order", not beside, f"{run} began while {beside} were in progress")
    newest = world.observer.versions.get((handler, position.ordering_key), 0)
    back = position.version < newest and run not in world.observer.forced
    must("order", not back, f"{run} began version {position.version} after {newest}")
    # After events have expired, their results are unknown.
    if order.kind == SEQUENCE and not world.scenario.budget.ages:
        # Numbers before the newest were checked when it began.
        for number in range(max(order.first, newest), position.version):
            _check_before(world, run, order, position, number)
    world.observer.versions[handler, position.ordering_key] = max(newest, position.version)


def _check_before(
    world: World, run: RunName, order: Order, position: Position, number: int
) -> None:
    """Checks that an earlier number was applied, or was skipped as declared."""
    earlier = Position(position.ordering_key, number)
    runs = [
        (*event, run[2])
        for event in world.observer.contents
        if event[0] == run[0] and _position(world, (*event, run[2]), order) == earlier
    ]
    applied = any(other in world.observer.succeeded for other in runs)
    must("order", applied or _passed(world, run, order, runs), f"{run} began before {number}")


def _passed(world: World, run: RunName, order: Order, before: list[RunName]) -> bool:
    """Returns whether a run may skip a number: denied, approved, or the timeout passed."""
    rows = [world.aws.table.row(run_key(*other)) or {} for other in before]
    if any(row.get("status") in FINISHED for row in rows):
        return True
    row = world.aws.table.row(run_key(*run)) or {}
    if SUBJECT in row.get("approvals", {}):
        return True
    received = (world.aws.table.row(event_key(run[0], run[1])) or {})["received_at"]
    waited = world.clock.ms - received + world.max_skew
    return order.on_gap == "skip" and waited >= order.timeout * 1000


def _same(world: World, run: RunName, order: Order, position: Position) -> bool:
    return _position(world, run, order).ordering_key == position.ordering_key


def _position(world: World, run: RunName, order: Order) -> Position:
    body = json.loads(world.observer.contents[run[:2]])
    return Position(str(body.get(order.ordering_key, "")), body.get(order.version, 0))
