"""The tools of `webhookctl mcp`: each one is a command of this program, with `--json`.

A tool has no code of its own, so an agent reads the same results as a person, and its actions are
checked and audited in the same way. Values are passed as `--option=value` or after `--`, so that no
value of an agent becomes an option.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# Filters that several commands share.
WINDOW: Final = ("since", "until")
# Parameters that are an integer as well as its text.
NUMBERS: Final = frozenset({"limit", "first"})
ERRORS: Final = ("error_contains", "error_class", "error_group")
EVENTS: Final = ("source", "type", "handler", *WINDOW)


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool.

    Attributes:
        name: its name.
        command: the words of the command.
        text: its description, for the agent.
        options: the options that the agent may give, by their names without dashes.
        argument: the name of the command's argument, "" for none.
        required: the parameters that must be given.
        fixed: options that are always given.
        writes: whether it changes the inbox.
    """

    name: str
    command: str
    text: str
    options: tuple[str, ...] = ()
    argument: str = ""
    required: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    writes: bool = False

    def words(self, given: Mapping[str, str | int], *more: str) -> list[str]:
        """Returns the command line for the given parameters and more options, without the program.

        Raises:
            ValueError: a parameter is unknown, missing or not a text.
        """
        known = (*self.options, *filter(None, (self.argument,)))
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"{self.name} has no parameter {name}; it has {', '.join(known)}")
            number = isinstance(value, int) and not isinstance(value, bool)
            if not (number and name in NUMBERS) and (not isinstance(value, str) or "\0" in value):
                raise ValueError(f"{name} is not a text")
        missing = [name for name in self.required if not given.get(name)]
        if missing:
            raise ValueError(f"{self.name} needs {', '.join(missing)}")
        options = [
            f"--{name.replace('_', '-')}={given[name]}" for name in self.options if given.get(name)
        ]
        words = [*self.command.split(), *self.fixed, *more, *options]
        return [*words, "--", str(given[self.argument])] if given.get(self.argument) else words

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters: texts, or integers as well."""
        known = (*filter(None, (self.argument,)), *self.options)
        return {
            "type": "object",
            "properties": {
                name: {
                    "type": ["string", "integer"] if name in NUMBERS else "string",
                    "description": MEANINGS[name],
                }
                for name in known
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

TOOLS: Final = (
    AgentTool(
        "list_events",
        "inbox list",
        "List events, newest first.",
        (*EVENTS, "status", "tenant", "limit"),
    ),
    AgentTool(
        "inspect_event",
        "inbox inspect",
        "Show one event: its runs, attempts, effects, the reason of a failure and the next action.",
        ("source",),
        argument="event_id",
        required=("event_id",),
    ),
    AgentTool(
        "list_errors",
        "inbox errors",
        "Group failing runs by handler, error and line.",
        (*EVENTS, "tenant"),
    ),
    AgentTool(
        "search_events",
        "inbox search",
        "Find events by a condition on their bodies.",
        ("source", "type", *WINDOW, "limit"),
        argument="expression",
        required=("expression", "since"),
    ),
    AgentTool("list_dead_letters", "dlq list", "Count dead letters by lane, handler and error."),
    AgentTool(
        "list_holds",
        "hold list",
        "List the runs that wait for a person's decision.",
        ("source", "handler"),
    ),
    AgentTool("list_destinations", "destinations list", "List circuits, rates and waiting runs."),
    AgentTool("list_handlers", "handlers list", "List handlers, pauses and waiting runs."),
    AgentTool("check_inbox", "doctor", "Check the whole inbox; each finding has its remedy."),
    AgentTool("read_audit", "audit", "List the actions of operators.", ("action", *WINDOW)),
    AgentTool(
        "plan_replay",
        "replay",
        "Select runs to replay, and change nothing: counts, errors, cost and a selection id.",
        (*EVENTS, "status", "tenant", *ERRORS, "where", "limit"),
    ),
    AgentTool(
        "replay_selection",
        "replay",
        "Replay the runs of a selection, each once.",
        ("selection", "first", "rate", "reason"),
        required=("selection", "reason"),
        fixed=("--yes",),
        writes=True,
    ),
    AgentTool(
        "pause_handler",
        "handlers pause",
        "Pause a handler: its runs wait, and none is lost.",
        ("reason",),
        argument="name",
        required=("name", "reason"),
        writes=True,
    ),
    AgentTool(
        "resume_handler",
        "handlers resume",
        "Resume a paused handler.",
        ("reason",),
        argument="name",
        required=("name", "reason"),
        writes=True,
    ),
    AgentTool(
        "skip_run",
        "skip",
        "Close a dead run that a replay would not fix.",
        ("source", "handler", "reason"),
        argument="event_id",
        required=("event_id", "reason"),
        writes=True,
    ),
)
