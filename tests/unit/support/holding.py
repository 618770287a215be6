"""Runs that wait for a person, as a worker leaves them."""

from datetime import timedelta
from typing import Any

from tests.unit.support.world import World
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.effects.journal import encode
from webhook_inbox.ledger.lease import Lease, claim
from webhook_inbox.ledger.schema import effect_key, shared_effect_key
from webhook_inbox.ledger.settle import Settlement, settle
from webhook_inbox.queue.message import RunMessage

SUBJECT = "effect:refund"
SHOWS = '{"amount": 42}'
FINGERPRINT = "doubt:lease-1"


def deciding(world: World) -> Approvals:
    """Returns the use case as an operator's process has it."""
    return Approvals(world.manifest, world.ports)


def hold(
    world: World, event_id: str = "evt-1", *, source: str = "acme", type_: str = "", **held: Any
) -> ApprovalRequest:
    """Delivers an event, and lets its worker find that a person has to decide."""
    world.deliver(event_id, source=source, type_=type_)
    return hold_next(world, **held)


def hold_next(world: World, **held: Any) -> ApprovalRequest:
    """Lets the next run that is received be held."""
    message = world.taken()
    reference = RunMessage.decode(message.body)
    run = claim(
        world.table,
        event=world.overview(reference.event_id, reference.source).event,
        spec=world.manifest.handlers[reference.handler],
        generation=reference.generation,
        message=message,
        lease=Lease(world.randomness.token(), "worker-1", world.now + timedelta(seconds=60), "v1"),
        now=world.now,
    )
    asked = {
        "subject": SUBJECT,
        "reason": "it is unknown whether it happened",
        "shows": SHOWS,
        "fingerprint": FINGERPRINT,
        "at": to_ms(world.now),
        **held,
    }
    settlement = Settlement(
        Status.HELD, "held", world.now, str(asked["reason"]), spent=False, held=asked
    )
    settled = settle(world.table, run, settlement, sent_at=message.sent_at)
    world.queues[world.manifest.lane_of(run.handler)].delete(message.receipt)
    assert settled.status is Status.HELD
    return ApprovalRequest(settled)


def effect(world: World, run: Run, name: str = "refund", **values: Any) -> Key:
    """Writes an effect's row, started and not committed unless told otherwise."""
    key = effect_key(run.source, run.event_id, run.handler, name)
    world.table.put(_row(world, run, key, name, **values))
    return key


def shared_effect(world: World, run: Run, name: str = "refund", business: str = "pay-7") -> Key:
    """Writes an effect that several events share, in doubt, and the row that leads to it."""
    shared = shared_effect_key(name, business)
    world.table.put(_row(world, run, shared, name))
    own = effect_key(run.source, run.event_id, run.handler, name)
    world.table.put({"pk": own.pk, "sk": own.sk, "name": name, "shared": shared.pk})
    return shared


def _row(world: World, run: Run, key: Key, name: str, **values: Any) -> Item:
    row: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "name": name,
        "idempotency_key": f"{name}:{run.handler}:{run.source}:{run.event_id}",
        "source": run.source,
        "event_id": run.event_id,
        "handler": run.handler,
        "status": "started",
        "fence": 1,
        "attempt": 1,
        "lease_id": "lease-1",
        "started_at": to_ms(world.now),
        "doubtful_since": to_ms(world.now),
        "busy_until": to_ms(world.now),
        "arguments": "",
        "in_doubt": "hold",
        "key_lifetime": 86400,
        **values,
    }
    return {k: v for k, v in row.items() if v is not None}


def committed(result: object) -> dict[str, Any]:
    """Returns what a commit changes of an effect's row."""
    return {
        "status": "committed",
        "result": encode(result),
        "committed_by": "lease-1",
        "committed_at": 1_767_225_600_000,
        "busy_until": None,
    }
