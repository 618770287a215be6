"""Small worlds about the guard: one signed content under two ids, or one signature for two."""

from dataclasses import replace
from typing import Final

from simulation.worlds.builders import GITHUB, LAX, NOTES_IN_ORDER, world
from simulation.worlds.scenario import Webhook
from webhook_inbox.replay.request import ReplayRequest

HONEST: Final = Webhook("honest", "github", "e1")
CAPTURED: Final = Webhook("captured", "github", "e2", captured=True, retries=False)
FIRST_OF_TWO: Final = Webhook("first of two", "github", "e1", preloaded=True)
SECOND_OF_TWO: Final = Webhook("second of two", "github", "e2")
BY_NAME: Final = ReplayRequest(event_ids=("e2",), rate_per_second=500)
FORCED: Final = ReplayRequest(
    event_ids=("e2",), handler="note", force=True, reason="agreed", rate_per_second=500
)

GUARD_WORLDS: Final = (
    world(
        "a captured body",
        HONEST,
        CAPTURED,
        on=GITHUB,
        faults=("before", "killed"),
        budget={"faults": 1, "jumps": 1},
        workers=1,
        tries=2,
    ),
    world(
        "a guard without an event",
        HONEST,
        CAPTURED,
        on=GITHUB,
        tries=2,
        workers=0,
        faults=("killed",),
        budget={"faults": 1, "jumps": 1},
    ),
    world(
        "two events with one body",
        HONEST,
        SECOND_OF_TWO,
        on=GITHUB,
        workers=1,
        faults=("killed", "after"),
        budget={"faults": 1, "decisions": 1},
    ),
    world(
        "a held event without runs",
        FIRST_OF_TWO,
        # GitHub does not send it again: the reconciler finds the event.
        replace(SECOND_OF_TWO, retries=False),
        on=GITHUB,
        workers=0,
        receivers=1,
        faults=("killed", "after"),
        budget={"faults": 1, "jumps": 1, "passes": 1, "decisions": 1},
    ),
    world(
        "a decision during a duplicate",
        FIRST_OF_TWO,
        SECOND_OF_TWO,
        replace(SECOND_OF_TWO, name="second again"),
        on=GITHUB,
        workers=0,
        receivers=2,
        faults=("killed",),
        budget={"faults": 1, "decisions": 1},
    ),
    world(
        "a replay of a held event",
        FIRST_OF_TWO,
        replace(SECOND_OF_TWO, preloaded=True),
        on=GITHUB,
        workers=1,
        receivers=1,
        requests=(BY_NAME, FORCED),
        faults=(),
        budget={"decisions": 1, "replays": 1},
    ),
    world(
        "a held event in a serial lane",
        FIRST_OF_TWO,
        SECOND_OF_TWO,
        Webhook("third", "github", "e3", version=1),
        on=NOTES_IN_ORDER,
        workers=1,
        receivers=1,
        faults=("killed",),
        budget={"faults": 1, "decisions": 1},
        max_receive_count=1000,
    ),
    world(
        "a captured signature of an ignored type",
        Webhook("ignored", "lax", "1", content="seen", version=1, preloaded=True),
        Webhook("forged", "lax", "2", content="paid", version=2, grafted=True, retries=False),
        Webhook("same id", "lax", "1", content="paid", version=1, grafted=True, retries=False),
        on=LAX,
        workers=1,
        budget={"faults": 1, "jumps": 2},
    ),
)
