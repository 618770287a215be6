"""Erases every delivered event of a world that has converged, and checks that nothing is left."""

from collections.abc import Iterator

from simulation.engine import invocations
from simulation.engine.virtual_time import DELIVERY_MS
from simulation.engine.world import World
from simulation.invariants.erasure import check_emptied
from simulation.invariants.observer import must
from webhook_inbox.ledger.schema import event_key


def erase_all(world: World) -> None:
    """Erases every delivered event once no delivery can store a payload any more.

    An operator who repeats the call after the reported time must not have to repeat it again,
    unless a run of the event is held. Nothing may be left, whatever was erased before.

    Raises:
        Violation: an erasure does not report its end, or leaves a payload.
    """
    world.advance(world.clock.ms + DELIVERY_MS)
    for event in sorted(set(_delivered(world))):
        # Two erasures in the same millisecond would draw the same token.
        world.advance(world.clock.ms + 1)
        _erase(world, event)
    check_emptied(world.observer, world.aws.table.rows(), world.aws.blobs)


def _delivered(world: World) -> Iterator[tuple[str, str]]:
    for webhook in world.scenario.webhooks:
        if webhook.name in world.tries:
            yield webhook.event
            yield from ((webhook.source, item) for item in webhook.items)


def _erase(world: World, event: tuple[str, str]) -> None:
    observer, pk = world.observer, event_key(*event).pk
    invocations.erase(world, *event)
    while world.jobs:
        invocations.step(world, "person 1", "ok")
    rows = [row for row in world.aws.table.rows() if row["pk"] == pk]
    if any(row["sk"] == "event" for row in rows):
        must("erasure", event in observer.emptied, f"{event} was erased, and may have a payload")
        cleared = event in observer.cleared or any(row.get("status") == "held" for row in rows)
        must("erasure", cleared, f"{event} was erased, and may have texts of handlers")
    # Also an event without a row, of which a delivery that failed may have left an object.
    observer.emptied.add(event)
