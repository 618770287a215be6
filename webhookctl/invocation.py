"""What a command is given, and the options that every command has."""

import getpass
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.ports import Clock
from webhookctl.display import suggestions as advice
from webhookctl.display.output import Output
from webhookctl.target import Selection, Target, connect


@dataclass(slots=True)
class World:
    """What is outside of the process, and whether the user wants to see tracebacks.

    `program` is how the process was called.
    """

    connect: Callable[[Selection], Target] = connect
    clock: Clock = field(default_factory=SystemClock)
    debug: bool = False
    program: str = advice.NAME


@dataclass(frozen=True)
class Invocation:
    """One call of the command line; the target is connected to when it is first asked for."""

    world: World
    selection: Selection = field(default_factory=Selection)
    as_json: bool = False

    @cached_property
    def target(self) -> Target:
        """The selected inbox; raises CommandError where none is."""
        return self.world.connect(self.selection)

    @property
    def clock(self) -> Clock:
        """The time."""
        return self.world.clock

    @property
    def output(self) -> Output:
        """Where results go."""
        return Output(as_json=self.as_json)

    def pasteable(self, text: str) -> str:
        """Returns a text whose commands can be pasted, target and all."""
        return advice.pasteable(text, called=self.world.program, selection=self.selection)

    def told(self, options: dict[str, Any]) -> "Invocation":
        """Returns it with more options, given behind the command's name."""
        self.world.debug |= options["debug"]
        before = self.selection
        selection = Selection(
            local=options["local"] or before.local,
            stack=options["stack"] or before.stack,
            profile=options["profile"] or before.profile,
            region=options["region"] or before.region,
        )
        return Invocation(self.world, selection, options["as_json"] or self.as_json)


def shared(
    *,
    local: Annotated[bool, typer.Option("--local", help="The inbox that runs here.")] = False,
    stack: Annotated[
        str | None,
        typer.Option("--stack", metavar="NAME", help="An inbox in AWS (or WEBHOOKCTL_TARGET)."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="An AWS profile.")
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="NAME", help="An AWS region.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> dict[str, Any]:
    """Declares the options that may stand before and behind every command's name."""
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


def takes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function whose first parameter is the Invocation."""
    _, *own = inspect.signature(function).parameters.values()

    def command(**values: Any) -> None:
        context: typer.Context = values.pop("ctx")
        options = {name: values.pop(name) for name in _SHARED}
        before = context.obj
        if not isinstance(before, Invocation):
            before = Invocation(before or World())
        context.obj = before.told(options)
        function(context.obj, **values)

    parameters = [_CONTEXT, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own)]
    parameters += _SHARED.values()
    # What typer reads a command's parameters from.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = function.__doc__
    command.__name__ = function.__name__
    return command


def caller(target: Target) -> str:
    """Returns the ARN of whoever calls, or this machine's user for an inbox that runs here."""
    if target.local:
        return getpass.getuser()
    return str(target.client("sts").get_caller_identity()["Arn"])
