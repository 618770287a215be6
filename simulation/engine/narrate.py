"""Prints a schedule as a trace of calls, times and row changes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from simulation.engine.apply import outcome_of, webhook_of
from simulation.engine.choices import Choice
from simulation.engine.stepping import Call
from simulation.engine.virtual_time import next_moment
from simulation.engine.world import World
from simulation.invariants.observer import Violation
from simulation.search.random_walks import follow
from simulation.worlds.scenario import Scenario
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.schema import APPROVAL_PREFIX, RUN_PREFIX
from webhook_inbox.queue.message import RunMessage

HOW: Final = {
    "ok": "",
    "before": " — fails",
    "after": " — takes effect, but the answer is lost",
    "twice": " — takes effect twice (repeated by the SDK)",
    "delayed": " — times out, and takes effect later",
    "refused": " — the queue rejects the first message",
    "stale": " — reads stale data",
    "undeleted": " — the deletion fails",
}
# The world before the choice, the parts of the choice, and the call that it concerns.
Sentence = Callable[[World, list[str], Call | None], str]
SHOWN: Final = (
    "status",
    "generation",
    "attempt_count",
    "attempts_in_round",
    "lease_id",
    "state",
    "version",
)


def narrate(scenario: Scenario, schedule: Iterable[Choice]) -> Iterator[str]:
    """Yields the lines of the trace, up to the end or the broken guarantee."""
    rows: dict[str, str] = {}
    try:
        for world, choice in follow(scenario, tuple(schedule)):
            yield from _changes(world, rows)
            yield f"{_time(world)}  {_sentence(world, choice)}"
        yield "the world has converged"
    except Violation as violation:
        yield f"BROKEN {violation}"


def _time(world: World) -> str:
    ms = world.clock.ms - to_ms(START)
    days, rest = divmod(ms, 86_400_000)
    clock = f"{from_ms(rest):%H:%M:%S}.{rest % 1000:03d}"
    return f"day {days} {clock}" if days else clock


def _sentence(world: World, choice: Choice) -> str:
    kind, *parts = choice
    return _SENTENCES[kind](world, parts, _pending(world, parts))


def _pending(world: World, parts: list[str]) -> Call | None:
    job = world.jobs.get(parts[0]) if parts else None
    return job.node.call if job else None


def _call(call: Call | None) -> str:
    if call is None:
        return "(ends)"
    arguments = [_brief(value) for value in call.args[:2]]
    return f"{call.port}.{call.method}({', '.join(arguments)})"


def _brief(value: object) -> str:
    if isinstance(value, dict) and "pk" in value:
        return f"{value['pk']} {value['sk']}"
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}…"


def _changes(world: World, known: dict[str, str]) -> Iterator[str]:
    for row in world.aws.table.rows():
        if row["sk"].startswith((RUN_PREFIX, APPROVAL_PREFIX)):
            name, text = f"{row['sk']} of {row['event_id']}", _row(row)
            if known.get(name) != text:
                known[name] = text
                yield f"              {name} is {text}"


def _handles(world: World, parts: list[str], call: Call | None) -> str:
    name = call.args[0] if call else ""
    outcome = outcome_of(world, ("handles", *parts))
    return f"{parts[0]}: the handler {name} begins: {outcome}"


def _sends(world: World, parts: list[str], _: Call | None) -> str:
    webhook = webhook_of(world, parts[0])
    return f"{webhook.name!r} is sent: {webhook.source} {webhook.event_id}"


def _passes(world: World, _parts: list[str], _: Call | None) -> str:
    moment = next_moment(world) or world.clock.ms
    return f"{(moment - world.clock.ms) / 1000:g} s pass"


def _replays(world: World, parts: list[str], _: Call | None) -> str:
    request = world.scenario.requests[int(parts[0])]
    return f"an operator replays {request.model_dump(exclude_defaults=True)}"


def _of_message(verb: str) -> Sentence:
    def sentence(world: World, parts: list[str], _: Call | None) -> str:
        lane, message_id = parts
        message = next(m for m in world.aws.queues[lane].snapshot()[1] if m[0] == message_id)
        reference = RunMessage.decode(message[1])
        run = f"{reference.handler} of {reference.event_id}"
        counts = f"generation {reference.generation}, receive {message[4] + 1}"
        return f"{message_id} {verb}: {run}, {counts}"

    return sentence


def _row(row: Item) -> str:
    return ", ".join(f"{name} {row[name]}" for name in SHOWN if name in row)


_SENTENCES: Final[dict[str, Sentence]] = {
    "step": lambda _, parts, call: f"{parts[0]}: {_call(call)}{HOW[parts[1]]}",
    "handles": _handles,
    "killed": lambda _, parts, call: f"{parts[0]} is killed before {_call(call)}",
    "freezes": lambda _, parts, __: f"{parts[0]} is frozen until after its lease",
    "sends": _sends,
    "receives": _of_message("is received"),
    "throttles": _of_message("is received and throttled"),
    "loses": _of_message("is lost"),
    "reappears": _of_message("is visible again"),
    "arrives": lambda world, parts, _: f"takes effect late: {_call(world.late[int(parts[0])])}",
    "time": _passes,
    "ages": lambda _, parts, __: f"{parts[0]} days pass without activity",
    "expires": lambda *_: "TTL deletes what has expired",
    "reconciles": lambda *_: "the reconciler begins a pass",
    "replays": _replays,
    "decides": lambda _, parts, __: f"a person decides about {parts[2]}: {parts[0]}",
    "says": lambda _, parts, __: f"{parts[0]} decides {parts[3]}: {parts[1]}",
    "pauses": lambda _, parts, __: f"a person pauses {parts[0]}",
    "resumes": lambda _, parts, __: f"a person resumes {parts[0]}",
    "opens": lambda _, parts, __: f"a person opens the circuit of {parts[0]}",
    "closes": lambda _, parts, __: f"a person closes the circuit of {parts[0]}",
    "erases": lambda _, parts, __: f"an operator erases {parts[1]} of {parts[0]}",
    "redrives": lambda _, parts, __: f"an operator redrives the DLQ of lane {parts[0]}",
    "deploys": lambda world, parts, _: f"{parts[0]!r} replaces {world.deployment.name!r}",
    "converges": lambda *_: "faults stop",
}
