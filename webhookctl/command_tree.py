"""The tree of commands: its help in plain words, and suggestions for unknown names.

Help names the form of a value (`TEXT`, `1-65535`, `FILE`), not its type in Python.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from webhook_inbox.domain.similar_names import did_you_mean
from webhookctl.examples import EXAMPLES

Function = TypeVar("Function", bound=Callable[..., Any])

_FORMS: Final = {str: "TEXT", int: "NUMBER", float: "NUMBER"}


class PlainCommand(TyperCommand):
    """A command whose help has the forms of its values."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        for param in self.params:
            _describe(param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments; the error for an unknown option has the most similar one."""
        return _suggesting(ctx, lambda: super(PlainCommand, self).parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Returns the words of the usage line."""
        arguments = [p for p in self.get_params(ctx) if isinstance(p, TyperArgument)]
        return ["[OPTIONS]", *map(_argument, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the sections of the arguments and the options."""
        params = self.get_params(ctx)
        arguments = [
            (p.display_name_raw, p.help or "") for p in params if isinstance(p, TyperArgument)
        ]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        records = (p.get_help_record(ctx) for p in params if p.param_type_name == "option")
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the section of the examples; a command is a line, however long."""
        with formatter.section("Examples"):
            for example in EXAMPLES.get(ctx.command_path.partition(" ")[2], ()):
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class PlainGroup(TyperGroup):
    """A group that suggests the most similar command for an unknown one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments; the error for an unknown option has the most similar one."""
        return _suggesting(ctx, lambda: super(PlainGroup, self).parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command; raises a usage error for an unknown name."""
        name = args[0]
        if name in self.commands:
            return super().resolve_command(ctx, args)
        known = ", ".join(self.commands)
        guess = did_you_mean(name, self.commands) or f"the commands are {known}"
        return ctx.fail(f"no command {name}; {guess}")


class CommandTree(typer.Typer):
    """A Typer app of `PlainCommand` and `PlainGroup`, with plain help.

    Plain help reads the same on a terminal, in a pipe and in an issue.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            cls=PlainGroup,
            add_completion=False,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Returns the decorator that adds a command."""
        return super().command(name, **{"cls": PlainCommand, **settings})


def _suggesting(ctx: Any, parse: Callable[[], list[str]]) -> list[str]:
    """Returns the result of `parse`; its error for an unknown option has the most similar one."""
    try:
        return parse()
    except TyperException as error:
        if not hasattr(error, "possibilities"):
            raise
        name = str(getattr(error, "option_name", ""))
        known = [option for param in ctx.command.get_params(ctx) for option in param.opts]
        guess = did_you_mean(name, known)
    return list[str](ctx.fail(f"no option {name}; {guess}".removesuffix("; ")))


def _argument(param: TyperArgument) -> str:
    name = param.display_name_raw + ("..." if param.nargs != 1 else "")
    return name if param.required else f"[{name}]"


def _describe(param: Any) -> None:
    """Gives an option the form of its value in place of a type and a range."""
    if isinstance(param, TyperOption) and not param.is_flag and param.metavar is None:
        param.metavar = _form(param)
        param.min = param.max = None  # only for the help; `type_descriptor` checks the value


def _form(param: TyperOption) -> str:
    kind = param.type_descriptor
    if kind.is_choice:
        return param.name.upper().rstrip("_")
    if param.min is not None and param.max is not None:
        return f"{param.min:g}-{param.max:g}"
    if kind.is_path:
        return "FILE"
    return _FORMS.get(kind.annotation, "TEXT")
