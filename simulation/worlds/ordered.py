"""Small worlds about order without a queue's help, and about handlers that a person pauses."""

from dataclasses import replace
from typing import Any, Final

from simulation.engine.acting import Way
from simulation.worlds.builders import FIRST, MAIL, world
from simulation.worlds.scenario import DEFERS, FAILS, REFUSES, Deployment, Letter, handler, manifest
from webhook_inbox.domain.manifest import Order
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE
from webhook_inbox.replay.request import ReplayRequest

ONE: Final = Letter("one", event_id="e1", version=1, there=True)
TWO: Final = Letter("two", event_id="e2", version=2, there=True)
THREE: Final = Letter("three", event_id="e3", version=3, there=True)
LATE: Final = Letter("one, late", event_id="e1", version=1)
SAME: Final = Letter("the same", event_id="e4", version=1, there=True)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)


def keeping(kind: str, *, way: Way | None = None, **settings: Any) -> Deployment:
    """Returns a deployment whose handler keeps an order."""
    order = Order(kind, "content", "version", **settings)
    ways = {"mail": way} if way else {}
    return Deployment(kind, manifest(handler("mail", order=order)), ways=ways)


NEWEST: Final = keeping(LATEST)
NUMBERED: Final = keeping(SEQUENCE, timeout=60.0)
SKIPPING: Final = keeping(SEQUENCE, timeout=60.0, on_gap="skip")
STRICT: Final = keeping(SEQUENCE, timeout=60.0, on_gap="dead")

ORDERED: Final = (
    world(
        "the latest of two",
        ONE,
        TWO,
        on=NEWEST,
        verdicts={"mail": (FAILS, REFUSES)},
        faults=("killed",),
        receivers=1,
        budget={"misdeeds": 1, "faults": 1},
    ),
    world(
        "the latest, by a faulty ledger",
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
        verdicts={"mail": (FAILS, DEFERS)},
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
        "a sequence, by a faulty ledger",
        ONE,
        TWO,
        on=NUMBERED,
        faults=("before", "after", "lost"),
        receivers=1,
        workers=1,
        budget={"faults": 1},
    ),
    world(
        "a sequence whose first is dead",
        ONE,
        TWO,
        on=NUMBERED,
        verdicts={"mail": (REFUSES,)},
        requests=(BY_NAME,),
        faults=(),
        receivers=1,
        workers=1,
        budget={"misdeeds": 1, "replays": 1, "decisions": 1},
    ),
    world(
        "a gap that is passed over",
        ONE,
        TWO,
        on=SKIPPING,
        verdicts={"mail": (REFUSES,)},
        faults=(),
        receivers=1,
        workers=1,
        budget={"misdeeds": 1, "jumps": 2},
    ),
    world(
        "a gap that is death",
        ONE,
        TWO,
        on=STRICT,
        faults=("killed",),
        receivers=1,
        workers=1,
        budget={"faults": 1, "jumps": 2},
    ),
    world(
        "one number twice",
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

PAUSED: Final = (
    world(
        "a handler is paused and resumed",
        replace(FIRST, there=True),
        on=MAIL,
        verdicts={"mail": (FAILS,)},
        faults=("killed",),
        receivers=1,
        workers=1,
        budget={"pauses": 2, "faults": 1, "passes": 1},
    ),
)
