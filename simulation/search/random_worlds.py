"""Large worlds, drawn by a dice."""

from random import Random
from typing import Any, Final

from simulation.engine.acting import PLAIN, Way
from simulation.worlds.scenario import (
    DEFERS,
    DEFERS_LONG,
    FAILS,
    FAILS_AFTER,
    LIMITED,
    REFUSES,
    STALLS,
    Budget,
    Deployment,
    Letter,
    Scenario,
    handler,
    manifest,
)
from webhook_inbox.domain.manifest import (
    BLOCK,
    SERIAL,
    BreakerSpec,
    DestinationSpec,
    HandlerSpec,
    Order,
)
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE
from webhook_inbox.replay.request import ReplayRequest

SINK: Final = "sink"
# Where a body says what it is about, and which version of that it is.
PLACE: Final = ("content", "version")
ALL_FAULTS: Final = (
    "before",
    "after",
    "twice",
    "delayed",
    "refused",
    "killed",
    "burned",
    "lost",
    "again",
    "frozen",
)
ANY_VERDICT: Final = (FAILS, FAILS_AFTER, REFUSES, DEFERS, DEFERS_LONG, STALLS, LIMITED)
ANY_WAY: Final = (
    PLAIN,
    PLAIN,
    Way(journals=True),
    Way(journals=True, in_doubt="hold"),
    Way(journals=True, in_doubt="hold", approve=True),
    Way(asks=True),
    Way(journals=True, asks=True),
    Way(destination=SINK),
    Way(journals=True, destination=SINK),
)
ANY_ORDER: Final = (
    None,
    None,
    None,
    Order(LATEST, *PLACE),
    Order(SEQUENCE, *PLACE),
    Order(SERIAL, PLACE[0]),
)
# Not of a handler whose module may be broken: its ordering key would stand still for ever.
STOPPING: Final = {"bill": Order(SERIAL, PLACE[0], on_dead=BLOCK)}
HANDLERS: Final = ("mail", "bill", "ship")


def drawn(dice: Random) -> Scenario:
    """Draws a large world."""
    handlers = HANDLERS[: dice.randint(1, 3)]
    letters = tuple(_letters(dice))
    ways = {name: dice.choice(ANY_WAY) for name in handlers}
    specs = [_handler(dice, name, ways[name]) for name in handlers]
    sink = _sink(dice)
    deployments = [
        Deployment("whole", manifest(*specs, sink=sink), ways=ways),
        Deployment("fewer", manifest(*specs[:-1], sink=sink), ways=ways),
        Deployment("broken", manifest(*specs, sink=sink), frozenset(handlers[:1]), ways=ways),
    ]
    always = {handlers[-1]: dice.choice([FAILS, REFUSES])} if dice.random() < 0.15 else {}
    if specs[-1].blocks:
        always = {}  # An ordering key whose first one always dies stands still for ever.
    return Scenario(
        "drawn",
        letters,
        tuple(deployments),
        workers=dice.randint(2, 4),
        receivers=dice.randint(1, 3),
        budget=_budget(dice),
        verdicts=dict.fromkeys(handlers, ANY_VERDICT),
        always=always,
        requests=tuple(_requests(letters)),
        skews=tuple(dice.choice([0, 0, -2400, 2400, 7]) for _ in range(4)),
        faults=ALL_FAULTS,
        lag=dice.random() < 0.3,
        jitter=dice.choice([0.0, 0.2, 1.0]),
        tries=3,
        max_receive_count=8,
    )


def _handler(dice: Random, name: str, way: Way) -> HandlerSpec:
    order = dice.choice((*ANY_ORDER, STOPPING.get(name)))
    serial = order is not None and order.kind == SERIAL
    return handler(
        name,
        dice.choice(["acme", "github"]) if name == "ship" else "acme",
        max_attempts=dice.choice([1, 2, 3]),
        lane=f"{name}s" if serial else dice.choice(["default", "default", "slow"]),
        destinations=(way.destination,) if way.destination else (),
        order=order,
    )


def _sink(dice: Random) -> DestinationSpec:
    breaker = BreakerSpec(failures=dice.choice([1, 2]), recovery=30.0)
    return DestinationSpec(
        SINK,
        "https://sink.example",
        rate=dice.choice([None, 0.1, 1.0]),
        breaker=dice.choice([None, breaker, breaker]),
    )


def _letters(dice: Random) -> list[Letter]:
    letters = []
    for number in range(dice.randint(1, 3)):
        source = dice.choice(["acme", "acme", "github"])
        honest = Letter(
            f"{source} e{number}",
            source,
            f"e{number}",
            dice.choice(["0", f"{number}"]) if source == "acme" else f"{number}",
            persists=source != "github",
            version=number + 1,
        )
        letters.append(honest)
        for kind in dice.sample(
            ["again", "other", "forged", "captured", "large"], dice.randint(0, 2)
        ):
            letters.append(_variant(honest, kind))
    return letters


def _variant(letter: Letter, kind: str) -> Letter:
    changes: dict[str, dict[str, Any]] = {
        "again": {},
        "other": {"content": "other"},
        "forged": {"forged": True, "persists": False},
        "captured": {"event_id": f"{letter.event_id}x", "captured": True, "persists": False},
        "large": {"event_id": f"{letter.event_id}l", "content": "large", "padding": 20_000},
    }
    parts: dict[str, Any] = {
        "source": letter.source,
        "event_id": letter.event_id,
        "content": letter.content,
    }
    parts |= {"persists": letter.persists, "version": letter.version}
    return Letter(f"{letter.name} {kind}", **{**parts, **changes[kind]})


def _budget(dice: Random) -> Budget:
    return Budget(
        faults=dice.choice([0, 1, 2, 4, 8]),
        misdeeds=dice.choice([0, 1, 3]),
        jumps=dice.randint(0, 30),
        passes=dice.randint(0, 6),
        replays=dice.choice([0, 0, 1, 2]),
        redrives=dice.choice([0, 0, 1, 2]),
        decisions=dice.choice([0, 1, 3]),
        pauses=dice.choice([0, 0, 2, 4]),
        deployments=dice.choice([0, 0, 0, 2]),
        ages=dice.choice([0, 0, 0, 1]),
    )


def _requests(letters: tuple[Letter, ...]) -> list[ReplayRequest]:
    named = letters[0].event_id
    return [
        ReplayRequest(rate_per_second=500),
        ReplayRequest(event_ids=(named,), rate_per_second=500),
        ReplayRequest(event_ids=(named,), handler="mail", force=True, rate_per_second=500),
    ]
