"""Small worlds about the tools of handlers: effects and approvals."""

from typing import Final

from simulation.worlds.builders import (
    APPROVED,
    ASKED,
    FIRST,
    FORGETFUL,
    JOURNAL,
    KEYLESS,
    SHARED,
    world,
)
from simulation.worlds.scenario import DEFERS, FAILS, FAILS_AFTER, LIMITED, REFUSES, Webhook
from webhook_inbox.replay.request import ReplayRequest

FORCED: Final = ReplayRequest(event_ids=("e1",), handler="mail", force=True, rate_per_second=500)

HANDLER_WORLDS: Final = (
    world(
        "an effect",
        on=JOURNAL,
        outcomes={"mail": (FAILS, FAILS_AFTER, REFUSES, DEFERS)},
        budget={"faults": 1, "failures": 1, "jumps": 1},
    ),
    world(
        "an effect with two faults",
        on=JOURNAL,
        workers=1,
        receivers=1,
        faults=("before", "after", "twice", "killed"),
        budget={"faults": 2, "jumps": 1},
    ),
    world(
        "an effect of a frozen worker",
        on=JOURNAL,
        faults=("frozen",),
        budget={"faults": 1, "jumps": 1},
        receivers=1,
    ),
    world(
        "an effect in a forced replay",
        on=JOURNAL,
        requests=(FORCED,),
        workers=1,
        receivers=1,
        faults=("after", "killed"),
        budget={"faults": 1, "replays": 1},
    ),
    world(
        "an effect rejected in doubt",
        FIRST,
        on=JOURNAL,
        outcomes={"mail": (LIMITED,)},
        workers=1,
        receivers=1,
        faults=("after", "delayed"),
        budget={"faults": 1, "failures": 1, "jumps": 1},
    ),
    world(
        "an effect with a short key lifetime",
        on=FORGETFUL,
        workers=1,
        receivers=1,
        faults=("after", "killed"),
        budget={"faults": 1, "jumps": 1, "decisions": 1},
    ),
    world(
        "an effect without keys",
        on=KEYLESS,
        outcomes={"mail": (FAILS, FAILS_AFTER)},
        workers=1,
        receivers=1,
        budget={"faults": 1, "failures": 1, "jumps": 1, "decisions": 2},
    ),
    world(
        "an effect without keys, frozen",
        on=KEYLESS,
        faults=("frozen", "delayed"),
        receivers=1,
        budget={"faults": 2, "decisions": 1},
    ),
    world(
        "an effect with approval",
        on=APPROVED,
        receivers=1,
        faults=("killed", "after"),
        budget={"faults": 1, "decisions": 2},
    ),
    world(
        "a policy that holds runs",
        on=ASKED,
        outcomes={"mail": (FAILS,)},
        receivers=1,
        workers=1,
        budget={"faults": 1, "failures": 1, "decisions": 2, "jumps": 1},
    ),
    world(
        "two events with a shared effect",
        FIRST,
        Webhook("second", event_id="e2", content="43"),
        on=SHARED,
        receivers=1,
        faults=("killed",),
        budget={"faults": 1},
    ),
)
