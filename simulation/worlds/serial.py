"""Small worlds about serial handlers: events of one ordering key on a FIFO lane.

A long wait moves the key's runs from the queue into its line. With few receives before the DLQ,
minutes of deferrals stand for the days that the deployed number allows.
"""

from dataclasses import replace
from typing import Final

from simulation.engine.acting import Behavior
from simulation.worlds.builders import FIRST, MAIL, world
from simulation.worlds.scenario import (
    DEFERS,
    DEFERS_LONG,
    FAILS,
    REFUSES,
    Deployment,
    Webhook,
    handler,
    manifest,
)
from webhook_inbox.domain.manifest import BLOCK, SERIAL, BreakerSpec, DestinationSpec, Order
from webhook_inbox.replay.request import ReplayRequest

# The ordering key is the content of the body, so FIRST and SECOND share it.
SECOND: Final = Webhook("second", event_id="e2")
IN_ORDER: Final = Order(SERIAL, "content")
CONTINUING: Final = Deployment("serial", manifest(handler("mail", lane="mail", order=IN_ORDER)))
BLOCKING: Final = Deployment(
    "blocking",
    manifest(handler("mail", lane="mail", order=Order(SERIAL, "content", on_dead=BLOCK))),
)
PATIENT: Final = Deployment(
    "patient", manifest(handler("mail", lane="mail", order=IN_ORDER, max_age=600.0))
)
ASKING: Final = Deployment("asking", CONTINUING.manifest, behaviors={"mail": Behavior(asks=True)})
# One failure opens the circuit for longer than a message is hidden.
CALLED: Final = DestinationSpec(
    "sink", "https://sink.example", breaker=BreakerSpec(failures=1, recovery=120.0)
)
CALLING: Final = Deployment(
    "calling",
    manifest(handler("mail", lane="mail", order=IN_ORDER, destinations=("sink",)), sink=CALLED),
    behaviors={"mail": Behavior(destination="sink")},
)
BEGUN: Final = replace(FIRST, preloaded=True)
NEXT: Final = replace(SECOND, preloaded=True)
LAST: Final = Webhook("third", event_id="e3", preloaded=True)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)

SERIAL_WORLDS: Final = (
    world(
        "serial",
        FIRST,
        SECOND,
        on=CONTINUING,
        budget={"faults": 1, "jumps": 1},
        receivers=1,
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
    ),
    world(
        "a serial run that defers for long",
        BEGUN,
        NEXT,
        on=PATIENT,
        always={"mail": DEFERS},
        faults=("killed",),
        budget={"faults": 1},
        workers=1,
        receivers=1,
        serial_receives=20,
    ),
    world(
        "a line",
        BEGUN,
        NEXT,
        on=CONTINUING,
        outcomes={"mail": (DEFERS_LONG,)},
        faults=("killed",),
        budget={"faults": 1, "failures": 1, "jumps": 1, "passes": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a line with a faulty ledger",
        BEGUN,
        NEXT,
        on=CONTINUING,
        outcomes={"mail": (DEFERS_LONG,)},
        faults=("before", "after", "delayed"),
        budget={"faults": 1, "failures": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a line of three",
        BEGUN,
        NEXT,
        LAST,
        on=CONTINUING,
        outcomes={"mail": (DEFERS_LONG, REFUSES)},
        faults=("redelivered",),
        budget={"faults": 1, "failures": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a line behind a held run",
        BEGUN,
        NEXT,
        on=ASKING,
        faults=("killed",),
        budget={"faults": 1, "decisions": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a line of a paused handler",
        BEGUN,
        NEXT,
        on=CONTINUING,
        faults=("killed",),
        budget={"faults": 1, "pauses": 2},
        workers=1,
        receivers=1,
    ),
    world(
        "a line behind a dead run, replayed or skipped",
        BEGUN,
        NEXT,
        on=BLOCKING,
        outcomes={"mail": (REFUSES,)},
        requests=(BY_NAME,),
        faults=("killed",),
        budget={"faults": 1, "failures": 1, "replays": 1, "decisions": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a line whose runs move while others enter",
        BEGUN,
        NEXT,
        on=BLOCKING,
        outcomes={"mail": (REFUSES,)},
        requests=(BY_NAME,),
        faults=(),
        budget={"failures": 1, "replays": 1, "decisions": 1},
        workers=2,
        receivers=1,
    ),
    world(
        "a line in front of an open circuit",
        BEGUN,
        NEXT,
        on=CALLING,
        outcomes={"mail": (FAILS,)},
        faults=("killed",),
        budget={"faults": 1, "failures": 1},
        workers=1,
        receivers=1,
    ),
)
