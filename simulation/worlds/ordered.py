"""Small worlds about `latest` and `sequence` ordering, and about paused handlers."""

from dataclasses import replace
from typing import Any, Final

from simulation.engine.acting import Behavior
from simulation.worlds.builders import FIRST, MAIL, world
from simulation.worlds.scenario import (
    DEFERS,
    FAILS,
    REFUSES,
    Deployment,
    Webhook,
    handler,
    manifest,
)
from webhook_inbox.domain.manifest import Order
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE
from webhook_inbox.replay.request import ReplayRequest

ONE: Final = Webhook("one", event_id="e1", version=1, preloaded=True)
TWO: Final = Webhook("two", event_id="e2", version=2, preloaded=True)
THREE: Final = Webhook("three", event_id="e3", version=3, preloaded=True)
LATE: Final = Webhook("one, late", event_id="e1", version=1)
SAME: Final = Webhook("the same", event_id="e4", version=1, preloaded=True)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)


def keeping(kind: str, *, behavior: Behavior | None = None, **settings: Any) -> Deployment:
    """Returns a deployment with an ordered handler."""
    order = Order(kind, "content", "version", **settings)
    behaviors = {"mail": behavior} if behavior else {}
    return Deployment(kind, manifest(handler("mail", order=order)), behaviors=behaviors)


NEWEST: Final = keeping(LATEST)
NUMBERED: Final = keeping(SEQUENCE, timeout=60.0)
SKIPPING: Final = keeping(SEQUENCE, timeout=60.0, on_gap="skip")
STRICT: Final = keeping(SEQUENCE, timeout=60.0, on_gap="dead")

ORDERING_WORLDS: Final = (
    world(
        "the latest of two",
        ONE,
        TWO,
        on=NEWEST,
        outcomes={"mail": (FAILS, REFUSES)},
        faults=("killed",),
        receivers=1,
        budget={"failures": 1, "faults": 1},
    ),
    world(
        "latest with a faulty ledger",
        ONE,
        TWO,
        on=NEWEST,
        faults=("before", "after", "twice"),
        receivers=1,
        workers=1,
        budget={"faults": 1},
    ),
    world(
        "a sequence of two",
        ONE,
        TWO,
        on=NUMBERED,
        outcomes={"mail": (FAILS, DEFERS)},
        faults=("killed",),
        receivers=1,
        budget={"faults": 1, "jumps": 1},
    ),
    world(
        "a sequence of three",
        ONE,
        TWO,
        THREE,
        on=NUMBERED,
        faults=(),
        receivers=1,
        workers=1,
        budget={},
    ),
    world(
        "a sequence with a faulty ledger",
        ONE,
        TWO,
        on=NUMBERED,
        faults=("before", "after", "lost"),
        receivers=1,
        workers=1,
        budget={"faults": 1},
    ),
    world(
        "a sequence with a dead first event",
        ONE,
        TWO,
        on=NUMBERED,
        outcomes={"mail": (REFUSES,)},
        requests=(BY_NAME,),
        faults=(),
        receivers=1,
        workers=1,
        budget={"failures": 1, "replays": 1, "decisions": 1},
    ),
    world(
        "a skipped gap",
        ONE,
        TWO,
        on=SKIPPING,
        outcomes={"mail": (REFUSES,)},
        faults=(),
        receivers=1,
        workers=1,
        budget={"failures": 1, "jumps": 2},
    ),
    world(
        "a fatal gap",
        ONE,
        TWO,
        on=STRICT,
        faults=("killed",),
        receivers=1,
        workers=1,
        budget={"faults": 1, "jumps": 2},
    ),
    world(
        "a duplicate sequence number",
        ONE,
        SAME,
        TWO,
        on=NUMBERED,
        faults=(),
        receivers=1,
        budget={"jumps": 1},
        workers=1,
    ),
)

PAUSE_WORLDS: Final = (
    world(
        "a handler is paused and resumed",
        replace(FIRST, preloaded=True),
        on=MAIL,
        outcomes={"mail": (FAILS,)},
        faults=("killed",),
        receivers=1,
        workers=1,
        budget={"pauses": 2, "faults": 1, "passes": 1},
    ),
    world(
        "a tenant is paused and resumed",
        replace(FIRST, preloaded=True, tenant="t1"),
        on=Deployment("none of its own", manifest(handler("mail"))),
        faults=(),
        receivers=1,
        workers=1,
        budget={"pauses": 2},
    ),
)
