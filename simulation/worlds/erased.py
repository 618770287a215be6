"""Worlds in which an operator erases an event's payload."""

from dataclasses import replace
from typing import Final

from simulation.worlds.builders import AGAIN, FIRST, JOURNAL, world
from simulation.worlds.scenario import FAILS, REFUSES, Deployment, Webhook, manifest

# No handler wants the events, so nothing happens but deliveries and erasures.
STORED: Final = Deployment("stored", manifest())
LARGE: Final = 20_000
TRIED: Final = Webhook("first", "vary", padding=LARGE, attempt=1, retries=False)
TRIED_AGAIN: Final = replace(TRIED, name="again", attempt=2)

ERASURE_WORLDS: Final = (
    world(
        "an erased event",
        FIRST,
        AGAIN,
        faults=("killed",),
        workers=1,
        receivers=1,
        budget={"erasures": 1, "faults": 1},
    ),
    world(
        "an erased large event",
        replace(FIRST, padding=20_000, preloaded=True),
        faults=(),
        workers=1,
        receivers=1,
        budget={"erasures": 1},
    ),
    world(
        "an event is erased while its attempt fails",
        replace(FIRST, preloaded=True),
        faults=(),
        outcomes={"mail": (REFUSES,)},
        workers=1,
        receivers=1,
        budget={"erasures": 1, "failures": 1},
    ),
    world(
        "an erased event was delivered with volatile fields",
        TRIED,
        TRIED_AGAIN,
        on=STORED,
        faults=("before", "delayed"),
        workers=0,
        receivers=1,
        budget={"erasures": 1, "faults": 1},
    ),
    world(
        "an erased event was delivered twice at once",
        TRIED,
        TRIED_AGAIN,
        on=STORED,
        faults=(),
        workers=0,
        budget={"erasures": 1},
    ),
    # After days, the erasure of the first event waits for no delivery.
    world(
        "a conflict of an erased event",
        replace(FIRST, preloaded=True),
        Webhook("other content", content="43", padding=LARGE),
        on=STORED,
        faults=("before", "delayed", "killed"),
        workers=0,
        receivers=1,
        budget={"ages": 1, "erasures": 1, "faults": 1},
    ),
    world(
        "an event is erased while its effect fails",
        replace(FIRST, preloaded=True),
        on=JOURNAL,
        faults=(),
        outcomes={"mail": (FAILS, REFUSES)},
        workers=1,
        receivers=1,
        # Further receives of a dead run's message only add states.
        max_receive_count=3,
        budget={"erasures": 1, "failures": 1},
    ),
)
