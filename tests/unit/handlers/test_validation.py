"""Options of the wrong type, and values that are no handlers."""

from typing import Any

import pytest

from webhook_inbox import Context, Event, Router
from webhook_inbox.domain.errors import ConfigurationError


def noop(event: Event, ctx: Context) -> None:
    """Handles nothing."""


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"max_attempts": "5"}, "max_attempts is a whole number"),
        ({"max_attempts": 2.5}, "max_attempts is a whole number"),
        ({"timeout": "20s"}, "timeout and max_age are seconds, as numbers"),
        ({"max_age": None}, "timeout and max_age are seconds, as numbers"),
        ({"destinations": "crm"}, "destinations is a list of names"),
        ({"destinations": ["crm", 1]}, "destinations is a list of names"),
        ({"order": "latest"}, "order is latest"),
        ({"policy": "admins"}, "policy is a function"),
        ({"policy": lambda event: None}, "policy is a function"),
        ({"versions": {"1": None}}, "versions is Versions"),
    ],
)
def test_an_option_of_another_kind_is_named_with_its_remedy(
    settings: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"router 'a', on.*: {remedy}"):
        Router("a").on("*", **settings)


@pytest.mark.parametrize("types", [(noop,), (["x", "y"],), (None,)])
def test_types_are_text_and_the_decorator_has_parentheses(types: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigurationError, match=r"'a', on\(…\): types are glob patterns, each"):
        Router("a").on(*types)


def yielding(event: Event, ctx: Context) -> Any:
    yield


async def yielding_async(event: Event, ctx: Context) -> Any:
    yield


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (lambda event: None, "it is called with event and context"),
        (lambda event, ctx, more: None, "it is called with event and context"),
        ("function", "it is called with event and context"),
        (yielding, "it is a generator function, which is not run"),
        (yielding_async, "it is a generator function, which is not run"),
    ],
)
def test_what_could_not_be_called_or_would_do_nothing_is_refused(
    function: Any, remedy: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"handler 'a.b': {remedy}"):
        Router("a").on("x", name="a.b")(function)


@pytest.mark.parametrize("function", [print, lambda *both: None, lambda event, ctx, more=1: None])
def test_whatever_takes_event_and_context_is_a_handler(function: Any) -> None:
    router = Router("a")
    assert router.on("x", name="a.b")(function) is function
    assert router.handlers[0].name == "a.b"
