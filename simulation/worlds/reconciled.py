"""Small worlds about the reconciler's passes over the due index."""

from typing import Final

from simulation.worlds.builders import MAIL, world
from simulation.worlds.scenario import DEFERS_LONG, FAILS, Deployment, Webhook, handler, manifest
from simulation.worlds.serial import CONTINUING

HERE: Final = Webhook("first", preloaded=True)
SECOND: Final = Webhook("second", event_id="e2", content="43", preloaded=True)
NONE: Final = Deployment("none", manifest())
# In one lane.
NEIGHBORS: Final = Deployment("neighbors", manifest(handler("mail"), handler("bill")))

RECONCILED_WORLDS: Final = (
    world(
        "a budget for each handler",
        HERE,
        SECOND,
        on=NEIGHBORS,
        outcomes={"mail": (DEFERS_LONG,), "bill": (DEFERS_LONG,)},
        faults=(),
        workers=1,
        receivers=1,
        drain=1,
        budget={"failures": 3},
    ),
    world(
        "a pass over a run that ends",
        HERE,
        on=CONTINUING,
        outcomes={"mail": (FAILS,)},
        faults=(),
        workers=1,
        receivers=1,
        budget={"failures": 1, "jumps": 2, "passes": 1},
    ),
    world(
        "a removed handler's parked run",
        on=MAIL,
        then=(NONE,),
        outcomes={"mail": (DEFERS_LONG,)},
        faults=(),
        workers=1,
        receivers=1,
        budget={"deployments": 1, "failures": 1, "passes": 1},
    ),
    world(
        "a handler of a deployment that is rolled back",
        on=NONE,
        then=(MAIL,),
        outcomes={"mail": (DEFERS_LONG,)},
        faults=("before",),
        workers=1,
        receivers=1,
        budget={"deployments": 2, "failures": 1, "faults": 1},
    ),
)
