"""Tells a schedule so that a person can follow it."""

from collections.abc import Iterable, Iterator
from typing import Final

from simulation.choices import Choice, letter_of, verdict_of
from simulation.moments import next_moment
from simulation.scenario import Scenario
from simulation.stepping import Call
from simulation.truth import Violation
from simulation.walks import follow
from simulation.world import World
from webhook_inbox.instants import from_ms, to_ms
from webhook_inbox.memory.clock import START
from webhook_inbox.ports import Item
from webhook_inbox.reference import Reference
from webhook_inbox.rows import RUN_PREFIX

HOW: Final = {
    "ok": "",
    "before": " — fails",
    "after": " — done, but the answer is lost",
    "twice": " — done twice, the SDK having repeated it",
    "delayed": " — times out, and is still on its way",
    "refused": " — the queue does not take the first message",
    "stale": " — reads what was there a while ago",
    "undeleted": " — the deletion fails",
}
SHOWN: Final = ("status", "ticket", "attempt_count", "attempts_in_round", "lease_id")


def tell(scenario: Scenario, schedule: Iterable[Choice]) -> Iterator[str]:
    """Yields the schedule's story, line by line, to its end or the guarantee it breaks."""
    rows: dict[str, str] = {}
    try:
        for world, choice in follow(scenario, tuple(schedule)):
            yield from _changes(world, rows)
            yield f"{_time(world)}  {_sentence(world, choice)}"
        yield "all has healed"
    except Violation as violation:
        yield f"BROKEN {violation}"


def _time(world: World) -> str:
    ms = world.clock.ms - to_ms(START)
    days, rest = divmod(ms, 86_400_000)
    clock = f"{from_ms(rest):%H:%M:%S}.{rest % 1000:03d}"
    return f"day {days} {clock}" if days else clock


def _sentence(world: World, choice: Choice) -> str:
    kind, *parts = choice
    match kind:
        case "step":
            call = world.jobs[parts[0]].place.call
            return f"{parts[0]}: {_call(call)}{HOW[parts[1]]}"
        case "handles":
            call = world.jobs[parts[0]].place.call
            name = call.args[0] if call else ""
            return f"{parts[0]}: handler {name} begins: {verdict_of(world, choice)}"
        case "killed":
            call = world.jobs[parts[0]].place.call
            return f"{parts[0]} is killed before: {_call(call)}"
        case "sends":
            letter = letter_of(world, parts[0])
            return f"{letter.name} is sent: {letter.source} {letter.event_id}"
        case "receives" | "burns" | "loses" | "shows":
            return f"{_MESSAGES[kind]} {parts[1]}: {_body(world, *parts)}"
        case "lands":
            return f"at last arrives: {_call(world.late[int(parts[0])])}"
        case "time":
            return f"{((next_moment(world) or world.clock.ms) - world.clock.ms) / 1000:g} s pass"
        case "replays":
            return f"an operator replays {world.scenario.requests[int(parts[0])].model_dump(exclude_defaults=True)}"
        case "redrives":
            return f"an operator redrives the DLQ of lane {parts[0]}"
        case "deploys":
            return f"deployment {parts[0]} replaces {world.deployment.name}"
    return {"reconciles": "the reconciler begins a pass", "heals": "nothing fails any more"}[kind]


_MESSAGES: Final = {
    "receives": "received is",
    "burns": "received and throttled is",
    "loses": "lost is",
    "shows": "visible again is",
}


def _body(world: World, lane: str, message_id: str) -> str:
    message = next(m for m in world.queues[lane].snapshot()[1] if m[0] == message_id)
    reference = Reference.decode(message[1])
    run = f"{reference.handler} of {reference.event_id}"
    return f"{run}, ticket {reference.ticket}, receive {message[4] + 1}"


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
    for row in world.table.rows():
        if row["sk"].startswith(RUN_PREFIX):
            name, text = f"{row['sk']} of {row['event_id']}", _row(row)
            if known.get(name) != text:
                known[name] = text
                yield f"              {name} is {text}"


def _row(row: Item) -> str:
    return ", ".join(f"{name} {row[name]}" for name in SHOWN if name in row)
