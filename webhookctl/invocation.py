"""The invocation of a command, and the options that commands share."""

import inspect
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection, connect
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import NoStack, Target
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.ports import Clock
from webhookctl.display.output import Output
from webhookctl.display.times import require_window
from webhookctl.errors import CommandError

# Parameters that several commands share.
EventId = Annotated[str, typer.Argument(metavar="EVENT_ID", help="The event's id at the provider.")]
Source = Annotated[str | None, typer.Option(metavar="NAME", help="Only this source.")]
Handler = Annotated[str | None, typer.Option(metavar="NAME", help="Only this handler.")]
EventType = Annotated[
    str | None, typer.Option("--type", metavar="PATTERN", help="Only types like 'invoice.*'.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Only from 30m, 2h or 7d ago on, or a time."),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only before 30m, 2h or 7d ago, or a time."),
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number of results.")]
Body = Annotated[bool, typer.Option("--body", help="Print the body as well.")]
ShowPersonal = Annotated[
    bool,
    typer.Option(
        "--show-personal", help="Do not mask personal fields; recorded in the audit first."
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="Recorded with the run and in the audit.")]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="On whose behalf; recorded with your AWS identity."),
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="Only events of this tenant."),
]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Recorded in the audit.")]
SecretEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="The environment variable with the secret.")
]
Stage = Annotated[str, typer.Option(metavar="NAME", help="The stage of inbox.toml.")]
# The risk of a secret among the arguments.
EXPOSED: Final = "is visible to other users of this machine in its list of processes"


@dataclass(slots=True)
class World:
    """The process's environment: its connection, its clock, its name and the --debug switch."""

    connect: Callable[[Selection], Target] = connect
    clock: Clock = field(default_factory=SystemClock)
    debug: bool = False
    program: Program = field(default_factory=Program)


@dataclass(frozen=True)
class Invocation:
    """One invocation; connects to the target on first use."""

    world: World
    selection: Selection = field(default_factory=Selection)
    as_json: bool = False

    @cached_property
    def target(self) -> Target:
        """The selected inbox; raises CommandError without one.

        The first use prints its line (stack, account and region) to standard error.
        """
        try:
            found = self.world.connect(self.selection)
        except NoStack as error:
            self._show(error.planned)
            raise
        self._show(found)
        return found

    def _show(self, target: Target) -> None:
        # With --json, a program may read both streams, and a person at the terminal reads one.
        if not self.as_json or sys.stderr.isatty():
            self.output.note(target.line)

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self.world.clock

    @property
    def output(self) -> Output:
        """Prints the results."""
        return Output(as_json=self.as_json)

    @property
    def program(self) -> Program:
        """Makes the commands that the output suggests, for the same target."""
        return self.world.program.on(self.selection)

    @cached_property
    def client(self) -> InboxClient:
        """The operations on the selected inbox; as `target`."""
        return InboxClient(self.target, write=True, program=self.program, clock=self.clock)

    def actor(self, by: str | None) -> Actor:
        """Returns the caller as the audit records it, on behalf of the name that `--by` gives."""
        return self.client.actor(by or "")

    def personal_reader(self, *, show: bool) -> Actor | None:
        """Returns who sees personal fields: the caller with `--show-personal`, or None."""
        return self.actor(None) if show else None

    def with_options(self, options: dict[str, Any]) -> "Invocation":
        """Returns the invocation with the options given after the command's name."""
        self.world.debug |= bool(options["debug"])
        before = self.selection
        selection = Selection(
            local=options["local"] or before.local,
            stack=options["stack"] or before.stack,
            profile=options["profile"] or before.profile,
            region=options["region"] or before.region,
        )
        return Invocation(self.world, selection, bool(options["as_json"] or self.as_json))

    def given(self, name: str) -> bool:
        """Returns whether a shared option precedes the command's name."""
        return bool(self.as_json if name == "as_json" else getattr(self.selection, name))


def shared(
    *,
    local: Annotated[bool, typer.Option("--local", help="Use the inbox on this machine.")] = False,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", metavar="NAME", help="Use this stack in AWS (or WEBHOOKCTL_TARGET)."
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Use this AWS profile.")
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="NAME", help="Use this AWS region.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> dict[str, Any]:
    """Declares the options that may precede or follow every command's name."""
    return {
        "local": local,
        "stack": stack,
        "profile": profile,
        "region": region,
        "as_json": as_json,
        "debug": debug,
    }


_SHARED: Final = inspect.signature(shared).parameters
_CONTEXT: Final = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


_TARGET: Final = ("local", "stack", "profile", "region")


def takes_options(
    function: Callable[..., None], *, without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """Returns a typer command for a function whose first parameter is the Invocation.

    The command refuses the shared options in `without`, also where they precede its name. A
    parameter whose type is a dataclass stands for the options that its fields declare.
    """
    _, *declared = inspect.signature(function).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}
    fields = {name: inspect.signature(kind).parameters for name, kind in groups.items()}
    own = [each for p in declared for each in fields.get(p.name, {p.name: p}).values()]
    offered = {name: each for name, each in _SHARED.items() if name not in without}

    def command(**values: Any) -> None:
        context: typer.Context = values.pop("ctx")
        options = {name: values.pop(name, None) for name in _SHARED}
        before = context.obj
        if not isinstance(before, Invocation):
            before = Invocation(before or World())
        for name in filter(before.given, without):
            option = "--" + name.removeprefix("as_")
            context.fail(f"no option {option} here: {context.info_name} does not use it")
        call = context.obj = before.with_options(options)
        require_window(values.get("since"), values.get("until"), call.clock.now())
        for group, kind in groups.items():
            values[group] = kind(**{name: values.pop(name) for name in fields[group]})
        function(call, **values)

    parameters = [_CONTEXT, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own)]
    parameters += offered.values()
    # Typer reads a command's parameters from its signature.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = function.__doc__
    command.__name__ = function.__name__
    return command


# For commands that read files of this machine only.
offline: Final = partial(takes_options, without=_TARGET)
# For a command that runs until it is stopped.
interactive: Final = partial(takes_options, without=(*_TARGET, "as_json"))


def secret_of(variable: str, *, otherwise: str) -> str:
    """Returns an environment variable's value; raises CommandError where it is not set."""
    if not os.environ.get(variable):
        raise CommandError(f"the variable {variable} is not set: export it, or use {otherwise}")
    return os.environ[variable]


def parsed(result: str) -> Any:
    """Returns the value of --result; raises BadParameter where it is not JSON."""
    try:
        return json.loads(result)
    except ValueError as error:
        raise typer.BadParameter(
            f"--result is not JSON ({error}); quote it, as in --result '{{\"id\": 1}}'"
        ) from error


def read_bytes(file: Path) -> bytes:
    """Returns a file's content; raises CommandError where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror}") from error
