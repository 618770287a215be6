"""Small worlds, each about one thing, that are explored whole."""

from dataclasses import replace
from typing import Any, Final

from simulation.scenario import (
    DEFERS,
    DEFERS_LONG,
    FAILS,
    FAILS_AFTER,
    REFUSES,
    STALLS,
    Budget,
    Deployment,
    Letter,
    Scenario,
    handler,
    manifest,
)
from webhook_inbox.manifest import SPLITTER
from webhook_inbox.replay_request import ReplayRequest

MAIL: Final = Deployment("mail", manifest(handler("mail")))
BOTH: Final = Deployment("both", manifest(handler("mail"), handler("bill", lane="slow")))
GITHUB: Final = Deployment("github", manifest(handler("note", "github")))
BATCHES: Final = Deployment("batches", manifest(handler("note", "line"), SPLITTER))
FIRST: Final = Letter("first")
AGAIN: Final = Letter("again")
EVERYTHING: Final = ReplayRequest(rate_per_second=500)
BY_NAME: Final = ReplayRequest(event_ids=("e1",), rate_per_second=500)
FORCED: Final = ReplayRequest(event_ids=("e1",), handler="mail", force=True, rate_per_second=500)


def world(name: str, *letters: Letter, on: Deployment = MAIL, **parts: Any) -> Scenario:
    """Returns a small world; what is not told is as in most of them."""
    budget = Budget(**parts.pop("budget"))
    return Scenario(name, letters or (FIRST,), (on, *parts.pop("then", ())), budget=budget, **parts)


def wider(scenario: Scenario, more: int) -> Scenario:
    """Returns the same world with so many more faults, and as many more moves of the clock."""
    budget = scenario.budget
    jumps = budget.jumps + (more if budget.jumps else 0)
    return replace(scenario, budget=replace(budget, faults=budget.faults + more, jumps=jumps))


SMALL: Final = (
    world("duplicates at once", FIRST, AGAIN, budget={"faults": 1}),
    world("a sender who tries again", tries=3, budget={"faults": 2}, workers=1, receivers=1),
    world("one event, two faults", budget={"faults": 2, "jumps": 2}),
    world(
        "three faults",
        faults=("before", "killed"),
        workers=1,
        budget={"faults": 3, "jumps": 2},
    ),
    world(
        "answers lost, calls repeated",
        faults=("after", "twice", "delayed"),
        budget={"faults": 2, "jumps": 1},
    ),
    world(
        "a failing handler",
        verdicts={"mail": (FAILS, FAILS_AFTER)},
        budget={"faults": 1, "misdeeds": 2, "jumps": 1},
    ),
    world(
        "a handler that waits",
        verdicts={"mail": (DEFERS, DEFERS_LONG)},
        faults=("before", "killed"),
        budget={"faults": 1, "misdeeds": 1, "jumps": 2, "passes": 1},
    ),
    world(
        "a handler that stalls",
        verdicts={"mail": (STALLS,)},
        budget={"faults": 1, "misdeeds": 1, "jumps": 3},
    ),
    world(
        "dead, redriven and replayed",
        verdicts={"mail": (REFUSES,)},
        requests=(EVERYTHING,),
        faults=("killed", "after"),
        workers=1,
        budget={"faults": 1, "misdeeds": 2, "redrives": 1, "replays": 1},
        max_receive_count=3,
    ),
    world(
        "replayed while it is worked on",
        requests=(BY_NAME,),
        faults=("killed", "twice"),
        budget={"faults": 1, "replays": 1, "jumps": 1},
    ),
    world(
        "two replays, one by force",
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
        "the reconciler and a stale index",
        lag=True,
        faults=("killed",),
        budget={"faults": 2, "jumps": 2, "passes": 1},
        workers=1,
        receivers=1,
    ),
    world(
        "a careless queue",
        faults=("burned", "lost", "again"),
        budget={"faults": 2, "jumps": 2},
        max_receive_count=3,
    ),
    world(
        "two handlers",
        on=BOTH,
        verdicts={"mail": (FAILS, REFUSES)},
        budget={"faults": 1, "misdeeds": 1},
        workers=2,
    ),
    world("one handler always fails", on=BOTH, always={"mail": REFUSES}, budget={"faults": 1}),
    world(
        "forged, and in conflict",
        FIRST,
        Letter("other content", content="43"),
        Letter("forged", forged=True, persists=False),
        budget={"faults": 1},
        workers=1,
    ),
    world(
        "a captured body",
        Letter("honest", "github", "e1"),
        Letter("captured", "github", "e2", captured=True, persists=False),
        on=GITHUB,
        budget={"faults": 1, "jumps": 1},
        workers=1,
        tries=2,
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
        Letter("batch", "line", items=("i1", "i2")),
        on=BATCHES,
        workers=1,
        receivers=1,
        faults=("before", "after", "killed"),
        budget={"faults": 1, "jumps": 1},
    ),
    world(
        "two batches that share an item",
        Letter("batch", "line", items=("i1", "i2")),
        Letter("other batch", "line", items=("i2",)),
        on=BATCHES,
        workers=1,
        receivers=1,
        faults=("killed",),
        budget={"faults": 1},
    ),
    world(
        "large bodies in conflict",
        replace(FIRST, padding=20_000),
        Letter("other content", content="43", padding=20_000),
        budget={"faults": 1},
        workers=1,
    ),
    world(
        "nobody receives",
        workers=0,
        receivers=1,
        faults=(),
        budget={"jumps": 6, "passes": 4},
    ),
    world(
        "received as often as may be",
        on=Deployment("three", manifest(handler("mail", max_attempts=3))),
        verdicts={"mail": (FAILS,)},
        faults=("before", "twice"),
        jitter=0.2,
        budget={"faults": 1, "misdeeds": 2},
        max_receive_count=2,
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
        verdicts={"mail": (FAILS, DEFERS)},
        faults=("frozen",),
        budget={"faults": 1, "misdeeds": 1, "jumps": 1},
    ),
    world(
        "a handler comes and goes",
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
        verdicts={"mail": (REFUSES,)},
        requests=(EVERYTHING,),
        faults=("killed",),
        workers=1,
        receivers=1,
        budget={"ages": 1, "misdeeds": 1, "replays": 1},
        max_receive_count=3,
    ),
    world(
        "clocks apart",
        skews=(2400, -2400),
        verdicts={"mail": (FAILS, DEFERS, REFUSES)},
        budget={"faults": 1, "misdeeds": 1, "jumps": 2, "redrives": 1},
        faults=("killed", "again"),
        max_receive_count=3,
    ),
)
