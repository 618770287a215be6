"""The tools of `webhookctl mcp`: each one is an operation of the client, with its own results.

A result is the object that the command prints with `--json`, so an agent reads the same facts as a
person, and its actions are checked and audited in the same way.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from threading import Event
from typing import Any, Final, TypeVar

from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.errors import EndedEarly, WrongArgument
from webhook_inbox.client.holds import HoldFilter
from webhook_inbox.client.replays import LIMIT, RATE, ReplayFilter, ReplayOptions
from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.times import moment
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token

E = TypeVar("E", bound=StrEnum)
N = TypeVar("N", int, float)

# Filters that several tools share.
WINDOW: Final = ("since", "until")
# Parameters that are an integer as well as its text.
NUMBERS: Final = frozenset({"limit", "first"})
ERRORS: Final = ("error_contains", "error_class", "error_group")
EVENTS: Final = ("source", "type", "handler", *WINDOW)
# The largest canary, the most runs of a selection, and the rates of a replay.
CANARY: Final = 200
MOST: Final = 10_000
RATES: Final = (0.1, 500.0)


def _is_text(value: object) -> bool:
    """Returns whether a value is Unicode text that AWS and a command line take."""
    return isinstance(value, str) and not re.search("[\0\ud800-\udfff]", value)


def _nothing() -> None:
    """Stops nothing."""


@dataclass
class ToolCall:
    """One call of a tool by an agent.

    Attributes:
        client: the operations on the inbox.
        given: the parameters, of which an empty one is not given.
        agent: the agent's name for the audit.
        now: the present time.
        stopped: set once the agent no longer waits: a change must not begin then.
        stop: ends a long operation after its step under way; another thread calls it.
        cut_off: why results are missing, "" if none are; a `Listing` knows it by itself.
    """

    client: InboxClient
    given: Mapping[str, str | int]
    agent: str
    now: datetime
    stopped: Event
    stop: Callable[[], None] = field(default=_nothing)
    cut_off: str = ""

    @property
    def by(self) -> Actor:
        """The caller, on behalf of the agent; raises EndedEarly once the call was stopped."""
        actor = self.client.actor(self.agent)
        if self.stopped.is_set():
            raise EndedEarly("the call was stopped before it changed anything")
        return actor

    def text(self, name: str) -> str | None:
        """Returns a text, None if it is not given."""
        return str(self.given[name]) if self.given.get(name) else None

    def texts(self, *names: str) -> dict[str, str]:
        """Returns those of these texts that are given."""
        return {name: str(self.given[name]) for name in names if self.given.get(name)}

    def time(self, name: str) -> datetime | None:
        """Returns a time."""
        text = self.text(name)
        return None if text is None else moment(text, self.now)

    def query(self) -> EventQuery:
        """Returns the filters that tools on events share."""
        texts = self.texts("source", "type", "handler", "tenant")
        if "tenant" in texts:
            texts["tenant"] = token(texts["tenant"])
        status, since = self.one_of("status", EventStatus), self.time("since")
        return EventQuery(status=status, since=since, until=self.time("until"), **texts)

    def number(self, name: str, kind: type[N], low: float, high: float) -> N | None:
        """Returns a number from `low` to `high`, None if it is not given."""
        text = self.text(name)
        try:
            value = None if text is None else kind(text)
        except ValueError as error:
            raise WrongArgument(f"{name} {text!r} is not a number") from error
        if value is not None and not low <= value <= high:
            raise WrongArgument(f"{name} {text} is not from {low:g} to {high:g}")
        return value

    def one_of(self, name: str, values: type[E]) -> E | None:
        """Returns a value of an enum."""
        text = self.text(name)
        try:
            return None if text is None else values(text)
        except ValueError as error:
            raise WrongArgument(f"{name} {text!r}: use one of {', '.join(values)}") from error


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool.

    Attributes:
        name: its name.
        command: the words of the command that does the same.
        text: its description, for the agent.
        perform: performs it; the results may be read while they are iterated.
        options: the parameters that are options of the command.
        argument: the name of the command's argument, "" for none.
        required: the parameters that must be given.
        fixed: options of the command that are always given.
        writes: whether it changes the inbox.
    """

    name: str
    command: str
    text: str
    perform: Callable[[ToolCall], Iterable[object]]
    options: tuple[str, ...] = ()
    argument: str = ""
    required: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    writes: bool = False

    @property
    def parameters(self) -> Sequence[str]:
        """The names of its parameters."""
        return (*filter(None, (self.argument,)), *self.options)

    def check(self, given: Mapping[str, str | int]) -> None:
        """Raises WrongArgument where a parameter is unknown, missing or not a text."""
        for name, value in given.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise WrongArgument(f"{self.name} has no parameter {name}; it has {known}")
            number = isinstance(value, int) and not isinstance(value, bool)
            if not (number and name in NUMBERS) and not _is_text(value):
                raise WrongArgument(f"{name} is not a text")
        if missing := [name for name in self.required if not given.get(name)]:
            raise WrongArgument(f"{self.name} needs {', '.join(missing)}")

    def words(self, given: Mapping[str, str | int], *more: str) -> list[str]:
        """Returns the command that does the same, without the program, with more options.

        Values are behind `=` or `--`, so that none of them becomes an option.
        """
        options = [
            f"--{name.replace('_', '-')}={given[name]}" for name in self.options if given.get(name)
        ]
        words = [*self.command.split(), *self.fixed, *more, *options]
        return [*words, "--", str(given[self.argument])] if given.get(self.argument) else words

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters: texts, or integers as well."""
        return {
            "type": "object",
            "properties": {
                name: {
                    "type": ["string", "integer"] if name in NUMBERS else "string",
                    "description": MEANINGS[name],
                }
                for name in self.parameters
            },
            "required": list(self.required),
            "additionalProperties": False,
        }


MEANINGS: Final = {
    "event_id": "the event's id",
    "source": "only this source",
    "type": "only types that match this pattern, such as invoice.*",
    "handler": "only this handler",
    "tenant": "only this tenant",
    "status": "only this status, such as dead_letter, failed or held",
    "since": "only from 30m, 2h or 7d ago, or a time such as 2026-11-21T08:00:00Z",
    "until": "only before 30m, 2h or 7d ago, or a time",
    "limit": "the maximum number of results",
    "error_contains": "only runs whose last error contains this",
    "error_class": "only runs whose last error is of this class, such as KeyError",
    "error_group": "only the runs of this group of list_errors",
    "where": "only events whose JSON body meets this JMESPath condition",
    "expression": "a JMESPath condition on the JSON body, such as data.amount > `100`",
    "selection": "the id of a selection that plan_replay returned",
    "first": "replay so many runs only, as a canary",
    "rate": "runs per second",
    "reason": "why; recorded in the audit",
    "name": "the handler's name",
    "action": "only this action, such as replay",
}


def _list_events(call: ToolCall) -> Iterable[object]:
    return call.client.events.list(call.query(), limit=call.number("limit", int, 1, MOST) or 50)


def _inspect_event(call: ToolCall) -> Iterable[object]:
    return [call.client.events.get(call.text("event_id") or "", source=call.text("source"))]


def _list_errors(call: ToolCall) -> Iterable[object]:
    summary = call.client.failures.summarize(call.query())
    if summary.group_count > len(summary.groups):
        call.cut_off = f"the largest of {summary.group_count} groups: use filters"
    return summary.groups


def _search_events(call: ToolCall) -> Iterator[object]:
    found = call.client.events.search(
        call.text("expression") or "",
        since=call.time("since") or call.now,
        until=call.time("until"),
        source=call.text("source"),
        type_=call.text("type"),
    )
    yield from islice(found, call.number("limit", int, 1, MOST) or 50)
    if not found.complete:
        call.cut_off = f"only {found.read} events were searched: use filters or a higher limit"


def _list_dead_letters(call: ToolCall) -> Iterable[object]:
    summary = call.client.dead_letters.summarize()
    return [*summary.lanes, *summary.causes]


def _list_holds(call: ToolCall) -> Iterable[object]:
    wanted = HoldFilter(source=call.text("source") or "", handler=call.text("handler") or "")
    return call.client.holds.list(wanted, limit=1000)


def _read_audit(call: ToolCall) -> Iterable[object]:
    return call.client.audit.list(
        since=call.time("since"),
        until=call.time("until"),
        action=call.one_of("action", AuditedAction),
        limit=50,
    )


def _plan_replay(call: ToolCall) -> Iterator[object]:
    status = call.one_of("status", EventStatus)
    filters = ReplayFilter(
        status=() if status is None else (status,),
        since=call.time("since"),
        until=call.time("until"),
        **call.texts("source", "type", "handler", *ERRORS, "tenant", "where"),
    )
    options = ReplayOptions(limit=call.number("limit", int, 1, MOST) or LIMIT)
    plan = call.client.replays.plan(filters, options, by=call.by)
    yield plan
    if plan.error is not None:
        raise plan.error


def _replay_selection(call: ToolCall) -> Iterator[object]:
    rate, first = call.number("rate", float, *RATES), call.number("first", int, 1, CANARY)
    options = ReplayOptions(rate=rate or RATE, reason=call.text("reason") or "")
    replays = call.client.replays
    plan = replays.resume(call.text("selection") or "", options, by=call.by)
    replay = replays.start(plan, by=call.by, first=first)
    call.stop = replay.stop
    if call.stopped.is_set():
        replay.stop()
    replay.complete()
    yield replay
    if replay.error is not None:
        raise replay.error


def _pause_handler(call: ToolCall) -> Iterable[object]:
    name, reason = call.text("name") or "", call.text("reason") or ""
    return [call.client.handlers.pause(name, reason=reason, by=call.by)]


def _resume_handler(call: ToolCall) -> Iterable[object]:
    name, reason = call.text("name") or "", call.text("reason") or ""
    return [call.client.handlers.resume(name, reason=reason, by=call.by)]


def _skip_run(call: ToolCall) -> Iterable[object]:
    skipped = call.client.runs.skip(
        call.text("event_id") or "",
        source=call.text("source"),
        handler=call.text("handler"),
        reason=call.text("reason") or "",
        by=call.by,
    )
    return [skipped]


TOOLS: Final = (
    AgentTool(
        "list_events",
        "inbox list",
        "List events, newest first.",
        _list_events,
        (*EVENTS, "status", "tenant", "limit"),
    ),
    AgentTool(
        "inspect_event",
        "inbox inspect",
        "Show one event: its runs, attempts, effects, the reason of a failure and the next action.",
        _inspect_event,
        ("source",),
        argument="event_id",
        required=("event_id",),
    ),
    AgentTool(
        "list_errors",
        "inbox errors",
        "Group failing runs by handler, error and line.",
        _list_errors,
        (*EVENTS, "tenant"),
    ),
    AgentTool(
        "search_events",
        "inbox search",
        "Find events by a condition on their bodies.",
        _search_events,
        ("source", "type", *WINDOW, "limit"),
        argument="expression",
        required=("expression", "since"),
    ),
    AgentTool(
        "list_dead_letters",
        "dlq list",
        "Count dead letters by lane, handler and error.",
        _list_dead_letters,
    ),
    AgentTool(
        "list_holds",
        "hold list",
        "List the runs that wait for a person's decision.",
        _list_holds,
        ("source", "handler"),
    ),
    AgentTool(
        "list_destinations",
        "destinations list",
        "List circuits, rates and waiting runs.",
        lambda call: call.client.destinations.list(),
    ),
    AgentTool(
        "list_handlers",
        "handlers list",
        "List handlers, pauses and waiting runs.",
        lambda call: call.client.handlers.list(),
    ),
    AgentTool(
        "check_inbox",
        "doctor",
        "Check the whole inbox; each finding has its remedy.",
        lambda call: call.client.health.examine(),
    ),
    AgentTool(
        "read_audit", "audit", "List the actions of operators.", _read_audit, ("action", *WINDOW)
    ),
    AgentTool(
        "plan_replay",
        "replay",
        "Select runs to replay, and change nothing: counts, errors, cost and a selection id.",
        _plan_replay,
        (*EVENTS, "status", "tenant", *ERRORS, "where", "limit"),
    ),
    AgentTool(
        "replay_selection",
        "replay",
        "Replay the runs of a selection, each once.",
        _replay_selection,
        ("selection", "first", "rate", "reason"),
        required=("selection", "reason"),
        fixed=("--yes",),
        writes=True,
    ),
    AgentTool(
        "pause_handler",
        "handlers pause",
        "Pause a handler: its runs wait, and none is lost.",
        _pause_handler,
        ("reason",),
        argument="name",
        required=("name", "reason"),
        writes=True,
    ),
    AgentTool(
        "resume_handler",
        "handlers resume",
        "Resume a paused handler.",
        _resume_handler,
        ("reason",),
        argument="name",
        required=("name", "reason"),
        writes=True,
    ),
    AgentTool(
        "skip_run",
        "skip",
        "Close a dead run that a replay would not fix.",
        _skip_run,
        ("source", "handler", "reason"),
        argument="event_id",
        required=("event_id", "reason"),
        writes=True,
    ),
)
