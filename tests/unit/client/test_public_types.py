"""Every type that an operation takes is importable from `webhook_inbox.client`."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from webhook_inbox import client
from webhook_inbox.client import InboxClient

# What the command line reads from its checkout; a script leaves them out.
OF_A_CHECKOUT = {"Configuration", "Manifest"}


def groups() -> Iterator[type]:
    for member in vars(InboxClient).values():
        read = getattr(member, "fget", None) or getattr(member, "func", None)
        kind = get_type_hints(read).get("return") if read else None
        if inspect.isclass(kind) and "scope" in inspect.signature(kind.__init__).parameters:
            yield kind


def types_of(hint: Any) -> Iterator[str]:
    yield from (name for each in get_args(hint) if each for name in types_of(each))
    if inspect.isclass(hint) and hint.__module__.startswith("webhook_inbox."):
        yield hint.__name__


def argument_types() -> set[str]:
    taken = set[str]()
    for _, method in (pair for group in groups() for pair in inspect.getmembers(group)):
        if inspect.isfunction(method) and not method.__name__.startswith("_"):
            hints = {n: h for n, h in get_type_hints(method).items() if n != "return"}
            taken.update(name for hint in hints.values() for name in types_of(hint))
    return taken


def test_the_types_of_arguments_are_importable_from_one_place() -> None:
    assert {"Actor", "ReplayFilter"} < argument_types()
    assert argument_types() - OF_A_CHECKOUT <= set(client.__all__)


def test_the_types_of_filters_are_importable_from_one_place() -> None:
    filters = (client.EventQuery, client.HoldFilter, client.RejectionFilter, client.ReplayFilter)
    fields = {
        name
        for each in filters
        for hint in get_type_hints(each).values()
        for name in types_of(hint)
    }
    assert fields <= set(client.__all__)
