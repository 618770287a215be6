"""Small worlds about events whose type cannot be read from their signed body."""

from typing import Final

from simulation.worlds.builders import TYPED, world
from simulation.worlds.scenario import Webhook
from webhook_inbox.replay.request import ReplayRequest

CUT: Final = Webhook("cut", "typed", "e1", content="paid", cut=True)
WHOLE: Final = Webhook("whole", "typed", "e2", content="paid")
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)

UNCERTAIN_WORLDS: Final = (
    world(
        "a body that was cut",
        CUT,
        Webhook("other type", "typed", "e3", content="seen"),
        on=TYPED,
        workers=1,
        tries=2,
        faults=("killed", "after"),
        budget={"faults": 1, "decisions": 1},
    ),
    world(
        "a body that was cut, sent once",
        # The provider does not send it again: the reconciler holds its runs.
        Webhook("cut once", "typed", "e1", content="paid", cut=True, retries=False),
        on=TYPED,
        workers=0,
        receivers=1,
        faults=("killed", "after"),
        budget={"faults": 1, "jumps": 1, "passes": 1, "decisions": 1},
    ),
    world(
        "a large body that was cut",
        # Its type is found at its begin. The source stores the first type only.
        Webhook("large cut", "typed", "e1", content="paid", padding=20_000, cut=True),
        Webhook("other large cut", "typed", "e2", content="seen", padding=20_000, cut=True),
        on=TYPED,
        workers=1,
        receivers=1,
        faults=(),
        budget={"decisions": 1},
    ),
    world(
        "a replay of a body that was cut",
        Webhook("cut before", "typed", "e1", content="paid", cut=True, preloaded=True),
        WHOLE,
        on=TYPED,
        workers=1,
        receivers=1,
        requests=(BY_NAME,),
        faults=(),
        budget={"decisions": 1, "replays": 1},
    ),
)
