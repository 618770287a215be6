"""Small worlds, each about one subject, that are explored exhaustively."""

from dataclasses import replace
from typing import Final

from simulation.worlds.approvals import APPROVAL_WORLDS
from simulation.worlds.builders import AGAIN, BATCHES, BOTH, FIRST, FORMS, MAIL, ONCE, world
from simulation.worlds.destinations import DESTINATION_WORLDS
from simulation.worlds.erased import ERASURE_WORLDS
from simulation.worlds.guard import GUARD_WORLDS
from simulation.worlds.handlers import HANDLER_WORLDS
from simulation.worlds.ordered import ORDERING_WORLDS, PAUSE_WORLDS
from simulation.worlds.reconciled import RECONCILED_WORLDS
from simulation.worlds.scenario import (
    DEFERS,
    DEFERS_LONG,
    FAILS,
    FAILS_AFTER,
    REFUSES,
    STALLS,
    Deployment,
    Webhook,
    handler,
    manifest,
)
from simulation.worlds.serial import SERIAL_WORLDS
from simulation.worlds.uncertain import UNCERTAIN_WORLDS
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.replay.request import ReplayRequest

EVERYTHING: Final = ReplayRequest(status=(EventStatus.DEAD_LETTER,), rate_per_second=500)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)
FORCED: Final = ReplayRequest(
    event_ids=("e1",), handler="mail", force=True, reason="agreed", rate_per_second=500
)
# The world stores the selection of this id.
SELECTED: Final = ReplayRequest(selection="0" * 12, rate_per_second=500)

SMALL_WORLDS: Final = (
    world("concurrent duplicates", FIRST, AGAIN, budget={"faults": 1}),
    world("a retrying sender", tries=3, budget={"faults": 2}, workers=1, receivers=1),
    world("one event, two faults", budget={"faults": 2, "jumps": 2}),
    world(
        "three faults",
        faults=("before", "killed"),
        workers=1,
        budget={"faults": 3, "jumps": 2},
    ),
    world(
        "lost answers and repeated calls",
        faults=("after", "twice", "delayed"),
        budget={"faults": 2, "jumps": 1},
    ),
    world(
        "a failing handler",
        outcomes={"mail": (FAILS, FAILS_AFTER)},
        budget={"faults": 1, "failures": 2, "jumps": 1},
    ),
    world(
        "a deferring handler",
        outcomes={"mail": (DEFERS, DEFERS_LONG)},
        faults=("before", "killed"),
        budget={"faults": 1, "failures": 1, "jumps": 2, "passes": 1},
    ),
    world(
        "a slow handler",
        outcomes={"mail": (STALLS,)},
        budget={"faults": 1, "failures": 1, "jumps": 3},
    ),
    world(
        "runs of one process",
        FIRST,
        AGAIN,
        together=True,
        outcomes={"mail": (FAILS,)},
        faults=("before", "killed"),
        budget={"faults": 1, "failures": 1},
    ),
    world(
        "two events in one batch",
        FIRST,
        replace(FIRST, name="other webhook", event_id="e2"),
        together=True,
        receivers=1,
        outcomes={"mail": (FAILS,)},
        faults=("killed",),
        budget={"faults": 1, "failures": 1},
    ),
    world(
        "dead, redriven and replayed",
        outcomes={"mail": (REFUSES,)},
        requests=(EVERYTHING,),
        faults=("killed", "after"),
        workers=1,
        budget={"faults": 1, "failures": 2, "redrives": 1, "replays": 1},
        max_receive_count=3,
    ),
    world(
        "a replay during an attempt",
        requests=(BY_NAME,),
        faults=("killed", "twice"),
        budget={"faults": 1, "replays": 1, "jumps": 1},
    ),
    world(
        "a dead letter or a replay",
        on=ONCE,
        requests=(BY_NAME,),
        faults=("killed", "redelivered"),
        workers=1,
        receivers=1,
        budget={"faults": 2, "jumps": 1, "replays": 1},
    ),
    world(
        "a selection replayed twice",
        outcomes={"mail": (REFUSES,)},
        requests=(SELECTED,),
        workers=1,
        receivers=1,
        budget={"failures": 1, "replays": 2},
        max_receive_count=3,
    ),
    world(
        "two replays, one forced",
        requests=(BY_NAME, FORCED),
        workers=1,
        budget={"replays": 2},
    ),
    world(
        "never enqueued",
        faults=("killed", "before", "after", "refused"),
        budget={"faults": 2, "jumps": 2, "passes": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "two reconcilers",
        faults=("killed",),
        budget={"faults": 1, "jumps": 1, "passes": 2},
        workers=1,
        receivers=1,
    ),
    world(
        "a stale index",
        lag=True,
        faults=("killed",),
        budget={"faults": 2, "jumps": 2, "passes": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "an unreliable queue",
        faults=("throttled", "lost", "redelivered"),
        budget={"faults": 2, "jumps": 2},
        max_receive_count=3,
    ),
    world(
        "two handlers",
        on=BOTH,
        outcomes={"mail": (FAILS, REFUSES)},
        budget={"faults": 1, "failures": 1},
        workers=2,
    ),
    world("one handler always fails", on=BOTH, always={"mail": REFUSES}, budget={"faults": 1}),
    world(
        "forged and conflicting deliveries",
        FIRST,
        Webhook("other content", content="43"),
        Webhook("forged", forged=True, retries=False),
        budget={"faults": 1},
        workers=1,
    ),
    *ERASURE_WORLDS,
    *GUARD_WORLDS,
    *UNCERTAIN_WORLDS,
    world(
        "a captured form in another order",
        Webhook("honest", "forms", "e1"),
        Webhook("captured", "forms", "e2", captured=True, retries=False),
        on=FORMS,
        budget={"faults": 1},
        workers=1,
    ),
    world(
        "large bodies",
        replace(FIRST, padding=20_000),
        replace(AGAIN, padding=20_000),
        budget={"faults": 1},
        workers=1,
    ),
    world(
        "a batch",
        Webhook("batch", "line", items=("i1", "i2")),
        on=BATCHES,
        workers=1,
        receivers=1,
        faults=("before", "after", "killed"),
        budget={"faults": 1, "jumps": 1},
    ),
    world(
        "two batches with a shared item",
        Webhook("batch", "line", items=("i1", "i2")),
        Webhook("other batch", "line", items=("i2",)),
        on=BATCHES,
        workers=1,
        receivers=1,
        faults=("killed",),
        budget={"faults": 1},
    ),
    world(
        "conflicting large bodies",
        replace(FIRST, padding=20_000),
        Webhook("other content", content="43", padding=20_000),
        budget={"faults": 1},
        workers=1,
    ),
    world(
        "no workers",
        workers=0,
        receivers=1,
        faults=(),
        budget={"jumps": 3, "passes": 2},
    ),
    world(
        "an exhausted receive count",
        on=Deployment("three", manifest(handler("mail", max_attempts=3))),
        outcomes={"mail": (FAILS,)},
        faults=("before", "twice"),
        jitter=0.2,
        budget={"faults": 1, "failures": 2, "jumps": 1},
        max_receive_count=2,
    ),
    world(
        "an outage that uses up the receives",
        faults=("before",),
        workers=1,
        receivers=1,
        budget={"faults": 2, "jumps": 2},
        max_receive_count=2,
    ),
    world(
        "a redriven message whose receive is lost",
        outcomes={"mail": (REFUSES,)},
        faults=("throttled",),
        workers=1,
        receivers=1,
        budget={"faults": 1, "failures": 1, "redrives": 1},
        max_receive_count=3,
    ),
    world(
        "a broken module",
        on=Deployment("broken", BOTH.manifest, frozenset({"mail"})),
        faults=("killed",),
        workers=1,
        budget={"faults": 1},
    ),
    world(
        "frozen and thawed",
        outcomes={"mail": (FAILS, DEFERS)},
        faults=("frozen",),
        budget={"faults": 1, "failures": 1, "jumps": 1},
    ),
    world(
        "a handler is removed or broken",
        then=(
            Deployment("none", manifest()),
            Deployment("broken", MAIL.manifest, frozenset({"mail"})),
        ),
        budget={"deployments": 1, "jumps": 2, "faults": 1},
        faults=("killed",),
        workers=1,
    ),
    world(
        "years of events",
        FIRST,
        AGAIN,
        outcomes={"mail": (REFUSES,)},
        requests=(EVERYTHING,),
        faults=("killed",),
        workers=1,
        receivers=1,
        budget={"ages": 1, "failures": 1, "replays": 1},
        max_receive_count=3,
    ),
    world(
        "skewed clocks",
        skews=(2400, -2400),
        outcomes={"mail": (FAILS, DEFERS, REFUSES)},
        budget={"faults": 1, "failures": 1, "jumps": 2, "redrives": 1},
        faults=("killed", "redelivered"),
        max_receive_count=3,
    ),
    *SERIAL_WORLDS,
    *HANDLER_WORLDS,
    *APPROVAL_WORLDS,
    *DESTINATION_WORLDS,
    *ORDERING_WORLDS,
    *PAUSE_WORLDS,
    *RECONCILED_WORLDS,
)
