"""Small worlds about destinations: circuits, rate limits and pauses."""

from typing import Any, Final

from simulation.engine.acting import Behavior
from simulation.worlds.builders import world
from simulation.worlds.scenario import (
    FAILS,
    LIMITED,
    REFUSES,
    Deployment,
    Webhook,
    handler,
    manifest,
)
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec

HERE: Final = Webhook("first", preloaded=True)
SECOND: Final = Webhook("second", event_id="e2", content="43", preloaded=True)
THIRD: Final = Webhook("third", event_id="e3", content="44", preloaded=True)


def calling(name: str, **settings: Any) -> Deployment:
    """Returns a deployment whose handler calls a destination."""
    sink = DestinationSpec("sink", "https://sink.example", **settings)
    mail = handler("mail", destinations=("sink",), max_attempts=3)
    return Deployment(
        name, manifest(mail, sink=sink), behaviors={"mail": Behavior(destination="sink")}
    )


# One failure opens the circuit for longer than the first retry waits.
FRAGILE: Final = calling("fragile", breaker=BreakerSpec(failures=1, recovery=30.0))
SLOW: Final = calling("slow", breaker=None, rate=0.1)
PLAIN_SINK: Final = calling("plain", breaker=None)

DESTINATION_WORLDS: Final = (
    world(
        "a circuit opens and recovers",
        HERE,
        SECOND,
        on=FRAGILE,
        outcomes={"mail": (FAILS,)},
        faults=(),
        receivers=1,
        budget={"failures": 1, "jumps": 1},
    ),
    world(
        "a probe is killed",
        HERE,
        SECOND,
        on=FRAGILE,
        outcomes={"mail": (FAILS,)},
        faults=("killed",),
        receivers=1,
        budget={"failures": 1, "faults": 1, "jumps": 2},
        workers=1,
    ),
    world(
        "an unreadable circuit",
        on=FRAGILE,
        outcomes={"mail": (FAILS,)},
        faults=("before", "after", "twice"),
        workers=1,
        receivers=1,
        budget={"failures": 1, "faults": 1, "jumps": 2},
    ),
    world(
        "a circuit is opened by hand",
        HERE,
        on=FRAGILE,
        outcomes={"mail": (FAILS,)},
        faults=(),
        receivers=1,
        workers=1,
        budget={"failures": 1, "jumps": 2, "openings": 1},
    ),
    world(
        "a circuit without a breaker is opened by hand",
        HERE,
        on=PLAIN_SINK,
        faults=(),
        receivers=1,
        workers=1,
        budget={"openings": 2},
    ),
    world(
        "a rate limit with three events",
        HERE,
        SECOND,
        THIRD,
        on=SLOW,
        faults=(),
        receivers=1,
        budget={},
    ),
    world(
        "a rate limit and a fault",
        HERE,
        SECOND,
        on=SLOW,
        outcomes={"mail": (REFUSES,)},
        faults=("killed", "before"),
        receivers=1,
        workers=1,
        budget={"jumps": 1, "faults": 1},
    ),
    world(
        "too many requests",
        HERE,
        SECOND,
        on=PLAIN_SINK,
        outcomes={"mail": (LIMITED,)},
        faults=(),
        receivers=1,
        budget={"failures": 1, "jumps": 1},
    ),
)
