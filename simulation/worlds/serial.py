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

# The ordering key is the content of the body, so FIRST and SECOND share it.
SECOND: Final = Webhook("second", event_id="e2")
IN_ORDER: Final = Order(SERIAL, "content")
CONTINUING: Final = Deployment("serial", manifest(handler("mail", lane="mail", order=IN_ORDER)))
BLOCKING: Final = Deployment(
    "blocking",
    manifest(handler("mail", lane="mail", order=Order(SERIAL, "content", on_dead=BLOCK))),
)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)
RECEIVES: Final = 1000

SERIAL_WORLDS: Final = (
    world(
        "serial",
        FIRST,
        SECOND,
        on=CONTINUING,
        budget={"faults": 1, "jumps": 1},
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "serial, failing",
        FIRST,
        SECOND,
        on=CONTINUING,
        outcomes={"mail": (FAILS, REFUSES, DEFERS)},
        faults=("killed", "before"),
        budget={"faults": 1, "failures": 1, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "serial, replayed",
        FIRST,
        SECOND,
        on=CONTINUING,
        outcomes={"mail": (FAILS, REFUSES)},
        requests=(BY_NAME,),
        faults=("killed", "after"),
        budget={"faults": 1, "failures": 1, "replays": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "serial, unreliable queue",
        FIRST,
        SECOND,
        on=CONTINUING,
        faults=("redelivered", "killed"),
        budget={"faults": 2, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "serial, never enqueued",
        FIRST,
        SECOND,
        on=CONTINUING,
        faults=("killed", "refused"),
        budget={"faults": 2, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
    world(
        "a blocked ordering key",
        FIRST,
        SECOND,
        on=BLOCKING,
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
        then=(CONTINUING,),
        faults=("killed",),
        budget={"faults": 1, "deployments": 1, "jumps": 1},
        workers=1,
        receivers=1,
        max_receive_count=RECEIVES,
    ),
)
