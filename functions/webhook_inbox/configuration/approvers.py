"""The table of a group of people who approve effects, and the groups that handlers name."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from webhook_inbox.configuration.handler_modules import (
    module_files,
    parsed,
    registered_modules,
    shown,
)
from webhook_inbox.configuration.table import ConfigTable, Name, duration_up_to
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.domain.similar_names import did_you_mean
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.handlers.approvals.announcer import SNS
from webhook_inbox.handlers.effects.plan import Approval

_TOPIC: Final = re.compile(
    r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}", re.ASCII
)
_PERSON: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_APPROVAL: Final = Approval.__name__
# The parameters by position.
_PARAMETERS: Final = ("by", "count", "expires")


def _person(value: str) -> str:
    if _PERSON.fullmatch(value) is None:
        raise ValueError(
            f'"{value}" is not a person\'s name; use lower-case letters, digits and . _ -, at most'
            " 63, a letter or digit first"
        )
    return value


def _route(value: str) -> str:
    name, colon, address = value.partition(":")
    if not name or not colon or not address:
        raise ValueError(
            f'"{value}" is no address; write "DESTINATION:ADDRESS", like "slack:U0123456", or'
            ' "sns:" and the ARN of a topic'
        )
    if name == SNS and _TOPIC.fullmatch(address) is None:
        raise ValueError(f'"{address}" is not the ARN of a topic; write "arn:aws:sns:REGION:…"')
    return value


Person = Annotated[str, AfterValidator(_person)]


class Approvers(ConfigTable):
    """A group of people who approve effects outside the terminal."""

    people: dict[Person, Annotated[str, AfterValidator(_route)]] = Field(
        min_length=1,
        description='how each person is reached, like { ann = "slack:U0123456" }: the name of a'
        ' destination and the address in it, or "sns:" and the ARN of a topic; a name is that of'
        " the person's AWS user or session, so that each counts once",
    )
    escalate_after: Annotated[str, AfterValidator(duration_up_to("672h"))] | None = Field(
        default=None, description='when an open request is escalated, like "4h"'
    )
    escalate_to: Name | None = Field(
        default=None, description="the group whose people are asked then, besides these"
    )

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.escalate_after is None) != (self.escalate_to is None):
            raise ValueError("escalate_after and escalate_to go together; give both or none")
        return self

    def spec(self, name: str) -> ApproversSpec:
        """Returns the group of the manifest."""
        after = duration(self.escalate_after).total_seconds() if self.escalate_after else 0.0
        return ApproversSpec(name, dict(self.people), after, self.escalate_to or "")


def check_groups(groups: Mapping[str, ApproversSpec], destinations: Mapping[str, Any]) -> None:
    """Rejects a group that cannot be asked.

    Raises:
        ConfigurationError: a destination or the group of an escalation is unknown.
    """
    for group in groups.values():
        place = f"[approvers.{group.name}]"
        for person, route in group.people.items():
            name = route.partition(":")[0]
            if name != SNS and name not in destinations:
                guess = did_you_mean(name, destinations)
                raise ConfigurationError(
                    f'{place} people.{person}: no destination "{name}";'
                    f" {guess + ' Otherwise ' if guess else ''}add [destinations.{name}]"
                )
        if group.escalate_to and group.escalate_to not in groups:
            guess = did_you_mean(group.escalate_to, groups)
            raise ConfigurationError(
                f'{place} escalate_to: no group "{group.escalate_to}";'
                f" {guess + ' Otherwise ' if guess else ''}add [approvers.{group.escalate_to}]"
            )
        if group.escalate_to == group.name:
            raise ConfigurationError(f"{place} escalate_to: the group itself; name another group")
        next_one = groups.get(group.escalate_to)
        _check_addresses(place, {**(next_one.people if next_one else {}), **group.people})


def _check_addresses(place: str, people: Mapping[str, str]) -> None:
    """Rejects an address of two names: its reader would get both links, and count twice."""
    for address in people.values():
        names = sorted(name for name, route in people.items() if route == address)
        if len(names) > 1:
            raise ConfigurationError(
                f'{place} "{address}" is the address of {" and ".join(names)}; give each person an'
                " address of their own, since its reader decides under each name"
            )


@dataclass(frozen=True, slots=True)
class NamedApproval:
    """An `Approval(…)` in the code of a handler: its literal arguments, and its line."""

    values: Mapping[str, Any]
    line: int


def named_approvals(file: Path) -> Iterator[NamedApproval]:
    """Yields each `Approval(…)` of a module with its literal arguments; others are ignored."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Call) and _is_approval(node.func):
            given = [*zip(_PARAMETERS, node.args, strict=False)]
            given += [(each.arg, each.value) for each in node.keywords if each.arg]
            literal = {
                name: value.value for name, value in given if isinstance(value, ast.Constant)
            }
            yield NamedApproval(literal, node.lineno)


def _is_approval(function: ast.expr) -> bool:
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return bool(name == _APPROVAL)


def check_approvals(root: Path, groups: Mapping[str, ApproversSpec]) -> None:
    """Rejects an `Approval(…)` that no group can give, as far as the code can be read.

    Raises:
        ConfigurationError: with the file and the line.
    """
    for module in registered_modules(root):
        for file in module_files(root, module):
            for found in named_approvals(file):
                if fault := _fault(found.values, groups):
                    raise ConfigurationError(f"{shown(file)}:{found.line}: Approval: {fault}")


def _fault(values: Mapping[str, Any], groups: Mapping[str, ApproversSpec]) -> str:
    by, count = values.get("by"), values.get("count", 1)
    if isinstance(by, str) and by not in groups:
        guess, has = did_you_mean(by, groups), ", ".join(groups) or "none"
        guess = f"{guess} Otherwise " if guess else ""
        return f'inbox.toml has no group "{by}" (it has: {has}); {guess}add [approvers.{by}]'
    if not isinstance(count, int) or count < 1:
        return f"count={count!r}; use 1 or more"
    if isinstance(by, str) and count > len(groups[by].people):
        people = len(groups[by].people)
        return f"count={count}, and [approvers.{by}] has {people} people; add people or ask fewer"
    if isinstance(values.get("expires"), str):
        try:
            _ = Approval("", expires=values["expires"]).lifetime
        except ConfigurationError as error:
            return f"expires: {error}"
    return ""
