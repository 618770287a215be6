"""Small worlds about serial handlers: two events of one ordering key on a FIFO lane."""

from typing import Final

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
from webhook_inbox.domain.manifest import BLOCK, SERIAL, Order
from webhook_inbox.replay.request import ReplayRequest

# What a webhook's body has beside its filler is the ordering key: these two have the same.
SECOND: Final = Webhook("second", event_id="e2")
IN_ORDER: Final = Order(SERIAL, "content")
GOES_ON: Final = Deployment("serial", manifest(handler("mail", lane="mail", order=IN_ORDER)))
STOPS: Final = Deployment(
    "blocking",
    manifest(handler("mail", lane="mail", order=Order(SERIAL, "content", on_dead=BLOCK))),
)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)
RECEIVES: Final = 1000

SERIAL_WORLDS: Final = (
    world(
        "in order",
        FIRST,
        SECOND,
        on=GOES_ON,
        budget={"faults": 1, "jumps": 1},
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "in order, failing",
        FIRST,
        SECOND,
        on=GOES_ON,
        outcomes={"mail": (FAILS, REFUSES, DEFERS)},
        faults=("killed", "before"),
        budget={"faults": 1, "failures": 1, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "in order, replayed",
        FIRST,
        SECOND,
        on=GOES_ON,
        outcomes={"mail": (FAILS, REFUSES)},
        requests=(BY_NAME,),
        faults=("killed", "after"),
        budget={"faults": 1, "failures": 1, "replays": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "in order, by a careless queue",
        FIRST,
        SECOND,
        on=GOES_ON,
        faults=("redelivered", "killed"),
        budget={"faults": 2, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "in order, never enqueued",
        FIRST,
        SECOND,
        on=GOES_ON,
        faults=("killed", "refused"),
        budget={"faults": 2, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "an ordering key that stands still",
        FIRST,
        SECOND,
        on=STOPS,
        outcomes={"mail": (REFUSES,)},
        requests=(BY_NAME,),
        faults=("killed", "after"),
        budget={"faults": 1, "failures": 1, "replays": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "a handler becomes serial",
        FIRST,
        SECOND,
        on=MAIL,
        then=(GOES_ON,),
        faults=("killed",),
        budget={"faults": 1, "deployments": 1, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
)
