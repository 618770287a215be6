"""Small worlds about the tools of handlers: effects and approvals."""

from dataclasses import replace
from typing import Final

from simulation.worlds.builders import (
    APPROVED,
    ASKED,
    FIRST,
    FORGETFUL,
    JOURNAL,
    KEYLESS,
    LEARNING,
    PROBING,
    RENAMING,
    SHARED,
    VARYING,
    world,
)
from simulation.worlds.scenario import (
    DEFERS,
    FAILS,
    FAILS_AFTER,
    LIMITED,
    REDIRECTED,
    REFUSES,
    Webhook,
)
from webhook_inbox.replay.request import ReplayRequest

FORCED: Final = ReplayRequest(
    event_ids=("e1",), handler="mail", force=True, reason="agreed", rate_per_second=500
)
RENEWED: Final = FORCED.model_copy(update={"new_keys": True, "reason": "restored"})
REPLAYED: Final = ReplayRequest(event_ids=("e1",), handler="mail", rate_per_second=500)

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
        "an effect under new keys",
        on=JOURNAL,
        requests=(RENEWED,),
        workers=1,
        receivers=1,
        faults=("after", "twice", "killed"),
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
        "an effect rejected in doubt, replayed",
        replace(FIRST, preloaded=True),
        on=JOURNAL,
        outcomes={"mail": (REFUSES,)},
        requests=(REPLAYED,),
        workers=1,
        faults=("after",),
        budget={"faults": 1, "failures": 1, "jumps": 1, "ages": 1, "replays": 1},
        max_receive_count=2,
    ),
    world(
        "an effect answered by a redirect",
        replace(FIRST, preloaded=True),
        on=JOURNAL,
        outcomes={"mail": (REDIRECTED,)},
        requests=(REPLAYED,),
        workers=1,
        faults=("after",),
        budget={"failures": 1, "jumps": 1, "ages": 1, "replays": 1, "decisions": 1},
        max_receive_count=2,
    ),
    world(
        "an effect with another body",
        replace(FIRST, preloaded=True),
        on=VARYING,
        requests=(REPLAYED,),
        workers=1,
        faults=("after",),
        budget={"faults": 1, "jumps": 1, "ages": 1, "replays": 1},
        max_receive_count=3,
    ),
    world(
        "an effect with other arguments",
        replace(FIRST, preloaded=True),
        on=RENAMING,
        outcomes={"mail": (LIMITED,)},
        workers=1,
        faults=("after",),
        budget={"faults": 2, "failures": 1, "jumps": 1, "decisions": 2},
        max_receive_count=3,
    ),
    world(
        "an effect that is looked up",
        replace(FIRST, preloaded=True),
        on=PROBING,
        outcomes={"mail": (REFUSES, LIMITED)},
        workers=1,
        faults=("after", "killed"),
        budget={"faults": 2, "failures": 1, "jumps": 2},
        max_receive_count=3,
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
        "an effect whose destination learns keys",
        on=LEARNING,
        receivers=1,
        # With a second fault the first start may be one that has a key.
        faults=("killed", "after"),
        budget={"faults": 1, "jumps": 1},
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
