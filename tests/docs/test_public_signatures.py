"""Signatures contain only parameters that a user passes."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import webhook_inbox
from tests.docs.handlers_page import TEXT
from tests.docs.test_handlers_page_is_complete import public
from webhook_inbox import testing

# The inbox creates these; a user reads them and calls their methods.
CREATED_BY_THE_INBOX = {"Context", "Event", "HandlerRun"}
# Names in the sentences that say "… are internal".
INTERNAL = {
    name
    for sentence in re.split(r"(?<=[.;:])\s|\n\n", TEXT)
    if re.search(r"\b(is|are)\s+internal\b", sentence)
    for name in re.findall(r"`(?:[\w.]+\.)?(\w+)`", sentence)
}


def functions() -> Iterator[Any]:
    """Yields every function, constructor and method that a user calls."""
    for module in (webhook_inbox, testing):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.isclass(value):
                yield pytest.param(value, id=name)
                continue
            if name not in CREATED_BY_THE_INBOX and _has_constructor(value):
                yield pytest.param(value, id=name)
            for method in sorted(public(value) - INTERNAL):
                found = getattr(value, method, None)
                if inspect.isfunction(found):
                    yield pytest.param(found, id=f"{name}.{method}")


def _has_constructor(cls: type) -> bool:
    own = [base for base in cls.__mro__ if base.__module__.startswith("webhook_inbox")]
    return any("__init__" in vars(base) for base in own)


def test_the_page_names_internal_attributes() -> None:
    assert {"gate", "approvals", "bind", "handle_request"} <= INTERNAL


@pytest.mark.parametrize("function", list(functions()))
def test_every_parameter_is_the_user_s(function: Callable[..., Any]) -> None:
    names = set(inspect.signature(function).parameters) - {"self"}
    # A policy and a destination of a test are the user's, whatever a context calls its own.
    internal = INTERNAL - {"destinations", "secrets", "effects"}
    assert not {name for name in names if name.startswith("_")}
    assert not names & internal
    told = inspect.getdoc(function) or ""
    assert not [n for n in names if re.search(rf"\b{n}\b[^.\n]*\binternal", told)]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (webhook_inbox.Held, ["message", "shows"]),
        (webhook_inbox.Deferred, ["until", "message"]),
        (webhook_inbox.Transient, ["message", "retry_after", "refused", "page"]),
    ],
)
def test_an_error_takes_what_a_handler_says(error: type, expected: list[str]) -> None:
    assert list(inspect.signature(error).parameters) == expected
