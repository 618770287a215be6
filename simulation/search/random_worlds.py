"""Random large worlds."""

from dataclasses import replace
from random import Random
from typing import Any, Final

from simulation.engine.acting import PLAIN, Behavior
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
    Scenario,
    Webhook,
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
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE
from webhook_inbox.replay.request import ReplayRequest

SINK: Final = "sink"
# The body fields that hold the ordering key and the version.
ORDER_FIELDS: Final = ("content", "version")
ALL_FAULTS: Final = (
    "before",
    "after",
    "twice",
    "delayed",
    "refused",
    "killed",
    "throttled",
    "lost",
    "redelivered",
    "frozen",
)
ANY_OUTCOME: Final = (FAILS, FAILS_AFTER, REFUSES, DEFERS, DEFERS_LONG, STALLS, LIMITED)
ANY_BEHAVIOR: Final = (
    PLAIN,
    PLAIN,
    Behavior(journals=True),
    Behavior(journals=True, in_doubt="hold"),
    Behavior(journals=True, in_doubt="hold", approve=True),
    Behavior(asks=True),
    Behavior(journals=True, asks=True),
    Behavior(destination=SINK),
    Behavior(journals=True, destination=SINK),
)
ANY_ORDER: Final = (
    None,
    None,
    None,
    Order(LATEST, *ORDER_FIELDS),
    Order(SEQUENCE, *ORDER_FIELDS),
    Order(SERIAL, ORDER_FIELDS[0]),
)
# Not for a handler whose module may be broken: its ordering key would stay blocked.
BLOCKING: Final = {"bill": Order(SERIAL, ORDER_FIELDS[0], on_dead=BLOCK)}
# The maximum age, in seconds, of runs that always fail at a destination.
ENDING_AGE: Final = 3600.0
HANDLERS: Final = ("mail", "bill", "ship")


def random_world(rng: Random) -> Scenario:
    """Returns a random large world."""
    handlers = HANDLERS[: rng.randint(1, 3)]
    webhooks = tuple(_webhooks(rng))
    behaviors = {name: rng.choice(ANY_BEHAVIOR) for name in handlers}
    specs = [_handler(rng, name, behaviors[name]) for name in handlers]
    sink = _sink(rng)
    always = {handlers[-1]: rng.choice([FAILS, REFUSES])} if rng.random() < 0.15 else {}
    if specs[-1].blocks:
        always = {}  # An ordering key whose first run always dies stays blocked.
    if always and behaviors[handlers[-1]].destination:
        # A call that always fails keeps its circuit open; only the run's age ends the wait.
        specs[-1] = replace(specs[-1], max_age=ENDING_AGE)
    # The lane of a serial handler is its own: without the handler, no worker receives from it.
    fewer = specs if specs[-1].serial else specs[:-1]
    deployments = [
        Deployment("whole", manifest(*specs, sink=sink), behaviors=behaviors),
        Deployment("fewer", manifest(*fewer, sink=sink), behaviors=behaviors),
        Deployment(
            "broken", manifest(*specs, sink=sink), frozenset(handlers[:1]), behaviors=behaviors
        ),
    ]
    return Scenario(
        "random",
        webhooks,
        tuple(deployments),
        workers=rng.randint(2, 4),
        receivers=rng.randint(1, 3),
        budget=_budget(rng),
        outcomes=dict.fromkeys(handlers, ANY_OUTCOME),
        always=always,
        requests=tuple(_requests(webhooks)),
        skews=tuple(rng.choice([0, 0, -2400, 2400, 7]) for _ in range(4)),
        faults=ALL_FAULTS,
        lag=rng.random() < 0.3,
        jitter=rng.choice([0.0, 0.2, 1.0]),
        tries=3,
        max_receive_count=8,
    )


def _handler(rng: Random, name: str, behavior: Behavior) -> HandlerSpec:
    order = rng.choice((*ANY_ORDER, BLOCKING.get(name)))
    serial = order is not None and order.kind == SERIAL
    return handler(
        name,
        rng.choice(["acme", "github"]) if name == "ship" else "acme",
        max_attempts=rng.choice([1, 2, 3]),
        lane=f"{name}s" if serial else rng.choice(["default", "default", "slow"]),
        destinations=(behavior.destination,) if behavior.destination else (),
        order=order,
    )


def _sink(rng: Random) -> DestinationSpec:
    breaker = BreakerSpec(failures=rng.choice([1, 2]), recovery=30.0)
    return DestinationSpec(
        SINK,
        "https://sink.example",
        rate=rng.choice([None, 0.1, 1.0]),
        breaker=rng.choice([None, breaker, breaker]),
    )


def _webhooks(rng: Random) -> list[Webhook]:
    webhooks = []
    for number in range(rng.randint(1, 3)):
        source = rng.choice(["acme", "acme", "github"])
        honest = Webhook(
            f"{source} e{number}",
            source,
            f"e{number}",
            rng.choice(["0", f"{number}"]) if source == "acme" else f"{number}",
            retries=source != "github",
            version=number + 1,
            tenant=rng.choice(["", "t1"]) if source == "acme" else "",
        )
        webhooks.append(honest)
        for kind in rng.sample(
            ["again", "other", "forged", "captured", "large"], rng.randint(0, 2)
        ):
            webhooks.append(_variant(honest, kind))
    return webhooks


def _variant(webhook: Webhook, kind: str) -> Webhook:
    changes: dict[str, dict[str, Any]] = {
        "again": {},
        "other": {"content": "other"},
        "forged": {"forged": True, "retries": False},
        "captured": {"event_id": f"{webhook.event_id}x", "captured": True, "retries": False},
        "large": {"event_id": f"{webhook.event_id}l", "content": "large", "padding": 20_000},
    }
    parts: dict[str, Any] = {
        "source": webhook.source,
        "event_id": webhook.event_id,
        "content": webhook.content,
    }
    parts |= {name: getattr(webhook, name) for name in ("retries", "version", "tenant")}
    return Webhook(f"{webhook.name} {kind}", **{**parts, **changes[kind]})


def _budget(rng: Random) -> Budget:
    return Budget(
        faults=rng.choice([0, 1, 2, 4, 8]),
        failures=rng.choice([0, 1, 3]),
        jumps=rng.randint(0, 30),
        passes=rng.randint(0, 6),
        replays=rng.choice([0, 0, 1, 2]),
        redrives=rng.choice([0, 0, 1, 2]),
        decisions=rng.choice([0, 1, 3]),
        pauses=rng.choice([0, 0, 2, 4]),
        openings=rng.choice([0, 0, 2]),
        erasures=rng.choice([0, 0, 1]),
        deployments=rng.choice([0, 0, 0, 2]),
        ages=rng.choice([0, 0, 0, 1]),
    )


def _requests(webhooks: tuple[Webhook, ...]) -> list[ReplayRequest]:
    ids = (webhooks[0].event_id,)
    forced: dict[str, Any] = {"handler": "mail", "force": True, "reason": "agreed"}
    return [
        ReplayRequest(status=(EventStatus.DEAD_LETTER,), rate_per_second=500),
        ReplayRequest(event_ids=ids, rate_per_second=500),
        ReplayRequest(event_ids=ids, rate_per_second=500, **forced),
    ]
